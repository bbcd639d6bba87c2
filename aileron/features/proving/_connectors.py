"""The registry of connectors while a connector is tested by C{aileron connector prove}."""

from __future__ import annotations

from attrs import define, field
from zope.interface import implementer

from aileron.base.load_error import LoadError
from aileron.model.connectors import ConnectorDescription
from aileron.model.interfaces.connectors import IConnector, IConnectors
from aileron.model.trust import Candidate


@implementer(IConnectors)
@define
class ProofConnectors:
    """A registry of the connectors added to it. It reads no files."""

    _connectors: dict[str, IConnector] = field(factory=dict, init=False)
    _generation: int = field(default=1, init=False)

    def add(self, connector: IConnector) -> None:
        """Add a connector, replacing one of the same name."""
        self._connectors[connector.describe().name] = connector
        self._generation += 1

    def get(self, fqn: str) -> IConnector | None:
        return self._connectors.get(fqn)

    def descriptions(self) -> tuple[ConnectorDescription, ...]:
        return tuple(each.describe() for _, each in sorted(self._connectors.items()))

    def candidates(self) -> tuple[Candidate, ...]:
        return ()

    def problems(self) -> tuple[LoadError, ...]:
        return ()

    def generation(self) -> int:
        return self._generation

    def refresh(self) -> None:
        """Do nothing: there are no files to read."""
