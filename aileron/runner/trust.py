"""Takes the operator's word about the files that actions stand on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from attrs import evolve, frozen
from zope.interface import implementer

from aileron.model.actions import Offer
from aileron.model.audit import Actor, Event
from aileron.model.errors import Conflict, InvalidRequest, NotFound, VaultLocked
from aileron.model.interfaces.authority import ITrust
from aileron.model.interfaces.governance import ITrustService
from aileron.model.interfaces.vault import IVault
from aileron.model.trust import Candidate, Trusted, TrustItem, TrustKind, TrustState
from aileron.model.vault import VaultState

from .offerings import Offerings
from .runs import RunRepository
from .scheduling import Tasks, shielded

_Key = tuple[TrustKind, str]


class TrustedTexts(Protocol):
    """Keeps texts by their digest, to show what changed.  Nothing follows from what it holds."""

    async def put(self, text: str) -> str:
        """Keep C{text}, and return its digest.  Twice is safe.

        :raises StoreUnavailable: it was not kept.
        """

    async def get(self, digest: str) -> str | None:
        """Return the text of exactly this digest, or L{None}: unknown, or altered."""


@implementer(ITrustService)
@frozen(eq=False)
class TrustService:
    """Puts the operator's word on record, then keeps it in the vault: nothing is in force that nobody can read of.

    :param note: remembers that the vault has come further.
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
        await self._runs.audit.append(*(self._read_given(candidate, actor) for candidate in chosen))
        words = [self._word(candidate, actor) for candidate in chosen]
        await self._keep(lambda: self._trust.put(words))
        return tuple([TrustItem(TrustState.TRUSTED, *one.key, one, self._trust.find(*one.key)) for one in chosen])

    @shielded
    async def distrust(self, kind: TrustKind, name: str, actor: Actor) -> None:
        self._require_unlocked()
        word = self._trust.find(kind, name)
        if word is None:
            raise NotFound("This is not trusted.", {"kind": kind.value, "name": name})
        await self._runs.audit.append(self._event("trust.taken", kind, name, actor, word.digest))
        await self._keep(lambda: self._trust.remove(kind, name))

    @shielded
    async def set_enabled(self, name: str, enabled: bool, actor: Actor) -> Offer:
        self._require_unlocked()
        offer = self._offerings.look_up(name)
        word = self._trust.find(TrustKind.ACTION, name)
        if word is None:
            raise NotFound(f"The action {name} is not trusted.", {"action": name})
        event = self._runs.events.of_home("action.enabled" if enabled else "action.disabled", actor)
        await self._runs.audit.append(evolve(event, action=name))
        if self._trust.find(TrustKind.ACTION, name) != word:
            raise Conflict("Its trust has just changed. Review it again.", {"action": name})
        switched = evolve(word, enabled=enabled, changed_at=self._runs.events.now(), changed_by=actor.id)
        await self._keep(lambda: self._trust.put([switched]))
        return evolve(offer, enabled=enabled)

    async def _keep(self, write: Callable[[], None]) -> None:
        write()
        self._offerings.look()
        await self._note()

    async def _item(self, key: _Key, on_disk: Candidate | None, word: Trusted | None) -> TrustItem:
        state = _state(on_disk, word)
        known = word is not None and state in (TrustState.CHANGED, TrustState.GONE)
        before = await self._contents.get(word.digest) if known and word is not None else None
        return TrustItem(state, *key, on_disk, word, before)

    def _word(self, candidate: Candidate, actor: Actor) -> Trusted:
        """Make the word: what was switched off stays off, however often it is read anew."""
        earlier = self._trust.find(*candidate.key)
        enabled = True if earlier is None else earlier.enabled
        return Trusted(*candidate.key, candidate.digest, self._runs.events.now(), actor.id, enabled)

    def _read_given(self, candidate: Candidate, actor: Actor) -> Event:
        earlier = self._trust.find(*candidate.key)
        before = None if earlier is None else earlier.digest
        return self._event("trust.given", *candidate.key, actor, candidate.digest, before)

    def _event(
        self, type_: str, kind: TrustKind, name: str, actor: Actor, digest: str, before: str | None = None
    ) -> Event:
        action = name if kind is TrustKind.ACTION else None
        connector = name if kind is TrustKind.CONNECTOR else None
        event = self._runs.events.of_home(type_, actor, kind=kind.value, name=name, digest=digest, before=before)
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
    """Return the files that the operator was shown, all of which must still be on disk as they were."""
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
    """Refuse to trust an action that could not run, such as one whose connector is missing.

    :raises InvalidRequest: there is one.
    """
    for each in chosen:
        if each.lacks:
            raise InvalidRequest(f"The action {each.name} cannot run: it {each.lacks[0]}. Nothing was trusted.")
