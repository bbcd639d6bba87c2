"""Services that speak HTTP: what their files may say, the requests made of it, and what their answers mean."""

from ._connector import HttpConnector
from ._spec import HttpSpec

__all__ = ["HttpConnector", "HttpSpec"]
