"""The connector kind C{git}: a local repository and its remote."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.base.json import JSON
from aileron.base.tables import FileTable
from aileron.connectors._answer import Transport
from aileron.connectors._operations import Identity
from aileron.connectors._screened import Screened
from aileron.connectors.kind import ConnectorKind, Workshop
from aileron.model.interfaces.connectors import IConnector

from ._connector import GitConnector
from ._host import GitHost
from ._host_spec import read_git_host
from ._spec import GitSpec, read_git
from ._ssh import SshTransport

_MOST_REPOSITORIES = 2  # repositories read concurrently, each in a thread


class GitKind(ConnectorKind[GitSpec]):
    """The connector kind of a local repository and its remote."""

    name = "git"

    def read(self, document: FileTable, head: FileTable, identity: Identity) -> GitSpec:
        """Return the spec read from a connector file. Faults are added to the tables.

        A file with C{[own_tools]} is one of a host, and has no C{[git]}.
        """
        read = read_git_host if "own_tools" in document.values else read_git
        return read(document, head, identity)

    def make(self, spec: GitSpec, workshop: Workshop) -> IConnector:
        """Return the connector for a spec."""
        key, transport = spec.host_key, workshop.transport
        sender: Transport = transport if key is None else SshTransport(transport.opener, key)
        in_thread = workshop.in_thread(self.name, _MOST_REPOSITORIES)
        if spec.is_host:
            reader = workshop.read_content
            return Screened(GitHost(spec, transport, workshop.reactor, workshop.now, reader, in_thread))
        return Screened(GitConnector(spec, sender, workshop.reactor, workshop.now, in_thread))

    def schema(self) -> Mapping[str, JSON]:
        """Return the JSON Schema of a connector file."""
        from ._format import make_schema

        return make_schema()


GIT = GitKind()
