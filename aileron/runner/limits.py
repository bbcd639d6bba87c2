"""Keeps calls from being accepted and effects from beginning: pauses, rate limits of services, caps, denials, loops."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from zope.interface import implementer

from aileron.actions import inputs_given
from aileron.base.comparison import normalize_address, normalize_text, strip_invisible
from aileron.base.converter import from_json, to_json
from aileron.base.json import JSON, compact, digest_of_bytes, timestamp, utc
from aileron.base.waiting import Waiting
from aileron.model.actions import Action, Cap
from aileron.model.audit import Actor, Event
from aileron.model.authority import Halt, LoopLimits, OwnCap, Pause
from aileron.model.connectors import READ, Outcome
from aileron.model.errors import (
    AileronError,
    ApprovalDenied,
    ApprovalStale,
    Conflict,
    LimitExceeded,
    NotFound,
    Paused,
    StoreUnavailable,
    VaultLocked,
)
from aileron.model.interfaces.authority import IOperatorLimits
from aileron.model.interfaces.connectors import ICatalogue, IConnectors, IInputNormalizer
from aileron.model.interfaces.governance import ILimitService
from aileron.model.interfaces.store import IWatermarks
from aileron.model.interfaces.vault import IBindings, IVault
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.runs import NOT_BEGUN, Approval, Charge, Run, RunState
from aileron.model.sessions import Session
from aileron.model.vault import VaultState

from .plan import Plan, PlannedStep
from .runs import RunRepository, Verify
from .tasks import KeyedLocks, Tasks, shielded

_MOST_HELD_SECONDS = 3600.0
_MOST_EXCUSED_SECONDS = 24 * 3600.0
PAUSED_ROW = "paused"
"""The watermark that holds what is paused."""

MOST_SESSIONS = 256
"""Of what agents paused for themselves the oldest are forgotten beyond these; nobody has so many that live."""

_RETRY_AFTER_SECONDS = 60
_log = Logger()
BROKEN_FOR = timedelta(minutes=10)
DENIALS_WITHIN, CALLS_WITHIN = timedelta(minutes=10), timedelta(minutes=1)
_SESSION, _ACTION = "session", "action"
_Which: TypeAlias = tuple[str, str]
"""One of both, and its name."""

MOST_KEYS = 4096
LONGEST = timedelta(days=1)
"""No manifest's cool-down is longer."""

FORGIVEN = "approval.forgiven"
_MOST_DENIALS = 100  # of one action: the oldest beyond are forgotten
MOST_VALUES = 200
"""An argument with more values than these is not counted one by one, but refused where its values are capped."""

_HOUR_SECONDS = 3600.0
_WINDOWS = {_HOUR_SECONDS: "an hour", 86_400.0: "a day"}
_UNDER_WAY = RunQuery(states=(RunState.EXECUTING,), limit=1000, oldest_first=True)
_BEFORE_EFFECT = RunQuery(states=NOT_BEGUN, limit=1000, oldest_first=True)
_AGAIN = "It was approved before everything was paused: approve it once more to release it."
_AGAIN_HERE = "It was approved before its session was paused: approve it once more to release it."


@frozen
class ArgumentNormalizer:
    """Normalizes the arguments of actions as their connectors do."""

    _catalogue: ICatalogue
    _connectors: IConnectors

    def normalize(self, action: Action, name: str, value: JSON) -> JSON:
        """Return the normalized form of one argument."""
        found = normalize(value)
        for step in action.steps:
            connector = IInputNormalizer(self._connectors.get(step.connector), None)
            if connector is not None:
                for each in inputs_given(step, name):
                    found = connector.normalize_input(step.operation, each, found)
        return found

    def digests(self, action_name: str, arguments: JSON) -> frozenset[str]:
        """Return the digests of a call: two calls are identical if they have one in common.

        One is of the arguments alone.  If the action's file is there, another is of the forms that connectors know.
        """
        action = self._catalogue.current().actions.get(action_name)
        found = {request_digest(arguments)}
        if action is not None and isinstance(arguments, Mapping):
            forms = {name: self.normalize(action, name, value) for name, value in arguments.items()}
            found.add(request_digest(forms))
        return frozenset(found)


def request_digest(arguments: JSON) -> str:
    """Compute the digest by which two requests for one action are identical.

    Texts count in NFKC, without case, without characters that cannot be seen, and with each run of whitespace as one
    blank.  Everything else counts as it is: numbers, the order of lists, every word and every sign.  Names count their
    case as well.
    """
    return digest_of_bytes(compact(normalize(arguments)).encode("ascii"))


def normalize(value: JSON) -> JSON:
    """Return the value with its texts and names in the forms that L{request_digest} counts."""
    if isinstance(value, str):
        return normalize_text(value)
    if isinstance(value, Mapping):
        return _normalize_table(value)
    if isinstance(value, Sequence):
        return [normalize(item) for item in value]
    return value


def _normalize_table(table: Mapping[str, JSON]) -> JSON:
    """Return a table by normalized names; one whose name is another's then keeps its own."""
    found: dict[str, JSON] = {}
    for key, item in sorted(table.items()):
        name = strip_invisible(key)
        found[key if name in found else name] = normalize(item)
    return found


@frozen
class _Hold:
    """An account of a service that is rate-limited.

    :ivar of_preview: whether the answer to a preview asked for it, which anybody brings about who only asks.
    """

    account: tuple[str, str | None]
    of_preview: bool


@define(eq=False)
class RateLimits:
    """Stores in memory until when services asked for no requests.

    Each connector and account by itself, and no longer than an hour: a service cannot hold its runs for ever.  Nor can
    previews: they move no hold that stands, and put off the same run only once.
    """

    _clock: IReactorTime
    _until: dict[_Hold, float] = field(factory=dict, init=False)
    _excused: dict[str, float] = field(factory=dict, init=False)  # runs that previews put off, and when

    def noted(self, planned: PlannedStep, outcome: Outcome, *, of_preview: bool = False) -> Outcome:
        """Store until when the answer asks for no requests, unless a later time is stored, and return the answer."""
        now = self._clock.seconds()
        self._until = {hold: until for hold, until in self._until.items() if now < until <= now + _MOST_HELD_SECONDS}
        if not outcome.retry_after_seconds or (of_preview and self.seconds_left(planned)):
            return outcome
        hold, until = _Hold(planned.account, of_preview), now + min(outcome.retry_after_seconds, _MOST_HELD_SECONDS)
        self._until[hold] = max(until, self._until.get(hold, 0.0))
        return outcome

    def are_known(self) -> bool:
        """Return whether any service is rate-limited now."""
        return bool(self._until)

    def seconds_left(self, planned: PlannedStep, run_id: str | None = None) -> float:
        """Return how long a step must wait.

        :param run_id: of the run that it belongs to, which may be excused from what previews brought about.
        """
        kinds = (False,) if run_id in self._excused else (False, True)
        return max(self._left(_Hold(planned.account, of_preview)) for of_preview in kinds)

    def _left(self, hold: _Hold) -> float:
        left = self._until.get(hold, 0.0) - self._clock.seconds()
        return left if 0.0 < left <= _MOST_HELD_SECONDS else 0.0

    def put_off(self, planned: PlannedStep, run_id: str) -> float:
        """Return how many seconds to postpone a run for its step C{planned}; previews postpone it only once.

        Else a run whose own preview uses up the last request would never begin.
        """
        now, left = self._clock.seconds(), self.seconds_left(planned, run_id)
        self._excused = {each: at for each, at in self._excused.items() if 0 <= now - at < _MOST_EXCUSED_SECONDS}
        if left > self._left(_Hold(planned.account, of_preview=False)):
            self._excused[run_id] = now
        return left

    async def wait(self, planned: PlannedStep, run_id: str, seconds: float) -> bool:
        """Wait until C{planned} may be sent; return False if that takes longer than C{seconds} or the daemon stops."""
        left = self.seconds_left(planned, run_id)
        try:
            if 0.0 < left < seconds:
                await deferLater(self._clock, left)
        except CancelledError:
            return False  # nothing was sent: that is not in doubt
        return left < seconds

    def explain(self, planned: PlannedStep, seconds: float) -> str:
        """Describe the rate limit that lasts for C{seconds} more."""
        until = timestamp(utc(self._clock.seconds() + seconds))
        return f"{planned.description.name} is at its rate limit and asked for no requests before {until}."


@define(eq=False)
class Pauses:
    """The pauses, in memory, in the vault and in a database row."""

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
        """Return all pauses, oldest first."""
        return tuple(self._standing.values())

    def find(self, session_id: str | None) -> Pause | None:
        """Return the pause that applies to the session, or None if there is none."""
        standing = self._standing
        return standing.get(None) or standing.get(session_id)

    def refuse(self, session_id: str | None) -> None:
        """Refuse if runs of this session are paused.

        :raises Paused: something does.
        """
        pause = self.find(session_id)
        if pause is not None:
            raise _paused_error(pause)

    def guarded(self, verify: Verify | None) -> Verify:
        """Return a check for the transaction that begins a run: it raises L{Paused}, or as C{verify}."""

        def check(run: Run, approval: Approval | None) -> None:
            # guard of promise 2: a pause holds an approved run
            self.refuse(run.session_id)
            if verify is not None:
                verify(run, approval)

        return check

    async def over(self, session_id: str | None, seconds: float) -> bool:
        """Wait until no pause applies to the session; return False if one still does after C{seconds}."""
        until = self._clock.seconds() + seconds
        while self.find(session_id) is not None:
            if not await self._change(until - self._clock.seconds()):
                return False
        return True

    async def learn(self) -> None:
        """Load the pauses of the vault and of the row at the start.

        :raises StoreUnavailable: the row cannot be read.
        """
        written = (await self._watermarks.all()).get(PAUSED_ROW)
        found = {pause.session_id: pause for pause in _read_pauses(written, self._runs.now())}
        self._standing = {**found, **{pause.session_id: pause for pause in self._operator_limits.pauses()}}
        self._owed = bool(self._standing)
        self.settle_up()

    async def pause(self, pause: Pause, actor: Actor) -> Pause:
        """Store C{pause}.  Idempotent: if there is one already, it stays.

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
        """True if L{save} has something to write: a pause that a restart now would lose, or its event."""
        return self._unwritten or bool(self._unrecorded)

    async def save(self) -> None:
        """Write the pauses to the database and their events to the audit log, unless the database refuses."""
        try:
            await self._writing.run(self._write)
        except StoreUnavailable as error:
            _log.warn("what is paused is not saved yet: {why}", why=error.message)

    async def lift(self, session_id: str | None, actor: Actor) -> None:
        """Remove the pause of a session, or of everything.

        :raises VaultLocked, BindingFailed, StoreUnavailable: it stays paused.
        """
        pause = self._standing.get(session_id)
        if pause is not None:
            await self._writing.run(self._write)  # the record has the beginning before the end
            await self._writing.run(self._let_go, session_id)
            await self._runs.record(self._event("pause.ended", pause, actor))

    async def _let_go(self, session_id: str | None) -> None:
        """Remove the pause from the vault first: until the row is written too, a restart finds it paused."""
        left = self._remove(session_id)
        self._operator_limits.keep_pauses(tuple(left.values()))
        await self._watermarks.put(PAUSED_ROW, _write_pauses(left))
        self._standing = self._remove(session_id)  # what was paused meanwhile is written next
        self._lifted.fire()

    def _remove(self, session_id: str | None) -> dict[str | None, Pause]:
        return {name: pause for name, pause in self._standing.items() if name != session_id}

    def settle_up(self) -> None:
        """Write the pauses to the vault if an earlier write failed, unless it is locked."""
        if not self._owed:
            return
        try:
            self._operator_limits.keep_pauses(self.all())
        except AileronError as error:
            _log.info("the vault does not know yet what is paused: {why}", why=error.message)
        else:
            self._owed = False

    async def _write(self) -> None:
        """Write the pauses to the row and, unless it is locked, to the vault; then their events."""
        while self._unwritten:
            written = self._standing
            await self._watermarks.put(PAUSED_ROW, _write_pauses(written))
            self._unwritten = written is not self._standing
        self.settle_up()
        while self._unrecorded:
            await self._runs.record(self._unrecorded[0])
            del self._unrecorded[0]

    def _refuse_too_many(self, pause: Pause) -> None:
        own = sum(_is_own(each) for each in self._standing.values())
        if _is_own(pause) and own >= MOST_SESSIONS:
            raise LimitExceeded("Too many sessions have paused themselves: ask your user to resume or to pause.")

    async def _change(self, seconds: float) -> bool:
        """Wait for a pause to be removed, and return whether one was within C{seconds}."""
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


def _write_pauses(standing: Mapping[str | None, Pause]) -> str:
    return compact([to_json(pause) for pause in standing.values()])


def _read_pauses(written: str | None, now: datetime) -> tuple[Pause, ...]:
    """Read the pauses from their row; a row that cannot be read pauses everything."""
    if written is None:
        return ()
    try:
        return tuple(from_json(Pause, each) for each in json.loads(written))
    except (ValueError, TypeError):
        return (Pause(now, "service", "what was paused cannot be read any more"),)


@define(eq=False)
class EffectGate:
    """Decides whether effects may begin now: by the vault, the pauses and the rate limits of services.

    :param pauses: what is paused, even if the vault is unlocked.
    :param rates: which services asked for no requests for now.
    """

    _vault: IVault
    _bindings: IBindings
    _pauses: Pauses
    _rates: RateLimits
    _could_act: bool = field(default=False, init=False)  # at the last look
    _held: bool = field(default=False, init=False)
    _generation: int = field(default=0, init=False)  # of the bindings, at the last look

    def may_act(self) -> bool:
        """Return whether effects may begin now: the vault is unlocked, and nothing is held."""
        # guard of promise 2: nothing begins while the vault is locked -> NoDecisionTests.test_locked_call,
        #    instead return not self._held
        return not self._held and self._vault.state() is VaultState.UNLOCKED

    def hold(self) -> None:
        """Let no effect begin until the daemon starts again."""
        self._held = True

    def refuse_paused(self, session_id: str | None) -> None:
        """Raise L{Paused} if runs of the session are paused."""
        self._pauses.refuse(session_id)

    def is_paused(self, session_id: str | None) -> bool:
        """Return whether runs of the session are paused."""
        return self._pauses.find(session_id) is not None

    async def wait_unpaused(self, session_id: str | None, seconds: float) -> bool:
        """Wait until runs of the session are not paused; return False if they still are after C{seconds}."""
        return await self._pauses.over(session_id, seconds)

    def guard_opening(self, verify: Verify | None) -> Verify:
        """Return a check for the transaction that begins a run: it raises L{Paused}, or as C{verify}."""
        return self._pauses.guarded(verify)

    def note_rate(self, planned: PlannedStep, outcome: Outcome, *, of_preview: bool = False) -> Outcome:
        """Store until when the service of C{planned} asked for no requests, if C{outcome} says so, and return it."""
        return self._rates.noted(planned, outcome, of_preview=of_preview)

    def missed(self) -> None:
        """Have the next L{look} report that waiting runs may resume: the vault or a credential could not be used."""
        self._could_act = False

    def note_recovered(self) -> None:
        """Note at the start that the runs of the previous process are recovered: nothing waits to be resumed."""
        self._could_act = True

    def look(self, can_act: bool) -> bool:
        """Return whether runs that wait for the vault or a credential may resume: effects can begin, and could not.

        A binding that has changed since the last look may be what a run waits for.

        :param can_act: whether effects can begin now.
        """
        generation = self._bindings.bindings_generation()
        if generation != self._generation:
            self._generation = generation
            self.missed()
        could, self._could_act = self._could_act, can_act
        return can_act and not could

    async def in_turn(self, planned: PlannedStep, run: Run, seconds: float) -> None:
        """Wait for as long as the service of a step of C{run} asked for no requests.

        :raises LimitExceeded: that takes longer than C{seconds}, or everything is paused since.
        """
        left = self._rates.seconds_left(planned, run.id)
        if not left:
            return
        why = f"{self._rates.explain(planned, left)} This request was not sent."
        waited = await self._rates.wait(planned, run.id, seconds)
        if not waited or not await self._pauses.over(run.session_id, seconds - left):
            raise LimitExceeded(why, {"retry_after": max(1, round(left))})

    def require(self) -> None:
        """Refuse unless effects may begin now.

        :raises VaultLocked: they may not.
        """
        if not self.may_act():
            state = self._vault.state().value
            raise VaultLocked("The vault is locked: run `aileron vault unlock`.", {"state": state})


@define(eq=False)
class LoopBreaker:
    """Stops sessions and actions after too many identical calls or denials.  Counts in memory."""

    _runs: RunRepository
    _tasks: Tasks
    _limits: LoopLimits
    _calls: CallCounts = field(factory=lambda: CallCounts(CALLS_WITHIN), init=False)
    _denied: dict[_Which, deque[datetime]] = field(factory=dict, init=False)  # never pushed out by calls
    _stopped: dict[_Which, tuple[datetime, str]] = field(factory=dict, init=False)  # until when, and why

    def refuse(self, session: Session, action: str, arguments: Mapping[str, JSON]) -> None:
        """Count an agent's call, and refuse it if its session or its action is stopped.

        :raises LimitExceeded: one of them is.
        """
        now, limits = self._runs.now(), self._limits
        same = digest_of_bytes(compact({"action": action, "arguments": arguments}).encode("ascii"))
        by_session, by_action = (_SESSION, session.id), (_ACTION, action)
        self._check(by_session, now)
        self._check(by_action, now)
        if self._calls.is_beyond((session.id, same), limits.same_calls, now):
            self._stop(by_session, f"The same call was made more than {limits.same_calls} times within a minute.", now)
        if self._calls.is_beyond(same, limits.same_calls_of_all, now):
            times = f"{limits.same_calls_of_all} times within a minute, by all sessions"
            self._stop(by_action, f"The same call was made more than {times}.", now)
        self._check(by_session, now)
        self._check(by_action, now)

    def denied(self, approval: Approval, *, on_record: bool = False) -> None:
        """Count a denial.

        :param on_record: whether the record tells already what was stopped by it, as of an earlier life.
        """
        at, limits = approval.decided_at or approval.run.changed_at, self._limits
        rules = {
            _SESSION: (limits.denials, f"{limits.denials} calls"),
            _ACTION: (limits.denials_of_action, f"this action {limits.denials_of_action} times"),
        }
        for which in _list_concerned(approval.run):
            most, what = rules[which[0]]
            if count(self._denied.setdefault(which, deque()), most - 1, at - DENIALS_WITHIN, at):
                self._stop(which, f"The user denied {what} within ten minutes.", at, on_record=on_record)

    def forgive(self, run: Run) -> None:
        """Let the session and the action of a denied run continue."""
        for which in _list_concerned(run):
            self._stopped.pop(which, None)
            self._denied.pop(which, None)

    def _stop(self, which: _Which, why: str, at: datetime, *, on_record: bool = False) -> None:
        """Refuse calls of the session or action for a while from C{at}, unless it is stopped already."""
        until, _ = self._stopped.get(which, (at, ""))
        if until > at:
            return
        self._stopped = {name: each for name, each in self._stopped.items() if each[0] > at}
        self._stopped[which] = at + BROKEN_FOR, why
        if not on_record:
            kind, name = which
            event = self._runs.event_of_home("session.broken", why=why)
            event = evolve(event, session_id=name) if kind == _SESSION else evolve(event, action=name)
            self._tasks.start(f"on record that {kind} {name} is stopped", self._append(event))

    def _check(self, which: _Which, now: datetime) -> None:
        until, why = self._stopped.get(which, (now, ""))
        if until <= now:
            self._stopped.pop(which, None)
            return
        whose = "Calls of this session are" if which[0] == _SESSION else "This action is"
        raise LimitExceeded(
            f"{why} {whose} refused for a while. Stop, and ask your user what to do.",
            {"retry_after": max(1, round((until - now).total_seconds()))},
        )

    async def _append(self, event: Event) -> None:
        await self._runs.record(event)


def _list_concerned(run: Run) -> list[_Which]:
    """Return the session and the action that a denial counts for; none for the operator's own runs."""
    return [] if run.session_id is None else [(_SESSION, run.session_id), (_ACTION, run.action)]


@define(eq=False)
class CallCounts:
    """Counts keys within a time span; drops keys that were not counted in it.

    That happens when another one is counted.  A clock that was set back counts what lies ahead of it as well, and a key
    that does keeps those that were counted after it.

    :param within: what is of late.
    :param most_keys: beyond them the one that was counted longest ago is forgotten.
    """

    _within: timedelta
    _most_keys: int = MOST_KEYS
    _counted: OrderedDict[Hashable, deque[datetime]] = field(factory=OrderedDict, init=False)

    def __len__(self) -> int:
        """Return the number of keys that take memory."""
        return len(self._counted)

    def is_beyond(self, key: Hashable, most: int, now: datetime) -> bool:
        """Count C{key} and return whether it was counted more than C{most} times within the span."""
        times = self._counted.setdefault(key, deque())
        self._counted.move_to_end(key)
        since = now - self._within
        beyond = count(times, most, since, now)
        self._forget(since)
        return beyond

    def _forget(self, since: datetime) -> None:
        longest_ago = next(iter(self._counted))
        while len(self._counted) > self._most_keys or self._counted[longest_ago][-1] <= since:
            del self._counted[longest_ago]
            longest_ago = next(iter(self._counted))


def count(times: deque[datetime], most: int, since: datetime, now: datetime) -> bool:
    """Add C{now}, drop times up to C{since}, and return whether more than C{most} are left."""
    times.append(now)
    while len(times) > most + 1 or times[0] <= since:
        times.popleft()
    return len(times) > most


@frozen
class _Denied:
    """A denial, as later calls are compared with it.

    :ivar digests: of the request, as L{ArgumentNormalizer.digests} computes them.
    """

    run_id: str
    digests: frozenset[str]
    at: datetime
    reason: str | None


@define(eq=False)
class Denials:
    """The denials of the last day by action, in memory; loaded from the database at the start."""

    _runs: RunRepository
    _breaker: LoopBreaker
    _normalizer: ArgumentNormalizer
    _of: dict[str, deque[_Denied]] = field(factory=dict, init=False)

    async def learn(self) -> None:
        """Load the denials of the last day that were not lifted.

        :raises StoreUnavailable: that cannot be read.
        """
        since = self._runs.now() - LONGEST
        query = AuditQuery(type=FORGIVEN, since=since, limit=1000)
        forgiven = {record.event.run_id for record in (await self._runs.list_records(query)).items}
        for approval in await self._runs.list_denials(since):
            if approval.run.id not in forgiven:
                self._keep(approval)
                self._breaker.denied(approval, on_record=True)

    def note(self, approval: Approval) -> None:
        """Store a denial."""
        self._keep(approval)
        self._breaker.denied(approval)

    def admit(self, session: Session, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Refuse an agent's call if it was denied or its session or action is stopped.

        :raises LimitExceeded: the session or the action is.
        :raises ApprovalDenied: it was denied lately.
        """
        self._breaker.refuse(session, action.name, arguments)
        self.refuse(action, arguments)

    def refuse(self, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Refuse a call that was denied within the action's cool-down.

        :raises ApprovalDenied: it was.
        """
        now, cool_down = self._runs.now(), timedelta(seconds=action.approval.cool_down_seconds)
        lately = [each for each in self._of.get(action.name, ()) if each.at + cool_down > now]
        if not lately:
            return
        asked = self._normalizer.digests(action.name, arguments)
        for each in reversed(lately):
            if asked & each.digests:
                raise _denied_error(each, each.at + cool_down, now)

    def is_same(self, one: Run, other: Run) -> bool:
        """Return whether two runs ask for the same, by the comparison of later calls with a denied one."""
        digests = [self._normalizer.digests(each.action, each.asked_for) for each in (one, other)]
        return one.action == other.action and not digests[0].isdisjoint(digests[1])

    async def forgive(self, run_id: str, actor: Actor) -> Approval:
        """Lift a denial: identical requests are accepted again, and agents stopped by it continue.  Idempotent.

        :raises NotFound: there is no such approval.
        :raises Conflict: it was not denied.
        :raises StoreUnavailable: it counts on.
        """
        approval = await self._runs.approval(run_id)
        run = approval.run
        if run.state is not RunState.DENIED:
            raise Conflict(f"The run is {run.state.value}, so there is no denial to lift.", {"state": run.state.value})
        kept = self._of.get(run.action, deque())
        if run.id in {each.run_id for each in kept}:
            await self._runs.record(self._runs.event_of_run(FORGIVEN, run, actor))
            self._of[run.action] = deque((each for each in kept if each.run_id != run.id), _MOST_DENIALS)
            self._breaker.forgive(run)
        return approval

    def _keep(self, approval: Approval) -> None:
        run = approval.run
        at = approval.decided_at or run.changed_at
        denied = _Denied(run.id, self._normalizer.digests(run.action, run.asked_for), at, approval.reason)
        kept = self._of.setdefault(run.action, deque(maxlen=_MOST_DENIALS))
        kept.append(denied)
        while kept[0].at <= at - LONGEST:
            kept.popleft()


def _denied_error(denied: _Denied, until: datetime, now: datetime) -> ApprovalDenied:
    because = f" Reason: {denied.reason}" if denied.reason else ""
    details: dict[str, JSON] = {
        "run_id": denied.run_id,
        "until": timestamp(until),
        "retry_after": max(1, round((until - now).total_seconds())),
    }
    if denied.reason is not None:
        details["reason"] = denied.reason
    return ApprovalDenied(
        f"The user denied this at {timestamp(denied.at)}.{because} "
        f"Identical requests are refused until {timestamp(until)}. Do not repeat or reword it; ask your user.",
        details,
    )


def _is_unwatched(plan: Plan) -> bool:
    """Return whether the plan writes without an approval, so that nobody would stop an agent in a loop."""
    return not plan.action.approval.gated and any(step.effect != READ for step in plan.steps)


def _is_hourly(cap: Cap) -> bool:
    return cap.argument is None and cap.seconds == _HOUR_SECONDS


def _charges(cap: Cap, action: Action | None, values: Sequence[str], session_id: str | None) -> Iterator[Charge]:
    counted: dict[str, JSON] = {"action": None if action is None else action.name, "argument": cap.argument}
    if cap.per_session:
        counted["session"] = session_id
    if cap.argument is None:
        yield Charge(_key(counted), cap.most, cap.seconds, _message(cap, action))
        return
    for value in values:
        yield Charge(_key({**counted, "value": value}), cap.most, cap.seconds, _message(cap, action))


def _values(name: str, given: JSON) -> Sequence[str]:
    """Return the distinct values of a normalized argument as they are counted; none if it is missing."""
    if given is None:
        return ()
    items = [given] if isinstance(given, str | Mapping) or not isinstance(given, Sequence) else given
    values = dict.fromkeys(_write_counted(item) for item in items)
    if len(values) > MOST_VALUES:
        raise LimitExceeded(f"{name} has more than {MOST_VALUES} values, and each of them is limited.")
    return tuple(values)


def _write_counted(value: JSON) -> str:
    """Return the text by which a value is counted; strings never equal other values.

    A capped argument is what something is counted for, so an address with a name counts as the address.
    """
    return f"text {normalize_address(value)}" if isinstance(value, str) else f"json {compact(value)}"


def _key(counted: Mapping[str, JSON]) -> str:
    """Return an opaque key, so that the table does not reveal the counted value."""
    return digest_of_bytes(compact({"tag": "aileron.cap.v1", **counted}).encode("ascii"))


def _message(cap: Cap, action: Action | None) -> str:
    what = "all actions together" if action is None else action.name
    for_each = f" for each value of {cap.argument}" if cap.argument is not None else ""
    times = "once" if cap.most == 1 else f"{cap.most} times"
    whose = " in each session" if cap.per_session else ""
    return f"The limit for {what} is reached: {times} {_WINDOWS[cap.seconds]}{for_each}{whose}."


def _usual(limits: LoopLimits) -> Cap | None:
    most = limits.writes_an_hour
    return None if most is None else Cap(most, _HOUR_SECONDS, per_session=True)


@define(eq=False)
class Caps:
    """Counts runs against the caps of actions and of the operator, and stores the latter."""

    _runs: RunRepository
    _operator_limits: IOperatorLimits
    _normalizer: ArgumentNormalizer
    _usual: Cap | None = field(converter=_usual)  # of an agent's unwatched writes that have no other hourly limit

    def charges(self, plan: Plan, arguments: Mapping[str, JSON], session_id: str | None) -> tuple[Charge, ...]:
        """Return the charges of a run: the counters that it counts in, each with its limit.

        :raises LimitExceeded: an argument has more values than can be counted.
        """
        action, own = plan.action, self._operator_limits.caps()
        caps = [*action.limits, *(each.cap for each in own if each.action == action.name)]
        if (
            session_id is not None
            and self._usual is not None
            and _is_unwatched(plan)
            and not any(map(_is_hourly, caps))
        ):
            caps.append(self._usual)
        found = [
            charge
            for cap in caps
            for charge in _charges(cap, action, self._list_values(cap, action, arguments), session_id)
        ]
        for each in own:
            if each.action is None:
                values = self._list_values(each.cap, action, arguments)
                found.extend(_charges(each.cap, None, values, session_id))
        return tuple(found)

    def _list_values(self, cap: Cap, action: Action, arguments: Mapping[str, JSON]) -> Sequence[str]:
        """Return the normalized values that a cap counts separately; empty if it counts none separately."""
        name = cap.argument
        if name is None or name not in arguments:
            return ()
        return _values(name, self._normalizer.normalize(action, name, arguments[name]))

    async def refuse_full(self, plan: Plan, arguments: Mapping[str, JSON], session_id: str | None) -> None:
        """Refuse a run that could not begin now because a cap is reached; it is charged only when it begins.

        :raises LimitExceeded: it could not.
        """
        found = self.charges(plan, arguments, session_id)
        if found:
            await self._runs.require_room(found)

    def own(self) -> tuple[OwnCap, ...]:
        """Return the operator's own caps."""
        return self._operator_limits.caps()

    async def put(self, caps: Sequence[OwnCap], actor: Actor) -> tuple[OwnCap, ...]:
        """Record the operator's caps in the audit log, then store them in the vault."""
        now = self._runs.now()
        fresh = {each.name: evolve(each, set_at=now, set_by=actor.id) for each in caps}
        for each in fresh.values():
            await self._runs.record(self._runs.event_of_home("cap.set", actor, **_describe(each)))
        kept = {each.name: each for each in self.own()}
        self._operator_limits.keep_caps(tuple({**kept, **fresh}.values()))
        return tuple(fresh.values())

    async def remove(self, which: OwnCap, actor: Actor) -> None:
        """Record the removal of a cap in the audit log, then remove it from the vault."""
        if which.name not in {each.name for each in self.own()}:
            raise NotFound("There is no such limit.")
        await self._runs.record(self._runs.event_of_home("cap.removed", actor, **_describe(which)))
        self._operator_limits.keep_caps(tuple(each for each in self.own() if each.name != which.name))


def _describe(own: OwnCap) -> dict[str, JSON]:
    return {
        "action": own.action,
        "argument": own.cap.argument,
        "per_session": own.cap.per_session,
        "most": own.cap.most,
        "seconds": own.cap.seconds,
    }


@frozen(eq=False)
class Limits:
    """Refuses calls while a pause, a cap, an earlier denial or a stopped loop forbids them."""

    _pauses: Pauses
    _effects: EffectGate
    _caps: Caps
    _denials: Denials

    async def learn(self) -> None:
        """Load the pauses and denials that the previous process stored.

        :raises StoreUnavailable: they cannot be read.
        """
        await self._pauses.learn()
        await self._denials.learn()

    def require_effects(self) -> None:
        """Raise L{VaultLocked} unless effects may begin now."""
        self._effects.require()

    async def refuse_full(self, plan: Plan, arguments: Mapping[str, JSON], session_id: str | None) -> None:
        """Raise L{LimitExceeded} if a cap is reached; see L{Caps.refuse_full}."""
        await self._caps.refuse_full(plan, arguments, session_id)

    def admit(self, session: Session | None, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Refuse a call that may not be accepted now; the operator's own is stopped by a pause alone.

        :raises Paused, LimitExceeded, ApprovalDenied: the call is refused.
        """
        self._pauses.refuse(None if session is None else session.id)
        if session is not None:
            self._denials.admit(session, action, arguments)


@implementer(ILimitService)
@frozen(eq=False)
class LimitService:
    """Pauses and resumes runs, lifts denials, and stores the operator's caps, even if the caller disconnects meanwhile.

    :param ask_again: requests another approval for an approved run.
    :param begin: schedules an approved run.
    :param stop_looking: ends the look-ups of uncertain effects.
    """

    _runs: RunRepository
    _pauses: Pauses
    _effects: EffectGate
    _caps: Caps
    _denials: Denials
    _ask_again: Callable[[Run, ApprovalStale], Awaitable[None]]
    _begin: Callable[[Run], None]
    _stop_looking: Callable[[], None]
    _tasks: Tasks
    _locks: KeyedLocks

    async def hold(self) -> None:
        self._effects.hold()
        self._stop_looking()
        await self._tasks.at_rest()

    def pauses(self) -> tuple[Pause, ...]:
        return self._pauses.all()

    def caps(self) -> tuple[OwnCap, ...]:
        return self._caps.own()

    @shielded
    async def set_caps(self, caps: Sequence[OwnCap], actor: Actor) -> tuple[OwnCap, ...]:
        return await self._caps.put(caps, actor)

    @shielded
    async def remove_cap(self, which: OwnCap, actor: Actor) -> None:
        await self._caps.remove(which, actor)

    @shielded
    async def forgive(self, run_id: str, actor: Actor) -> Approval:
        return await self._denials.forgive(run_id, actor)

    @shielded
    async def pause(self, session_id: str | None, reason: str | None, actor: Actor) -> Halt:
        pause = Pause(self._runs.now(), actor.id, reason, session_id)
        standing = await self._pauses.pause(pause, actor)
        under_way = tuple([run async for run in self._list_matching(_UNDER_WAY, session_id)])
        return Halt(standing, under_way, saved=not self._pauses.is_owing)

    @shielded
    async def resume(self, session_id: str | None, actor: Actor) -> tuple[Run, ...]:
        if session_id not in {pause.session_id for pause in self.pauses()}:
            return ()
        self._effects.require()
        asked = [run async for run in self._ask_anew(session_id)]
        await self._pauses.lift(session_id, actor)
        async for run in self._list_matching(_BEFORE_EFFECT, session_id):
            self._begin(run)  # it was approved while the others were asked anew
        return tuple(asked)

    async def _ask_anew(self, session_id: str | None) -> AsyncIterator[Run]:
        """Request another approval of runs that have not begun, while nothing can begin."""
        why = ApprovalStale(_AGAIN if session_id is None else _AGAIN_HERE)
        async for run in self._list_matching(_BEFORE_EFFECT, session_id):
            if not run.gated or self._stays_paused(run, session_id):
                continue
            asked = await self._locks.run(run.id, lambda run_id=run.id: self._ask_one(run_id, why))  # type: ignore[misc]
            if asked is not None:
                yield asked

    async def _ask_one(self, run_id: str, why: ApprovalStale) -> Run | None:
        run = await self._runs.run(run_id)
        if run.state not in _BEFORE_EFFECT.states:  # it was taken back
            return None
        await self._ask_again(run, why)
        return await self._runs.run(run_id)

    def _stays_paused(self, run: Run, resumed: str | None) -> bool:
        """Return whether the run's own session stays paused."""
        paused = {pause.session_id for pause in self.pauses()} - {None, resumed}
        return run.session_id in paused

    def _list_matching(self, query: RunQuery, session_id: str | None) -> AsyncIterator[Run]:
        return self._runs.all(evolve(query, session_id=session_id))
