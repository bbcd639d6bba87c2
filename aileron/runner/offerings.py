"""Determines which actions can be run now, and records which files the operator trusts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from attrs import define, evolve, field, frozen
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.actions import preview_paths
from aileron.base.addresses import host_shown
from aileron.base.load_error import LoadError
from aileron.model.actions import Action, ConnectorPin, Offer, Offering, PreviewRule, Step
from aileron.model.audit import Actor, Event
from aileron.model.connectors import READ, ConnectorDescription, Operation
from aileron.model.errors import Conflict, InvalidRequest, NotFound, VaultLocked
from aileron.model.interfaces.authority import ITrust
from aileron.model.interfaces.connectors import ICatalogue, IConfigFile, IConnectors
from aileron.model.interfaces.governance import ITrustService
from aileron.model.interfaces.vault import IVault
from aileron.model.trust import Candidate, Trusted, TrustItem, TrustKind, TrustState
from aileron.model.vault import VaultState

from .runs import RunRepository
from .tasks import ResultWaiters, Tasks, shielded

UNTRUSTED = "untrusted"
_SHIPPED = "builtin://"


@define(eq=False)
class Offerings:
    """The actions that can be run now, shared by the runner and its callers.

    Before the vault is unlocked for the first time, the trusted files are not known. Until then no action is offered to
    callers, and no file is reported as untrusted. A gated call is accepted all the same: the trust in its action is
    checked after the unlock, before the decision.
    """

    _catalogue: ICatalogue
    _connectors: IConnectors
    _trust: ITrust
    _vault: IVault
    _settings: tuple[IConfigFile, ...]
    _clock: IReactorTime
    _waiters: ResultWaiters[None, Offering] = field(init=False)
    _offering: Offering = field(init=False)
    _config_problems: tuple[LoadError, ...] = field(default=(), init=False)
    _refused: Mapping[str, str] = field(factory=dict, init=False)  # by action, the first problem found
    _seen: tuple[object, ...] = field(default=(), init=False)

    def __attrs_post_init__(self) -> None:
        """Create an empty offering with a generation that no earlier process of the daemon had."""
        self._waiters = ResultWaiters(self._clock)
        self._offering = Offering(int(self._clock.seconds() * 1000), {})

    def update(self) -> None:
        """Compute the offering again if a file, the trust or the vault has changed, and notify callers of L{after}."""
        catalogue = self._catalogue.current()
        known = self._vault.ever_unlocked()
        seen = (catalogue.generation, self._connectors.generation(), self._trust.generation(), self._config_problems)
        if (*seen, known) == self._seen:
            return
        self._seen = (*seen, known)
        offers, faults, self._refused = self._check(catalogue.actions.values())
        errors = (*catalogue.load_errors, *self._connectors.problems(), *self._config_problems, *faults)
        self._offering = Offering(self._offering.generation + 1, offers, errors)
        self._waiters.fire_all(None, self.current())

    def refresh(self) -> None:
        """Read the files of actions, connectors and settings again, and update the offering."""
        self._catalogue.refresh()
        self._connectors.refresh()
        self._config_problems = tuple(problem for file in self._settings for problem in file.problems())
        self.update()

    def generation(self) -> int:
        """Return the offering's generation, a number that changes whenever the offering does."""
        self.update()
        return self._offering.generation

    def candidates(self) -> dict[tuple[TrustKind, str], Candidate]:
        """Return every valid file as it is on disk now, by kind and name."""
        self.refresh()
        actions = map(self._candidate, self._catalogue.current().actions.values())
        settings = (candidate for file in self._settings for candidate in file.candidates())
        found = (*actions, *self._connectors.candidates(), *settings)
        return {candidate.key: candidate for candidate in found}

    def current(self) -> Offering:
        """Return the offering for callers, without actions if the vault was never unlocked since the daemon started."""
        return self._offering if self._vault.ever_unlocked() else evolve(self._offering, offers={})

    async def after(self, generation: int, seconds: float) -> Offering:
        """Wait until the offering has another generation than C{generation}, at most C{seconds}, and return it."""
        self.update()
        if self._offering.generation != generation:
            return self.current()
        return await self._waiters.first(None, self._waiters.enlist(None), seconds) or self.current()

    def find(self, name: str) -> Offer:
        """Return the offer of an enabled action.

        :raises NotFound: if there is no such action, its file has errors, or a file that it needs is not trusted.
        :raises Conflict: if the action is disabled.
        """
        offer = self.look_up(name)
        # guard of promise 2: an action that cannot run cannot be approved -> NoDecisionTests.test_switched_off
        if not offer.enabled:
            raise Conflict(f"The action {name} is disabled.", {"action": name, "enabled": False})
        return offer

    def look_up(self, name: str) -> Offer:
        """Return the offer of an action, enabled or not.

        :raises NotFound: if there is no such action, its file has errors, or a file that it needs is not trusted.
        """
        self.update()
        offers = self._offering.offers
        offer = offers.get(name)
        if offer is not None:
            return offer
        refused = self._refused.get(name)
        raise NotFound(
            f"There is no action {name!r}, or its file has errors."
            if refused is None
            else f"The action {name} {refused}.",
            {"action": name},
        )

    def on_disk(self, name: str) -> Offer:
        """Return the offer of an action as its file on disk is, even if the file is not trusted.

        :raises NotFound: if there is no such action, its file has errors, or a connector is missing or not trusted.
        """
        self.refresh()
        action = self._catalogue.current().actions.get(name)
        if action is None:
            raise NotFound(f"There is no action {name!r}, or its file has errors.", {"action": name})
        for problem in (*self._mismatches(action), *self._untrusted_connectors(action)):
            raise NotFound(f"The action {name} {problem}.", {"action": name})
        return self._offer(action)

    def _check(self, actions: Iterable[Action]) -> tuple[dict[str, Offer], list[LoadError], dict[str, str]]:
        offers: dict[str, Offer] = {}
        faults: list[LoadError] = []
        refused: dict[str, str] = {}
        for action in actions:
            found = [LoadError("connector", problem, action.path) for problem in self._mismatches(action)]
            # guard of promise 2: an action is trusted in its present form -> NoDecisionTests.test_untrusted
            found += [LoadError(UNTRUSTED, problem, action.path) for problem in self._untrusted(action)]
            faults += found
            if found:
                refused[action.name] = found[0].message
            else:
                offers[action.name] = self._offer(action)
        return offers, faults, refused

    def _offer(self, action: Action) -> Offer:
        operations = [self._describe(step.connector).operations[step.operation] for step in action.steps]
        word = self._trust.find(TrustKind.ACTION, action.name)
        return Offer(
            action,
            enabled=word is None or word.enabled,
            read_only=all(operation.effect == READ for operation in operations),
            idempotent=all(operation.effect == READ or operation.idempotent for operation in operations),
            destructive=any(operation.effect != READ and operation.destructive for operation in operations),
            open_world=any(self._goes_out(step.connector) for step in action.steps),
            output_schema=action.output_schema or operations[-1].output_schema,
            irreversible=action.inverse is None and any(map(_is_irreversible, operations)),
            own_hosts=frozenset(filter(None, (self._own_host(step.connector) for step in action.steps))),
            tools_only=any(operation.tools_only for operation in operations),
        )

    def _own_host(self, fqn: str) -> str:
        """Return the host of the base URL that a connector's file declares, or an empty text if there is none."""
        base_url = self._describe(fqn).base_url
        return "" if base_url is None else host_shown(base_url)

    def _goes_out(self, fqn: str) -> bool:
        described = self._describe(fqn)
        return bool(described.hosts) or described.bindable or described.base_url is not None

    def _untrusted(self, action: Action) -> list[str]:
        """Return the reasons why the action's file and those of its connectors are not trusted as they are on disk.

        The list is empty if they are trusted, and before the first unlock of the vault.
        """
        if not self._vault.ever_unlocked():
            return []
        why = self._unread(TrustKind.ACTION, action.name, action.digest)
        return [*([] if why is None else [why]), *self._untrusted_connectors(action)]

    def _untrusted_connectors(self, action: Action) -> Iterator[str]:
        for fqn in dict.fromkeys(pin.name for pin in action.connectors):
            connector = self._connectors.get(fqn)
            if connector is None or fqn.startswith(_SHIPPED):
                continue
            why = self._unread(TrustKind.CONNECTOR, fqn, connector.describe().content_hash)
            if why is not None:
                yield f"needs the connector {fqn}, which {why}"

    def _unread(self, kind: TrustKind, name: str, digest: str) -> str | None:
        word = self._trust.find(kind, name)
        if word is not None and word.digest == digest:
            return None
        how = "is new" if word is None else "was changed since it was trusted"
        return f"{how}: read it, then `aileron {kind.value} trust {name}`"

    def _describe(self, fqn: str) -> ConnectorDescription:
        connector = self._connectors.get(fqn)
        if connector is None:
            raise NotFound(f"There is no connector {fqn}, or its file has errors.")
        return connector.describe()

    def _candidate(self, action: Action) -> Candidate:
        return Candidate(
            TrustKind.ACTION,
            action.name,
            action.digest,
            action.path,
            action.text,
            needs=tuple(dict.fromkeys(pin.name for pin in action.connectors)),
            lacks=tuple(self._mismatches(action)),
            unasked=not action.approval.gated and any(map(self._writes, action.steps)),
        )

    def _writes(self, step: Step) -> bool:
        """Return whether a step writes. If its connector is missing, return True."""
        connector = self._connectors.get(step.connector)
        operation = None if connector is None else connector.describe().operations.get(step.operation)
        return operation is None or operation.effect != READ

    def _mismatches(self, action: Action) -> list[str]:
        return [problem for pin in action.connectors if (problem := self._mismatch(action, pin))]

    def _mismatch(self, action: Action, pin: ConnectorPin) -> str | None:
        """Return the reason why the action cannot use the pinned connector, or None if it can."""
        connector = self._connectors.get(pin.name)
        if connector is None:
            return f"needs the connector {pin.name}, which is not there"
        description = connector.describe()
        if description.version != pin.version:
            return f"needs {pin.name} {pin.version}; version {description.version} is there"
        if pin.hash is not None and pin.hash != description.content_hash:
            return f"pins {pin.name} to {pin.hash}; what is there is {description.content_hash}"
        return next(find_undeclared(action, description), None)


def _is_irreversible(operation: Operation) -> bool:
    return operation.effect != READ and operation.destructive and operation.irreversible


def find_undeclared(action: Action, description: ConnectorDescription) -> Iterator[str]:
    """Yield a sentence for each use of the connector by C{action} that C{description} does not declare."""
    for step in action.steps:
        if step.connector == description.name:
            yield from _of_step(step, description)
    preview = action.approval.preview
    if preview is not None and preview.connector == description.name:
        yield from _of_preview(preview, description)


def _of_step(step: Step, description: ConnectorDescription) -> Iterator[str]:
    operation = description.operations.get(step.operation)
    if operation is None:
        yield f"{description.name} has no operation {step.operation}"
        return
    if step.idempotent and not operation.idempotent:
        yield (f"step {step.id} claims to be idempotent; {description.name} does not declare {step.operation} so")
    yield from _find_untied(step, operation, description.name)


def _find_untied(step: Step, operation: Operation, fqn: str) -> Iterator[str]:
    """Yield a sentence for each input that is filled from the preview without being a precondition of the operation.

    Such an input would let the response of a service determine the effect.
    """
    for name, value in step.inputs.items():
        if preview_paths(value) and name not in operation.precondition:
            yield (
                f"step {step.id} fills `{name}` from the preview; "
                f"{fqn} does not declare it as a precondition of {step.operation}"
            )


def _of_preview(preview: PreviewRule, description: ConnectorDescription) -> Iterator[str]:
    operation = description.operations.get(preview.operation)
    if operation is None:
        yield f"{description.name} has no operation {preview.operation}"
    elif operation.effect != READ or not operation.idempotent:
        yield f"the preview must be an idempotent read; {description.name} does not declare {preview.operation} so"


_Key = tuple[TrustKind, str]


class TrustedTexts(Protocol):
    """A store of trusted texts by their digest, for showing changes, and for the rules about who approves."""

    async def put(self, text: str) -> str:
        """Store C{text} and return its digest. Idempotent.

        :raises StoreUnavailable: if the text could not be stored.
        """

    async def get(self, digest: str) -> str | None:
        """Return the text with exactly this digest, or None if it is unknown or was altered."""


@implementer(ITrustService)
@frozen(eq=False)
class TrustService:
    """The service that records the operator's trust in files in the audit log, then stores the trust in the vault.

    :param note: stores the vault's new revision in the database, so that a restored older vault is noticed.
    """

    _trust: ITrust
    _contents: TrustedTexts
    _vault: IVault
    _offerings: Offerings
    _runs: RunRepository
    _note: Callable[[], Awaitable[None]]
    _tasks: Tasks

    async def trust_items(self) -> tuple[TrustItem, ...]:
        if not self._vault.ever_unlocked():
            raise self._refuse_locked()
        on_disk = self._offerings.candidates()
        words = {(word.kind, word.name): word for word in self._trust.trusted()}
        return tuple([await self._item(key, on_disk.get(key), words.get(key)) for key in sorted({*on_disk, *words})])

    @shielded
    async def trust(self, items: Sequence[tuple[TrustKind, str, str]], actor: Actor) -> tuple[TrustItem, ...]:
        self._require_unlocked()
        chosen = _choose(self._offerings.candidates(), items)
        _refuse_lacking(chosen)
        for candidate in chosen:
            await self._contents.put(candidate.text)
        await self._runs.record(*(self._read_given(candidate, actor) for candidate in chosen))
        words = [self._make_trusted(candidate, actor) for candidate in chosen]
        await self._keep(lambda: self._trust.put(words))
        return tuple([TrustItem(TrustState.TRUSTED, *one.key, one, self._trust.find(*one.key)) for one in chosen])

    @shielded
    async def distrust(self, kind: TrustKind, name: str, actor: Actor) -> None:
        self._require_unlocked()
        word = self._trust.find(kind, name)
        if word is None:
            raise NotFound("This is not trusted.", {"kind": kind.value, "name": name})
        await self._runs.record(self._event("trust.taken", kind, name, actor, word.digest))
        await self._keep(lambda: self._trust.remove(kind, name))

    @shielded
    async def set_enabled(self, name: str, enabled: bool, actor: Actor) -> Offer:
        self._require_unlocked()
        offer = self._offerings.look_up(name)
        word = self._trust.find(TrustKind.ACTION, name)
        if word is None:
            raise NotFound(f"The action {name} is not trusted.", {"action": name})
        event = self._runs.event_of_home("action.enabled" if enabled else "action.disabled", actor)
        await self._runs.record(evolve(event, action=name))
        if self._trust.find(TrustKind.ACTION, name) != word:
            raise Conflict("Its trust has just changed. Review it again.", {"action": name})
        switched = evolve(word, enabled=enabled, changed_at=self._runs.now(), changed_by=actor.id)
        await self._keep(lambda: self._trust.put([switched]))
        return evolve(offer, enabled=enabled)

    async def _keep(self, write: Callable[[], None]) -> None:
        write()
        self._offerings.update()
        await self._note()

    async def _item(self, key: _Key, on_disk: Candidate | None, word: Trusted | None) -> TrustItem:
        state = _state(on_disk, word)
        known = word is not None and state in (TrustState.CHANGED, TrustState.GONE)
        before = await self._contents.get(word.digest) if known and word is not None else None
        return TrustItem(state, *key, on_disk, word, before)

    def _make_trusted(self, candidate: Candidate, actor: Actor) -> Trusted:
        """Return a new statement of the operator's trust in a file. A disabled action stays disabled."""
        earlier = self._trust.find(*candidate.key)
        enabled = True if earlier is None else earlier.enabled
        return Trusted(*candidate.key, candidate.digest, self._runs.now(), actor.id, enabled)

    def _read_given(self, candidate: Candidate, actor: Actor) -> Event:
        earlier = self._trust.find(*candidate.key)
        before = None if earlier is None else earlier.digest
        return self._event("trust.given", *candidate.key, actor, candidate.digest, before)

    def _event(
        self, type_: str, kind: TrustKind, name: str, actor: Actor, digest: str, before: str | None = None
    ) -> Event:
        action = name if kind is TrustKind.ACTION else None
        connector = name if kind is TrustKind.CONNECTOR else None
        event = self._runs.event_of_home(type_, actor, kind=kind.value, name=name, digest=digest, before=before)
        return evolve(event, action=action, connector=connector)

    def _require_unlocked(self) -> None:
        if self._vault.state() is not VaultState.UNLOCKED:
            raise self._refuse_locked()

    def _refuse_locked(self) -> VaultLocked:
        return VaultLocked("The vault is locked: run `aileron vault unlock`.", {"state": self._vault.state().value})


def _state(on_disk: Candidate | None, word: Trusted | None) -> TrustState:
    if on_disk is None:
        return TrustState.GONE
    if word is None:
        return TrustState.NEW
    return TrustState.TRUSTED if on_disk.digest == word.digest else TrustState.CHANGED


def _choose(on_disk: dict[_Key, Candidate], items: Iterable[tuple[TrustKind, str, str]]) -> list[Candidate]:
    """Return the files named by C{items} (kind, name, digest), after checking that they have not changed.

    :raises NotFound: if a file no longer exists.
    :raises Conflict: if a file has another digest than the operator was shown.
    """
    wanted = list(items)
    gone = [f"{kind.value} {name}" for kind, name, _ in wanted if (kind, name) not in on_disk]
    if gone:
        raise NotFound(f"There is no such file: {', '.join(gone)}.")
    others = [on_disk[kind, name] for kind, name, digest in wanted if on_disk[kind, name].digest != digest]
    if others:
        raise Conflict(
            "The file is no longer what was shown. Review it again.",
            {"items": [{"kind": each.kind.value, "name": each.name, "digest": each.digest} for each in others]},
        )
    return [on_disk[kind, name] for kind, name, _ in wanted]


def _refuse_lacking(chosen: Iterable[Candidate]) -> None:
    """Refuse to trust an action that could not run.

    :raises InvalidRequest: if one of C{chosen} cannot run, for example because its connector is missing.
    """
    for each in chosen:
        if each.lacks:
            raise InvalidRequest(f"The action {each.name} cannot run: it {each.lacks[0]}. Nothing was trusted.")
