"""The connector kind C{command}: programs on this machine."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.base.json import JSON
from aileron.base.tables import FileTable
from aileron.connectors._operations import Identity
from aileron.connectors._screened import Screened
from aileron.connectors.kind import ConnectorKind, Workshop
from aileron.model.interfaces.connectors import IConnector

from ._connector import CommandConnector
from ._spec import CommandSpec, read_command


class CommandKind(ConnectorKind[CommandSpec]):
    """The connector kind of programs on this machine."""

    name = "command"

    def read(self, document: FileTable, head: FileTable, identity: Identity) -> CommandSpec:
        """Return the spec read from a connector file. Faults are added to the tables."""
        return read_command(document, head, identity)

    def make(self, spec: CommandSpec, workshop: Workshop) -> IConnector:
        """Return the connector for a spec."""
        enclose = workshop.find_sandbox()
        return Screened(CommandConnector(spec, workshop.reactor, workshop.environment, enclose))

    def schema(self) -> Mapping[str, JSON]:
        """Return the JSON Schema of a connector file."""
        from ._format import make_schema

        return make_schema()


COMMAND = CommandKind()
