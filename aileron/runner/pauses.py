"""Pauses of everything and of single sessions, which nothing can pass, not even an approved run."""

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
from aileron.model.errors import AileronError, LimitExceeded, Paused, StoreUnavailable
from aileron.model.interfaces.authority import IOperatorLimits
from aileron.model.interfaces.store import IWatermarks
from aileron.model.runs import Approval, Run

from .runs import RunRepository, Verify

PAUSED_ROW = "paused"
"""The name of the watermark that stores the pauses."""

MOST_SESSIONS = 256
"""The maximum number of sessions that agents have paused themselves. Beyond it, further ones are refused."""

_RETRY_AFTER_SECONDS = 60
_log = Logger()


@define(eq=False)
class Pauses:
    """The pauses of everything and of single sessions, in memory, in the vault and in a database row."""

    _operator_limits: IOperatorLimits
    _watermarks: IWatermarks
    _runs: RunRepository
    _clock: IReactorTime
    _standing: Mapping[str | None, Pause] = field(factory=dict, init=False)  # replaced, never changed: threads read it
    _lifted: Waiting = field(factory=Waiting, init=False)
    _writing: DeferredLock = field(factory=DeferredLock, init=False)
    _owed: bool = field(default=False, init=False)  # a change is not in the vault yet
    _unwritten: bool = field(default=False, init=False)  # a change is not in the row yet
    _unrecorded: list[Event] = field(factory=list, init=False)  # events not in the audit log yet, oldest first

    def all(self) -> tuple[Pause, ...]:
        """Return all pauses, oldest first."""
        return tuple(self._standing.values())

    def find(self, session_id: str | None) -> Pause | None:
        """Return the pause of everything, else the pause of the session, or None if neither is paused."""
        standing = self._standing
        return standing.get(None) or standing.get(session_id)

    def refuse(self, session_id: str | None) -> None:
        """Refuse if runs of this session are paused.

        :raises Paused: if everything or the session is paused.
        """
        pause = self.find(session_id)
        if pause is not None:
            raise _paused_error(pause)

    def guarded(self, verify: Verify | None) -> Verify:
        """Return a check for the transaction that starts a run. It raises L{Paused} if the run is paused.

        :param verify: a further check to call, or None.
        """

        def check(run: Run, approval: Approval | None) -> None:
            # guard of promise 2: a pause stops an approved run
            self.refuse(run.session_id)
            if verify is not None:
                verify(run, approval)

        return check

    async def wait_unpaused(self, session_id: str | None, seconds: float) -> bool:
        """Wait until no pause applies to the session. Return False if one still does after C{seconds}."""
        until = self._clock.seconds() + seconds
        while self.find(session_id) is not None:
            if not await self._change(until - self._clock.seconds()):
                return False
        return True

    async def learn(self) -> None:
        """Load the pauses that are stored in the vault and in the database row. Call at the start.

        :raises StoreUnavailable: if the row cannot be read.
        """
        written = (await self._watermarks.all()).get(PAUSED_ROW)
        found = {pause.session_id: pause for pause in read_pauses(written, self._runs.now())}
        self._standing = {**found, **{pause.session_id: pause for pause in self._operator_limits.pauses()}}
        self._owed = bool(self._standing)
        self.settle_up()

    async def pause(self, pause: Pause, actor: Actor) -> Pause:
        """Pause a session, or everything, and return the pause that applies then.

        If the session is paused already, the earlier pause stays, except that a pause by the operator replaces one by
        the agent. The pause is durable when this returns, in the vault or in the database, if L{is_durable} is true. If
        both refuse the write, the pause applies nevertheless, and L{is_owing} is true until L{save} has written it.

        :raises LimitExceeded: if an agent pauses its own session and too many agents have done so. The operator can
            always pause.
        """
        standing = self._standing.get(pause.session_id)
        if standing is not None and _is_own(standing) and not _is_own(pause):
            standing = None
        if standing is None:
            self._refuse_too_many(pause)
            self._standing = {**self._standing, pause.session_id: pause}
            self._unrecorded.append(self._event("pause.begun", pause, actor))
        self._owed = self._unwritten = True
        self.settle_up()  # before the database, which may be away
        await self.save()
        return standing or pause

    @property
    def is_durable(self) -> bool:
        """True if all pauses survive a restart, because the vault or the database has them."""
        return not (self._owed and self._unwritten)

    @property
    def is_owing(self) -> bool:
        """True if L{save} has something to write: pauses that are only in memory, or events of pauses."""
        return self._unwritten or bool(self._unrecorded)

    async def save(self) -> None:
        """Write the pauses to the database and their events to the audit log. A failure is logged."""
        try:
            await self._writing.run(self._write)
        except StoreUnavailable as error:
            _log.warn("the pauses are not saved yet: {why}", why=error.message)

    async def lift(self, session_id: str | None, actor: Actor) -> None:
        """Remove the pause of a session, or that of everything if C{session_id} is None. Idempotent.

        :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault or the database refuses. The pause stays.
        """
        pause = self._standing.get(session_id)
        if pause is not None:
            await self._writing.run(self._write)  # record the start of the pause before its end
            await self._writing.run(self._remove_pause, session_id)
            await self._runs.record(self._event("pause.ended", pause, actor))

    async def _remove_pause(self, session_id: str | None) -> None:
        """Remove the pause from the vault, then from the row, then from memory.

        If the daemon stops in between, the pause applies again after the restart.

        :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be removed.
        """
        left = self._remove(session_id)
        self._operator_limits.keep_pauses(tuple(left.values()))
        await self._watermarks.put(PAUSED_ROW, write_pauses(left))
        self._standing = self._remove(session_id)  # computed again: another pause may have begun meanwhile
        self._lifted.fire()

    def _remove(self, session_id: str | None) -> dict[str | None, Pause]:
        return {name: pause for name, pause in self._standing.items() if name != session_id}

    def settle_up(self) -> None:
        """Write the pauses to the vault if it does not have the latest ones.

        If the vault refuses, the next call retries.
        """
        if not self._owed:
            return
        try:
            self._operator_limits.keep_pauses(self.all())
        except AileronError as error:
            _log.info("the pauses are not in the vault yet: {why}", why=error.message)
        else:
            self._owed = False

    async def _write(self) -> None:
        """Write the pauses to the row and, if possible, to the vault. Then record their events.

        :raises StoreUnavailable: if the row or the events cannot be written.
        """
        while self._unwritten:
            await self._write_row()
        self.settle_up()
        while self._unrecorded:
            await self._runs.record(self._unrecorded[0])
            del self._unrecorded[0]

    async def _write_row(self) -> None:
        """Write the pauses to the row.

        :raises StoreUnavailable: if the row cannot be written.
        """
        written = self._standing
        await self._watermarks.put(PAUSED_ROW, write_pauses(written))
        self._unwritten = written is not self._standing

    def _refuse_too_many(self, pause: Pause) -> None:
        own = sum(_is_own(each) for each in self._standing.values())
        if _is_own(pause) and own >= MOST_SESSIONS:
            raise LimitExceeded("Too many sessions have paused themselves: ask your user to resume or to pause.")

    async def _change(self, seconds: float) -> bool:
        """Wait until any pause is removed. Return False if none is removed within C{seconds}."""
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
        event = self._runs.event_of_home(type_, actor, reason=pause.reason, since=to_json(pause)["since"])
        return evolve(event, session_id=pause.session_id)


def _is_own(pause: Pause) -> bool:
    """Return whether an agent paused its own session."""
    return pause.session_id is not None and pause.by == pause.session_id


def _paused_error(pause: Pause) -> Paused:
    whose = "Everything is paused" if pause.session_id is None else "This session is paused"
    details = {**to_json(pause), "retry_after": _RETRY_AFTER_SECONDS}
    because = f" ({pause.reason})" if pause.reason else ""
    return Paused(f"{whose}{because}: nothing starts until it is resumed.", details)


def write_pauses(standing: Mapping[str | None, Pause]) -> str:
    """Return the text of the row with these pauses."""
    return compact([to_json(pause) for pause in standing.values()])


def read_pauses(written: str | None, now: datetime) -> tuple[Pause, ...]:
    """Parse the text of the row with the pauses, which is None if nothing is paused.

    If the text is invalid, everything is paused.
    """
    if written is None:
        return ()
    try:
        return tuple(from_json(Pause, each) for each in json.loads(written))
    except (ValueError, TypeError):
        return (Pause(now, "service", "what was paused cannot be read any more"),)
