"""The kind C{http}: services that speak HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aileron.base.json import JSON
from aileron.base.load_error import LoadError
from aileron.base.tables import FileTable
from aileron.connectors._files import ConnectorFile
from aileron.connectors._operations import Identity
from aileron.connectors.kind import ConnectorKind, Workshop
from aileron.model.connectors import Request
from aileron.model.interfaces.connectors import IConnector

from ._connector import HttpConnector, build_request
from ._file import read_http
from ._recorded import HttpAnswers
from ._spec import HttpSpec


class HttpKind(ConnectorKind[HttpSpec]):
    """The kind of services that speak HTTP."""

    name = "http"
    recorded = HttpAnswers()

    def read(self, document: FileTable, head: FileTable, identity: Identity) -> HttpSpec:
        """Return the spec read from the connector file of an HTTP service. Faults are added to the tables."""
        return read_http(document, head, identity)

    def make(self, spec: HttpSpec, workshop: Workshop) -> IConnector:
        """Return the connector that a parsed connector file describes."""
        in_thread = workshop.in_thread(spec.fqn)
        return HttpConnector(spec, workshop.transport, workshop.reactor, workshop.now, in_thread, workshop.open_content)

    def schema(self) -> Mapping[str, JSON]:
        """Return the JSON Schema of connector files of this kind."""
        from ._format import make_schema

        return make_schema()

    def check(self, file: ConnectorFile, spec: HttpSpec, note: Callable[[str], None]) -> Sequence[LoadError]:
        """Check the operations' GraphQL queries, and return the faults that were found."""
        from ._graphql import check_graphql

        return check_graphql(file, spec, note)

    def build_request(
        self, spec: HttpSpec, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str
    ) -> Request:
        """Build the request of an operation.

        :raises InvalidRequest: if no request can be built from the inputs.
        :raises CapabilityDenied: if the operation is unknown, or its host is not declared.
        """
        return build_request(spec, operation, inputs, base_url, effect_key)


HTTP = HttpKind()
