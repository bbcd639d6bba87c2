"""MCP connectors: call reviewed tools of an MCP server, one call at a time, over HTTP or a program's pipes."""

from ._api_relay import ApiRelay
from ._connector import McpConnector
from ._http import HttpSessions
from ._kind import MCP
from ._local import LocalSessions
from ._package import LOADING_VARIABLES, digest_tree, find_foreign_modules
from ._pins import PINNED, Tool
from ._shared import LocalServers
from ._spec import LIST_TOOLS, McpOperation, McpSpec, read_mcp
from ._wire import Bridged

__all__ = [
    "LIST_TOOLS",
    "LOADING_VARIABLES",
    "MCP",
    "PINNED",
    "ApiRelay",
    "Bridged",
    "HttpSessions",
    "LocalServers",
    "LocalSessions",
    "McpConnector",
    "McpOperation",
    "McpSpec",
    "Tool",
    "digest_tree",
    "find_foreign_modules",
    "read_mcp",
]
