"""Applies all limits to calls, and lets the operator pause and resume, lift denials and set caps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from attrs import evolve, frozen
from zope.interface import implementer

from aileron.base.json import JSON
from aileron.model.actions import Action
from aileron.model.audit import Actor
from aileron.model.authority import Halt, OwnCap, Pause
from aileron.model.errors import ApprovalStale, StateConflict, StoreUnavailable
from aileron.model.interfaces.governance import ILimitService
from aileron.model.queries import RunQuery
from aileron.model.runs import NOT_BEGUN, Approval, Run, RunState
from aileron.model.sessions import Session

from .caps import Caps
from .denials import Denials
from .effect_gate import EffectGate
from .loops import LoopBreaker
from .pauses import Pauses
from .plan import Plan
from .runs import RunRepository
from .tasks import KeyedLocks, Tasks, shielded

_UNDER_WAY = RunQuery(states=(RunState.EXECUTING,), limit=1000, oldest_first=True)
_BEFORE_EFFECT = RunQuery(states=NOT_BEGUN, limit=1000, oldest_first=True)
_AGAIN = "It was approved before everything was paused: approve it once more to release it."
_AGAIN_HERE = "It was approved before its session was paused: approve it once more to release it."


@frozen(eq=False)
class Limits:
    """Refuses calls while a pause, a cap, an earlier denial or a stopped loop forbids them.

    :ivar is_shared: whether other daemons use the same database, so that L{consult} is called for each call.
    """

    _pauses: Pauses
    _effects: EffectGate
    _caps: Caps
    _denials: Denials
    _breaker: LoopBreaker
    is_shared: bool

    async def learn(self) -> None:
        """Load the pauses and denials that the previous process stored.

        :raises StoreUnavailable: if they cannot be read.
        """
        await self._pauses.learn()
        await self._denials.learn()

    def require_effects(self) -> None:
        """Check that effects may begin now.

        :raises VaultLocked: if they may not.
        """
        self._effects.require()

    async def refuse_full(self, plan: Plan, arguments: Mapping[str, JSON], session_id: str | None) -> None:
        """Refuse a run that could not begin now because a cap is reached. Nothing is counted.

        :raises LimitExceeded: if a cap is reached, or an argument has more values than can be counted.
        """
        await self._caps.refuse_full(plan, arguments, session_id)

    async def consult(self, session: Session | None, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Count a call for all daemons on the database, and read the rate limits that others know of.

        :raises Paused: if everything or the session is paused. Nothing is counted.
        :raises LimitExceeded: if the session or the action is stopped.
        :raises StoreUnavailable: if the call cannot be counted.
        """
        self._pauses.refuse(None if session is None else session.id)
        if session is not None:
            await self._breaker.count_shared(session, action.name, arguments)
        await self._effects.learn_rates()

    def admit(self, session: Session | None, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Refuse a call that may not be accepted now. A call by the operator (no session) is refused only by a pause.

        :raises Paused: if everything or the session is paused.
        :raises LimitExceeded: if the session or the action is stopped.
        :raises ApprovalDenied: if an identical call was denied lately.
        """
        self._pauses.refuse(None if session is None else session.id)
        if session is not None:
            self._denials.admit(session, action, arguments)


@implementer(ILimitService)
@frozen(eq=False)
class LimitService:
    """The service that pauses and resumes runs, lifts denials, and stores the operator's caps.

    Each call completes even if its caller disconnects.

    :param ask_again: requests another approval of an approved run.
    :param begin: schedules an approved run.
    :param stop_looking: stops the look-ups of uncertain effects.
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
        try:
            under_way = tuple([run async for run in self._list_matching(_UNDER_WAY, session_id)])
        # guard of the store: a pause needs no database -> runner.test_pausing.AwayTests.test_away
        except StoreUnavailable:
            return Halt(standing, saved=self._pauses.is_durable, listed=False)
        return Halt(standing, under_way, saved=self._pauses.is_durable)

    @shielded
    async def resume(self, session_id: str | None, actor: Actor) -> tuple[Run, ...]:
        if session_id not in {pause.session_id for pause in self.pauses()}:
            return ()
        self._effects.require()
        asked = [run async for run in self._ask_anew(session_id)]
        await self._pauses.lift(session_id, actor)
        async for run in self._list_matching(_BEFORE_EFFECT, session_id):
            self._begin(run)  # for runs approved while approvals of the others were requested again
        return tuple(asked)

    async def _ask_anew(self, session_id: str | None) -> AsyncIterator[Run]:
        """Request another approval of every approved run of the session that has not begun, and yield these runs.

        The pause must still apply, so that no run begins meanwhile. Runs of sessions that stay paused are skipped.

        :param session_id: the session, or None for all.
        """
        why = ApprovalStale(_AGAIN if session_id is None else _AGAIN_HERE)
        async for run in self._list_matching(_BEFORE_EFFECT, session_id):
            if not run.gated or self._stays_paused(run, session_id):
                continue
            asked = await self._locks.run(run.id, lambda run_id=run.id: self._ask_one(run_id, why))  # type: ignore[misc]
            if asked is not None:
                yield asked

    async def _ask_one(self, run_id: str, why: ApprovalStale) -> Run | None:
        run = await self._runs.run(run_id)
        if run.state not in _BEFORE_EFFECT.states:  # withdrawn meanwhile
            return None
        try:
            await self._ask_again(run, why)
        # guard of several daemons: a run that another daemon changes meanwhile does not keep everything paused
        #    -> runner.test_several.PauseTests.test_resumed_meanwhile
        except StateConflict:
            return None
        return await self._runs.run(run_id)

    def _stays_paused(self, run: Run, resumed: str | None) -> bool:
        """Return whether the run's session stays paused when the pause of the session C{resumed} ends.

        :param resumed: the session, or None if the pause of everything ends.
        """
        paused = {pause.session_id for pause in self.pauses()} - {None, resumed}
        return run.session_id in paused

    def _list_matching(self, query: RunQuery, session_id: str | None) -> AsyncIterator[Run]:
        return self._runs.all(evolve(query, session_id=session_id))
