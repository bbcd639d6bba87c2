"""Reads a service's addresses and its credential from a connector file."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aileron.base.tables import FileTable
from aileron.model.connectors import ConnectorDescription, CredentialNeed, Operation

from ._credentials import read_credential
from ._operations import Identity
from ._places import Places, read_places


@frozen
class DeclaredService:
    """The addresses and the credential of a service, as its connector file declares them.

    :ivar private_network: whether the service may be at a loopback or private address.
    """

    places: Places
    need: CredentialNeed | None
    private_network: bool

    def describe(self, identity: Identity, operations: Mapping[str, Operation]) -> ConnectorDescription:
        """Return the description of the connector."""
        places = self.places
        return ConnectorDescription(
            *identity,
            base_url=places.base_url,
            bindable=places.bindable,
            hosts=places.hosts,
            operations=operations,
            credential=self.need,
            template=places.template,
            places=places.others,
        )


def read_service(document: FileTable, head: FileTable, *, ssh: bool = False) -> DeclaredService:
    """Read C{[variables]}, C{[hosts]}, C{[credential]}, and their part of C{[connector]}.

    Faults are added to the tables.

    :param ssh: whether the base URL may be one of SSH.
    """
    private_network = head.flag("private_network", default=False)
    places = read_places(document, head, private_network=private_network, ssh=ssh)
    table = document.optional_table("credential")
    need = read_credential(table, places.examples, private_network=private_network)
    return DeclaredService(places, need, private_network)
