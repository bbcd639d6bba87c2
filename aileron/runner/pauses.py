"""Keeps what is paused, for whatever would begin something and for the transaction that lets it begin.

A pause takes hold in memory first, then waits for the database's one writer: whatever was let begin before that is
committed by then, and nothing after it is.  It is kept in the vault, and in a row for where the vault is locked.  At
the start both count; so a row can pause and never resume.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron.base.converter import from_json, to_json
from aileron.base.json import compact
from aileron.base.waiting import Waiting
from aileron.model.audit import Actor, Event
from aileron.model.authority import Pause
from aileron.model.errors import AileronError, LimitExceeded, Paused, StoreUnavailable, VaultLocked
from aileron.model.interfaces.authority import IOperatorLimits
from aileron.model.interfaces.store import IWatermarks
from aileron.model.interfaces.vault import IBindings, IVault
from aileron.model.runs import Approval, Run
from aileron.model.vault import VaultState

from .plan import PlannedStep
from .rates import RateLimits
from .runs import RunRepository, Verify

PAUSED_ROW = "paused"
"""The watermark that holds what is paused."""

MOST_SESSIONS = 256
"""Of what agents paused for themselves the oldest are forgotten beyond these; nobody has so many that live."""

_RETRY_AFTER_SECONDS = 60
_log = Logger()


@define(eq=False)
class Pauses:
    """Pauses and lifts pauses, in memory, in the vault and in a row."""

    _operator_limits: IOperatorLimits
    _watermarks: IWatermarks
    _runs: RunRepository
    _clock: IReactorTime
    _standing: Mapping[str | None, Pause] = field(factory=dict, init=False)  # replaced whole: the writer's thread reads
    _lifted: Waiting = field(factory=Waiting, init=False)
    _writing: DeferredLock = field(factory=DeferredLock, init=False)
    _owed: bool = field(default=False, init=False)  # the vault does not know of it yet
    _unwritten: bool = field(default=False, init=False)  # nor does the row
    _unrecorded: list[Event] = field(factory=list, init=False)  # oldest first

    def all(self) -> tuple[Pause, ...]:
        """Everything that is paused, in the order in which it was."""
        return tuple(self._standing.values())

    def find(self, session_id: str | None) -> Pause | None:
        """Find what keeps the runs of a session from beginning, if anything does."""
        standing = self._standing
        return standing.get(None) or standing.get(session_id)

    def refuse(self, session_id: str | None) -> None:
        """Pass only where nothing keeps the runs of this session from beginning.

        :raises Paused: something does.
        """
        pause = self.find(session_id)
        if pause is not None:
            raise _refusal(pause)

    def guarded(self, verify: Verify | None) -> Verify:
        """Make a check for inside the transaction that lets a run begin: that nothing is paused, and C{verify}."""

        def check(run: Run, approval: Approval | None) -> None:
            # guard of promise 2: a pause holds an approved run
            self.refuse(run.session_id)
            if verify is not None:
                verify(run, approval)

        return check

    async def over(self, session_id: str | None, seconds: float) -> bool:
        """Wait until nothing keeps a run of this session from going on; C{False}: for so long something does."""
        until = self._clock.seconds() + seconds
        while self.find(session_id) is not None:
            if not await self._change(until - self._clock.seconds()):
                return False
        return True

    async def learn(self) -> None:
        """At the start: all that the vault says is paused, and all that the row says.

        :raises StoreUnavailable: the row cannot be read.
        """
        written = (await self._watermarks.all()).get(PAUSED_ROW)
        found = {pause.session_id: pause for pause in _read(written, self._runs.events.now())}
        self._standing = {**found, **{pause.session_id: pause for pause in self._operator_limits.pauses()}}
        self._owed = bool(self._standing)
        self.settle_up()

    async def pause(self, pause: Pause, actor: Actor) -> Pause:
        """Let nothing more begin that C{pause} is about.  Twice is safe: the first one stands.

        But the operator's takes the place of an agent's own.  Durable when it returns, unless the database takes no
        write: then the pause holds all the same, L{is_owing} says so, and L{save} is called until it is written.

        :raises LimitExceeded: it is a session's own, and too many have done the same; the operator's has always room.
        """
        standing = self._standing.get(pause.session_id)
        if standing is not None and _is_own(standing) and not _is_own(pause):
            standing = None
        if standing is None:
            self._refuse_too_many(pause)
            self._standing = {**self._standing, pause.session_id: pause}
            self._unrecorded.append(self._event("pause.begun", pause, actor))
        self._owed = self._unwritten = True
        await self.save()
        return standing or pause

    @property
    def is_owing(self) -> bool:
        """True if L{save} has something to do: a pause that a restart now would forget, or its event."""
        return self._unwritten or bool(self._unrecorded)

    async def save(self) -> None:
        """Write what is paused to the database, and its events to the record; do nothing if no write is possible."""
        try:
            await self._writing.run(self._write)
        except StoreUnavailable as error:
            _log.warn("what is paused is not saved yet: {why}", why=error.message)

    async def lift(self, session_id: str | None, actor: Actor) -> None:
        """Let what it was about begin again.

        :raises VaultLocked, BindingFailed, StoreUnavailable: it stays paused.
        """
        pause = self._standing.get(session_id)
        if pause is not None:
            await self._writing.run(self._write)  # the record has the beginning before the end
            await self._writing.run(self._let_go, session_id)
            await self._runs.audit.append(self._event("pause.ended", pause, actor))

    async def _let_go(self, session_id: str | None) -> None:
        """Let go in the vault first: until the row says so as well, another life finds it paused."""
        left = self._remove(session_id)
        self._operator_limits.keep_pauses(tuple(left.values()))
        await self._watermarks.put(PAUSED_ROW, _written(left))
        self._standing = self._remove(session_id)  # what was paused meanwhile is written next
        self._lifted.fire()

    def _remove(self, session_id: str | None) -> dict[str | None, Pause]:
        return {name: pause for name, pause in self._standing.items() if name != session_id}

    def settle_up(self) -> None:
        """Tell the vault what it could not be told, as far as that can be done now."""
        if not self._owed:
            return
        try:
            self._operator_limits.keep_pauses(self.all())
        except AileronError as error:
            _log.info("the vault does not know yet what is paused: {why}", why=error.message)
        else:
            self._owed = False

    async def _write(self) -> None:
        """All that is paused by now, in the row and, as far as that can be done, in the vault; then its events."""
        while self._unwritten:
            written = self._standing
            await self._watermarks.put(PAUSED_ROW, _written(written))
            self._unwritten = written is not self._standing
        self.settle_up()
        while self._unrecorded:
            await self._runs.audit.append(self._unrecorded[0])
            del self._unrecorded[0]

    def _refuse_too_many(self, pause: Pause) -> None:
        own = sum(_is_own(each) for each in self._standing.values())
        if _is_own(pause) and own >= MOST_SESSIONS:
            raise LimitExceeded("Too many sessions have paused themselves: ask your user to resume or to pause.")

    async def _change(self, seconds: float) -> bool:
        """Tell whether something was lifted within C{seconds}."""
        if seconds <= 0:
            return False
        waiter: Deferred[None] = self._lifted.wait(over=False)
        late = self._clock.callLater(seconds, waiter.cancel)
        try:
            await waiter
        except CancelledError:
            return False
        finally:
            if late.active():
                late.cancel()
        return True

    def _event(self, type_: str, pause: Pause, actor: Actor) -> Event:
        event = self._runs.events.of_home(type_, actor, reason=pause.reason, since=to_json(pause)["since"])
        return evolve(event, session_id=pause.session_id)


def _is_own(pause: Pause) -> bool:
    """Tell whether an agent paused its own session."""
    return pause.session_id is not None and pause.by == pause.session_id


def _refusal(pause: Pause) -> Paused:
    whose = "Everything is paused" if pause.session_id is None else "This session is paused"
    details = {**to_json(pause), "retry_after": _RETRY_AFTER_SECONDS}
    because = f" ({pause.reason})" if pause.reason else ""
    return Paused(f"{whose}{because}: nothing starts until it is resumed.", details)


def _written(standing: Mapping[str | None, Pause]) -> str:
    return compact([to_json(pause) for pause in standing.values()])


def _read(written: str | None, now: datetime) -> tuple[Pause, ...]:
    """Read what a row says; one that cannot be read pauses everything."""
    if written is None:
        return ()
    try:
        return tuple(from_json(Pause, each) for each in json.loads(written))
    except (ValueError, TypeError):
        return (Pause(now, "service", "what was paused cannot be read any more"),)


@define(eq=False)
class EffectGate:
    """Tells whether effects may begin now.

    :ivar pauses: what is paused, though the vault be open.
    :ivar rates: which services are to be left alone for now.
    :ivar could_act: whether the last look found that they may; C{False} has the next look take up what waits.
    """

    _vault: IVault
    _bindings: IBindings
    pauses: Pauses
    rates: RateLimits
    could_act: bool = field(default=False, init=False)
    _held: bool = field(default=False, init=False)
    _generation: int = field(default=0, init=False)  # of the bindings, at the last look

    def may_act(self) -> bool:
        """Return whether effects may begin now: the vault is unlocked, and nothing is held."""
        # guard of promise 2: nothing begins while the vault is locked -> NoDecisionTests.test_locked_call,
        #    instead return not self._held
        return not self._held and self._vault.state() is VaultState.UNLOCKED

    def hold(self) -> None:
        """Let none begin any more in this life."""
        self._held = True

    def missed(self) -> None:
        """Note that the vault or a credential could not be used: the next look takes up what waits for it."""
        self.could_act = False

    def look(self) -> None:
        """Note what changed of the bindings: that may be what a run waits for."""
        generation = self._bindings.bindings_generation()
        if generation != self._generation:
            self._generation = generation
            self.missed()

    async def in_turn(self, planned: PlannedStep, run: Run, seconds: float) -> None:
        """Wait for as long as the service of a step of C{run} asked for.

        :raises LimitExceeded: that takes longer than C{seconds}, or everything is paused since.
        """
        left = self.rates.seconds_left(planned, run.id)
        if not left:
            return
        why = f"{self.rates.explain(planned, left)} This request was not sent."
        waited = await self.rates.wait(planned, run.id, seconds)
        if not waited or not await self.pauses.over(run.session_id, seconds - left):
            raise LimitExceeded(why, {"retry_after": max(1, round(left))})

    def require(self) -> None:
        """Pass only where effects may begin now.

        :raises VaultLocked: they may not.
        """
        if not self.may_act():
            state = self._vault.state().value
            raise VaultLocked("The vault is locked: run `aileron vault unlock`.", {"state": state})
