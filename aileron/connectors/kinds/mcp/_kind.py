"""The connector kind C{mcp}: MCP servers."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.base.json import JSON
from aileron.base.tables import FileTable
from aileron.connectors._operations import Identity
from aileron.connectors._screened import Screened
from aileron.connectors.kind import ConnectorKind, Workshop
from aileron.model.interfaces.connectors import IConnector

from ._api_relay import ApiRelay
from ._connector import McpConnector
from ._http import HttpSessions
from ._local import LocalSessions
from ._session import McpSessions
from ._spec import McpSpec, read_mcp


class McpKind(ConnectorKind[McpSpec]):
    """The connector kind of MCP servers."""

    name = "mcp"

    def read(self, document: FileTable, head: FileTable, identity: Identity) -> McpSpec:
        """Return the spec read from a connector file. Faults are added to the tables."""
        return read_mcp(document, head, identity)

    def make(self, spec: McpSpec, workshop: Workshop) -> IConnector:
        """Return the connector for a spec."""
        return Screened(McpConnector(spec, _open_sessions(spec, workshop), workshop.reactor))

    def schema(self) -> Mapping[str, JSON]:
        """Return the JSON Schema of a connector file."""
        from ._format import make_schema

        return make_schema()


def _open_sessions(spec: McpSpec, workshop: Workshop) -> McpSessions:
    """Return the object that opens sessions with the server of a spec."""
    local, about = spec.local, spec.description
    if local is None:
        return HttpSessions(workshop.bridge, workshop.transport, workshop.reactor, spec)
    api = local.api
    relay = ApiRelay(about, api, workshop.transport, workshop.reactor, workshop.report) if api else None
    return LocalSessions(
        about,
        local,
        workshop.servers.of(spec.fqn),
        workshop.environment,
        workshop.find_sandbox(),
        spec.max_response_bytes,
        relay,
    )


MCP = McpKind()
