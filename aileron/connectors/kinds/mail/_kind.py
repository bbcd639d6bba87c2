"""The kind C{mail}: a mail account."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.base.json import JSON
from aileron.base.tables import FileTable
from aileron.connectors._operations import Identity
from aileron.connectors.kind import ConnectorKind, Workshop
from aileron.model.interfaces.connectors import IConnector

from .connector import MailConnector
from .spec import MailSpec, read_mail


class MailKind(ConnectorKind[MailSpec]):
    """The kind of mail accounts."""

    name = "mail"

    def read(self, document: FileTable, head: FileTable, identity: Identity) -> MailSpec:
        """Return the spec read from the connector file of a mail account. Faults are added to the tables."""
        return read_mail(document, head, identity)

    def make(self, spec: MailSpec, workshop: Workshop) -> IConnector:
        """Return the connector that a parsed connector file describes."""
        in_thread = workshop.in_thread(spec.fqn)
        return MailConnector(spec, workshop.transport.opener, workshop.reactor, workshop.now, in_thread)

    def schema(self) -> Mapping[str, JSON]:
        """Return the JSON Schema of connector files of this kind."""
        from ._format import make_schema

        return make_schema()


MAIL = MailKind()
