"""The outcomes of runs that agents have not fetched yet. Each outcome is given to a waiting agent once.

They are kept in memory, so after a restart of the daemon older outcomes wake no agent. Each of several daemons on one
database collects all outcomes; which of them an agent knows is in the database.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.json import utc
from aileron.base.waiting import Waiting
from aileron.model.audit import DAEMON, Event
from aileron.model.errors import StoreUnavailable
from aileron.model.interfaces.store import IAudit, IRuns
from aileron.model.queries import RunQuery
from aileron.model.runs import AWAITING, Run, RunState
from aileron.model.wakes import WakeClaim, WakeHow, WakeWaiter

from .values import WakeAnswer, WakeOutcome, WakeSettings, describe_outcome

MOST_SESSIONS = 1024
MOST_TOLD = 256
"""The most runs of a session of which is remembered that its agent knows the outcome."""

MOST_READY = 64
"""The most outcomes of a session that wait for its agent. Further ones take the place of the oldest."""

_ENDS = frozenset(
    (
        "execution.succeeded",
        "execution.failed",
        "execution.unknown",
        "approval.denied",
        "approval.expired",
        "run.cancelled",
    )
)
_UNSETTLED = (RunState.PENDING, RunState.APPROVED, *AWAITING, RunState.EXECUTING)
_WAIT_SECONDS, _PAUSE_SECONDS = 300.0, 5.0
_log = Logger()


class SharedWakes(Protocol):
    """Stores for several daemons which outcomes agents know.

    Every method raises L{StoreUnavailable} if nothing could be stored.
    """

    async def begin(self, session_id: str, conversation: str) -> WakeWaiter:
        """Note a request that waits for an outcome, in the place of the session's earlier ones, and return it."""

    async def name_conversation(self, session_id: str, conversation: str) -> None:
        """Store the agent's own ID of its conversation."""

    async def tell(self, session_id: str, run_id: str) -> None:
        """Note that the agent has fetched the outcome of a run. Idempotent."""

    async def claim(self, event: Event, how: WakeHow, number: int, most_resumes: int) -> WakeClaim:
        """Give the outcome of a run to the request with this number, and record the event, in one transaction."""


@define(eq=False)
class _SessionOutcomes:
    """The outcomes of one session's runs.

    :ivar told: the runs whose outcome the agent knows, the newest last.
    :ivar ready: the ended runs that wait to be given out, the oldest first.
    :ivar resting: the timers of ended runs that the agent may still fetch by itself.
    :ivar version: grows whenever an outcome or the session changes.
    :ivar waiter: the number of the newest request. Earlier ones have ended.
    """

    told: OrderedDict[str, None] = field(factory=OrderedDict)
    ready: OrderedDict[str, None] = field(factory=OrderedDict)
    resting: dict[str, IDelayedCall] = field(factory=dict)
    conversation: str = ""
    resumes: int = 0
    version: int = 0
    waiter: int = 0
    _news: Waiting = field(factory=Waiting)

    def tell(self, run_id: str) -> None:
        """Record that the agent knows the outcome of a run, so that the run does not wake it."""
        self.told[run_id] = None
        self.told.move_to_end(run_id)
        if len(self.told) > MOST_TOLD:
            self.told.popitem(last=False)
        self.ready.pop(run_id, None)
        timer = self.resting.pop(run_id, None)
        if timer is not None:
            timer.cancel()
        self.change()

    def put_back(self, run_id: str) -> None:
        """Make an outcome the next one to be given out, because the agent was not told of it after all."""
        self.told.pop(run_id, None)
        self.ready[run_id] = None
        self.ready.move_to_end(run_id, last=False)

    def change(self) -> None:
        """Wake up the requests that wait for an outcome, so that they check whether one is ready."""
        self.version += 1
        self._news.fire()

    async def wait(self, clock: IReactorTime, seconds: float) -> None:
        """Wait until the outcomes change, or until C{seconds} have passed."""
        try:
            await self._news.wait(over=False).addTimeout(seconds, clock)
        except TimeoutError:
            return

    def stop(self) -> None:
        """Cancel the timers of the session, and end the requests that wait for an outcome."""
        for timer in self.resting.values():
            timer.cancel()
        self.resting.clear()
        self.change()


class _SupersededError(Exception):
    """Raised if a later request of the session waits at another daemon."""


@define(eq=False)
class OutcomeService:
    """Collects the outcomes of runs that needed an approval, and gives each to the agent that waits for it.

    :param ids: returns a fresh ULID at each call.
    :param shared: stores for all daemons on the database which outcomes agents know, or None if there are no others.
    """

    settings: WakeSettings
    _audit: IAudit
    _runs: IRuns
    _clock: IReactorTime
    _ids: Callable[[], str]
    _shared: SharedWakes | None = None
    _writing: set[Deferred[None]] = field(factory=set, init=False)
    _sequence: int = field(default=0, init=False)
    _sessions: OrderedDict[str, _SessionOutcomes] = field(factory=OrderedDict, init=False)

    async def begin(self) -> None:
        """Set the place from which L{follow} reads: after the last event of the audit log so far.

        :raises StoreUnavailable: if the audit log cannot be read.
        """
        head = await self._audit.head()
        self._sequence = 0 if head is None else head[0]

    async def follow(self) -> None:
        """Read the audit log and collect runs that end, until cancelled.

        Failures of the store, and of single events, are logged.
        """
        while True:
            try:
                news = await self._audit.news(self._sequence, _WAIT_SECONDS)
                for record in news:
                    self._sequence = record.sequence
                    await self._notice(record.event)
            except CancelledError:
                raise
            except StoreUnavailable as error:
                _log.warn("ended runs are not noticed yet: {why}", why=error.message)
                await deferLater(self._clock, _PAUSE_SECONDS)
            except Exception:  # noqa: BLE001 - the loop must continue: otherwise no agent would be woken any more
                _log.failure("noticing an ended run")
                await deferLater(self._clock, _PAUSE_SECONDS)

    def outcome_told(self, session_id: str, run_id: str) -> None:
        """Record that the agent of a session was given the outcome of a run, so that the run does not wake it."""
        own = self._of(session_id)
        if self._shared is not None and (run_id in own.resting or run_id in own.ready):
            self._write(self._shared.tell(session_id, run_id))
        own.tell(run_id)

    def name_conversation(self, session_id: str, conversation: str) -> None:
        """Store the agent's own ID of its conversation, by which the agent can be resumed."""
        self._of(session_id).conversation = conversation
        if self._shared is not None:
            self._write(self._shared.name_conversation(session_id, conversation))

    def session_ended(self, session_id: str) -> None:
        """Delete the outcomes of a session that has ended, and end its requests that wait for one. Idempotent."""
        own = self._sessions.pop(session_id, None)
        if own is not None:
            own.stop()

    def stop(self) -> None:
        """Delete the outcomes of all sessions, and end the requests that wait for one."""
        for session_id in tuple(self._sessions):
            self.session_ended(session_id)

    async def at_rest(self) -> None:
        """Wait until what was told to agents is stored for the other daemons."""
        while self._writing:
            await next(iter(self._writing))

    async def next(
        self, session_id: str, seconds: float, *, conversation: str = "", resumes: bool = False
    ) -> WakeAnswer:
        """Return the next outcome of a session that its agent does not know, and never return it again.

        Wait for it at most C{seconds}, and only while a run may still end. A later request of the session ends this
        one.

        :param conversation: the agent's own ID of its conversation; empty to keep the one known.
        :param resumes: whether the agent has ended and is resumed with the outcome.
        :raises StoreUnavailable: if it cannot be recorded. The outcome is kept.
        """
        own = self._of(session_id)
        own.conversation = conversation or own.conversation
        own.waiter = number = own.waiter + 1
        own.change()
        until = self._clock.seconds() + seconds
        waiter = await self._begin_shared(session_id, own)
        while self._sessions.get(session_id) is own and own.waiter == number:
            version = own.version
            # guard of waking: an agent is resumed only so often in a session
            #    -> wake.test_outcomes.ResumeTests.test_bounded, instead may_resume = True
            may_resume = not resumes or own.resumes < self.settings.most_resumes
            try:
                outcome = await self._claim(session_id, own, waiter, resumes=resumes) if may_resume else None
            except _SupersededError:
                break
            is_waiting = may_resume and (bool(own.resting) or await self._count_unsettled(session_id) > 0)
            left = until - self._clock.seconds()
            if outcome is not None or not is_waiting or left <= 0:
                return self._answer(own, outcome, waiting=is_waiting)
            if own.version == version:
                await own.wait(self._clock, left)
        return WakeAnswer(False, None, own.conversation, self._count_left(own))

    def _answer(self, own: _SessionOutcomes, outcome: WakeOutcome | None, *, waiting: bool) -> WakeAnswer:
        return WakeAnswer(waiting or bool(own.ready), outcome, own.conversation, self._count_left(own))

    def _count_left(self, own: _SessionOutcomes) -> int:
        return max(0, self.settings.most_resumes - own.resumes)

    async def _begin_shared(self, session_id: str, own: _SessionOutcomes) -> int:
        """Note the request for all daemons, learn what they know of the session, and return the request's number.

        Without other daemons, return 0.
        """
        if self._shared is None:
            return 0
        waiter = await self._shared.begin(session_id, own.conversation)
        own.conversation, own.resumes = waiter.conversation, waiter.resumes
        return waiter.number

    async def _claim(self, session_id: str, own: _SessionOutcomes, waiter: int, *, resumes: bool) -> WakeOutcome | None:
        """Remove the oldest ready outcome, record that it wakes the agent, and return it, or None if there is none.

        :param waiter: the number of the request among those at all daemons.
        :raises _SupersededError: if a later request of the session waits at another daemon.
        """
        while own.ready:
            run_id = own.ready.popitem(last=False)[0]
            run = await self._runs.get(run_id)
            # guard of waking: an outcome that the agent has fetched does not wake it, instead is_told = False
            is_told = run_id in own.told
            if run is None or is_told:
                continue
            outcome = describe_outcome(run)
            own.tell(run_id)
            try:
                claim = await self._record(run, session_id, waiter, WakeHow.RESUMED if resumes else WakeHow.WOKEN)
            except StoreUnavailable:
                own.put_back(run_id)
                raise
            if claim is WakeClaim.TOLD:
                continue
            if claim is not WakeClaim.GIVEN:
                own.put_back(run_id)
                if claim is WakeClaim.SUPERSEDED:
                    raise _SupersededError
                own.resumes = self.settings.most_resumes
                return None
            own.resumes += resumes
            return outcome
        return None

    async def _record(self, run: Run, session_id: str, waiter: int, how: WakeHow) -> WakeClaim:
        """Record that an outcome wakes the agent, unless another daemon has told the agent of it."""
        event = Event(
            self._ids(),
            "wake.sent",
            utc(self._clock.seconds()),
            DAEMON,
            {"state": run.state.value, "how": how.value},
            run_id=run.id,
            session_id=session_id,
            action=run.action,
        )
        if self._shared is not None:
            return await self._shared.claim(event, how, waiter, self.settings.most_resumes)
        await self._audit.append(event)
        return WakeClaim.GIVEN

    def _write(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a write for the other daemons. If it fails, they may tell the agent what it knows already."""
        writing = Deferred.fromCoroutine(work)
        self._writing.add(writing)
        writing.addErrback(_log_unwritten).addBoth(lambda _: self._writing.discard(writing))

    async def _count_unsettled(self, session_id: str) -> int:
        return await self._runs.count(RunQuery(states=_UNSETTLED, session_id=session_id, gated=True))

    async def _notice(self, event: Event) -> None:
        if event.type not in _ENDS or event.run_id is None or event.session_id is None:
            return
        run = await self._runs.get(event.run_id)
        own = self._of(event.session_id)
        # guard of waking: a denied run wakes nobody -> wake.test_outcomes.EndTests.test_denied, instead wakes = True
        wakes = run is not None and run.gated and run.state in self.settings.states
        # guard of waking: an outcome that the agent has fetched does not wake it
        #    -> wake.test_outcomes.ToldTests.test_before, instead is_told = False
        is_told = event.run_id in own.told
        if wakes and not is_told:
            self._rest(own, event.run_id)
        elif wakes and self._shared is not None:
            self._write(self._shared.tell(event.session_id, event.run_id))
        own.change()

    def _rest(self, own: _SessionOutcomes, run_id: str) -> None:
        """Start a timer that gives the agent time to fetch an outcome by itself.

        When it is over, the outcome is ready.
        """
        if run_id in own.resting or run_id in own.ready:
            return

        def over() -> None:
            del own.resting[run_id]
            own.ready[run_id] = None
            if len(own.ready) > MOST_READY:
                own.ready.popitem(last=False)
            own.change()

        own.resting[run_id] = self._clock.callLater(self.settings.after_seconds, over)

    def _of(self, session_id: str) -> _SessionOutcomes:
        own = self._sessions.setdefault(session_id, _SessionOutcomes())
        self._sessions.move_to_end(session_id)
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)[1].stop()
        return own


def _log_unwritten(failure: Failure) -> None:
    failure.trap(StoreUnavailable)
    _log.warn("other daemons do not know what an agent was told: {why}", why=failure.getErrorMessage())
