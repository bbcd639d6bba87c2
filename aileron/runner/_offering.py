"""What can be run now: the catalogue, checked against the connectors that are there and the operator's switches."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, evolve, field
from twisted.internet.interfaces import IReactorTime

from aileron.errors import Conflict, NotFound
from aileron.interfaces import ICatalogue, IConnectors, IOverlay, IVault
from aileron.values import READ, Action, Actor, ConnectorDescription, ConnectorPin, LoadError, Offer, Offering

from ._pen import Pen
from ._waiters import Waiters


@define(eq=False)
class Offerings:
    """The one view on actions that the runner and its callers share."""

    _catalogue: ICatalogue
    _connectors: IConnectors
    _overlay: IOverlay
    _vault: IVault
    _pen: Pen
    _waiters: Waiters[None, Offering]
    _offering: Offering
    _disabled: frozenset[str] = frozenset()
    _seen: tuple[object, ...] = field(default=())

    @classmethod
    def over(
        cls,
        catalogue: ICatalogue,
        connectors: IConnectors,
        overlay: IOverlay,
        vault: IVault,
        pen: Pen,
        clock: IReactorTime,
    ) -> Offerings:
        """An offering that starts with a generation that no earlier life of the daemon had."""
        first = Offering(int(clock.seconds() * 1000), {})
        return cls(catalogue, connectors, overlay, vault, pen, Waiters(clock), first)

    async def load(self) -> None:
        """Learn which actions are switched off."""
        self._disabled = await self._overlay.disabled()
        self.look()

    def look(self) -> None:
        """Work the offering out again if anything it depends on has changed, and tell who waits for that."""
        catalogue = self._catalogue.current()
        seen = (catalogue.generation, self._connectors.generation(), self._disabled, self._vault.ever_unlocked())
        if seen == self._seen:
            return
        self._seen = seen
        offers, faults = self._check(catalogue.actions.values())
        errors = (*catalogue.load_errors, *self._connectors.problems(), *faults)
        self._offering = Offering(self._offering.generation + 1, offers, errors)
        self._waiters.tell(None, self.current())

    def refresh(self) -> None:
        """Read the files again, now: what is decided next is decided about the bytes that are there."""
        self._catalogue.refresh()
        self._connectors.refresh()
        self.look()

    def current(self) -> Offering:
        """What callers may see: nothing while the vault was never unlocked in this life."""
        return self._offering if self._vault.ever_unlocked() else evolve(self._offering, offers={})

    async def after(self, generation: int, seconds: float) -> Offering:
        """The offering once it is another than that of C{generation}, or as it is after C{seconds}."""
        self.look()
        if self._offering.generation != generation:
            return self.current()
        return await self._waiters.first(None, self._waiters.enlist(None), seconds) or self.current()

    def find(self, name: str) -> Offer:
        """The offer of an action that is on.

        :raises NotFound: there is none of that name, or it did not load.
        :raises Conflict: it is switched off.
        """
        offer = self._find(name)
        if not offer.enabled:
            raise Conflict(f"The action {name} is switched off.", {"action": name, "enabled": False})
        return offer

    async def switch(self, name: str, enabled: bool, actor: Actor) -> Offer:
        """Switch an action on or off, on record.

        :raises NotFound: there is none of that name.
        """
        self._find(name)
        event = self._pen.of_action("action.enabled" if enabled else "action.disabled", name, actor)
        await self._overlay.set_enabled(name, enabled, [event])
        self._disabled = self._disabled - {name} if enabled else self._disabled | {name}
        self.look()
        return self._find(name)

    def _find(self, name: str) -> Offer:
        self.look()
        offer = self._offering.offers.get(name)
        if offer is None:
            raise NotFound(f"There is no action {name!r} that loaded.", {"action": name})
        return offer

    def _check(self, actions: Iterable[Action]) -> tuple[dict[str, Offer], list[LoadError]]:
        offers: dict[str, Offer] = {}
        faults: list[LoadError] = []
        for action in actions:
            wrong = [problem for pin in action.requires if (problem := self._mismatch(action, pin))]
            faults.extend(LoadError("connector", problem, action.path) for problem in wrong)
            if not wrong:
                offers[action.name] = self._offer(action)
        return offers, faults

    def _offer(self, action: Action) -> Offer:
        operations = [self._described(step.connector).operations[step.operation] for step in action.steps]
        return Offer(
            action,
            enabled=action.name not in self._disabled,
            read_only=all(operation.effect == READ for operation in operations),
            idempotent=all(operation.effect == READ or operation.idempotent for operation in operations),
        )

    def _described(self, fqn: str) -> ConnectorDescription:
        connector = self._connectors.get(fqn)
        if connector is None:
            raise NotFound(f"The connector {fqn} is not there.")
        return connector.describe()

    def _mismatch(self, action: Action, pin: ConnectorPin) -> str | None:
        """Why this pin cannot be honoured, or L{None}."""
        connector = self._connectors.get(pin.name)
        if connector is None:
            return f"needs the connector {pin.name}, which is not there"
        description = connector.describe()
        if description.version != pin.version:
            return f"needs {pin.name} {pin.version}; version {description.version} is there"
        if pin.hash is not None and pin.hash != description.content_hash:
            return f"pins {pin.name} to {pin.hash}; what is there is {description.content_hash}"
        for step in action.steps:
            if step.connector != pin.name:
                continue
            operation = description.operations.get(step.operation)
            if operation is None:
                return f"{pin.name} has no operation {step.operation}"
            if step.idempotent and not operation.idempotent:
                return f"step {step.id} claims to be idempotent; {pin.name} does not declare {step.operation} so"
        return None
