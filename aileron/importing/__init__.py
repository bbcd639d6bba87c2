"""Makes connector and action files of a foreign description of an API."""

from ._curl import CurlCommand
from ._description import (
    ARGUMENT,
    BODY,
    GIVEN,
    HEADER,
    PATH,
    QUERY,
    ApiCredential,
    ApiDescription,
    ApiOperation,
    ApiParameter,
    ApiReader,
    ApiVariable,
    NotImported,
    OperationSummary,
)
from ._files import WrittenFile, WrittenFiles, one_line, write_connector
from ._readers import choose, connector_name, read_api, search
from ._tools import CHANGED, ServerTools, ToolChange

__all__ = [
    "ARGUMENT",
    "BODY",
    "CHANGED",
    "GIVEN",
    "HEADER",
    "PATH",
    "QUERY",
    "ApiCredential",
    "ApiDescription",
    "ApiOperation",
    "ApiParameter",
    "ApiReader",
    "ApiVariable",
    "CurlCommand",
    "NotImported",
    "OperationSummary",
    "ServerTools",
    "ToolChange",
    "WrittenFile",
    "WrittenFiles",
    "choose",
    "connector_name",
    "one_line",
    "read_api",
    "search",
    "write_connector",
]
