"""Services that speak HTTP: what their files may say, the requests made of it, and what their answers mean."""

from ._connector import HttpConnector
from ._graphql import check_graphql
from ._kind import HTTP
from ._lookup import Lookup
from ._operation import read_operation
from ._samples import Sample
from ._spec import HttpOperation, HttpSpec

__all__ = ["HTTP", "HttpConnector", "HttpOperation", "HttpSpec", "Lookup", "Sample", "check_graphql", "read_operation"]
