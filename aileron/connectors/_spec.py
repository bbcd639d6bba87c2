"""The content of connector files that all kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import evolve, frozen

from aileron.base.comparison import normalize_addresses
from aileron.base.json import JSON
from aileron.model.connectors import READ, ConnectorDescription, Operation
from aileron.model.errors import CapabilityDenied

from ._recipients import normalize_recipients


@frozen
class BaseSpec:
    """The content of a connector file. Each kind extends it."""

    description: ConnectorDescription

    @property
    def fqn(self) -> str:
        """The name of the connector."""
        return self.description.name

    def describe(self, why_approval: str) -> ConnectorDescription:
        """Return the description of the connector on this machine.

        :param why_approval: the reason, as a clause, why its operations need approval, or empty if they need none.
        """
        declared = self.description.operations.items()
        operations = {name: evolve(each, needs_approval=why_approval) for name, each in declared}
        return evolve(self.description, operations=operations)

    def find_operation(self, name: str) -> Operation:
        """Return the declaration of an operation.

        :raises CapabilityDenied: if there is no such operation.
        """
        found = self.description.operations.get(name)
        if found is None:
            raise CapabilityDenied(f"{self.fqn} has no operation {name!r}.")
        return found

    def find_read(self, name: str) -> Operation:
        """Return the declaration of an operation that only reads.

        :raises CapabilityDenied: if there is no such operation, or it is not declared as a read.
        """
        found = self.find_operation(name)
        if found.effect != READ:
            raise CapabilityDenied(f"The operation {name} is not declared as a read.")
        return found

    def normalize_input(
        self, operation: str, name: str, value: JSON, read: Callable[[str], Iterable[str]] = normalize_addresses
    ) -> JSON:
        """Return an input in the form used for limits and comparisons. Recipients become normalized addresses.

        The inputs of an unknown operation are returned unchanged.

        :param read: returns the addresses that one text lists.
        """
        found = self.description.operations.get(operation)
        return value if found is None else normalize_recipients(found, name, value, read)
