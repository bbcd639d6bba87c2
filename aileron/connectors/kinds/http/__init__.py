"""Services over HTTP: the declarations in their files, the requests, and the meaning of their responses."""

from ._connector import HttpConnector
from ._graphql import check_graphql
from ._kind import HTTP
from ._lookup import Lookup
from ._operation import read_operation
from ._packages import SHOW_PACKAGE
from ._samples import Sample
from ._spec import HttpOperation, HttpSpec

__all__ = [
    "HTTP",
    "SHOW_PACKAGE",
    "HttpConnector",
    "HttpOperation",
    "HttpSpec",
    "Lookup",
    "Sample",
    "check_graphql",
    "read_operation",
]
