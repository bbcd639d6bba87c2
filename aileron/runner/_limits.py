"""Keeps runs from beginning: pauses, caps and denials, as the operator says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from attrs import define, evolve
from zope.interface import implementer

from aileron.errors import ApprovalStale, VaultLocked
from aileron.interfaces import ILimitService
from aileron.runner._scheduler import RunScheduler
from aileron.runner.limits import Limits
from aileron.runner.reconciler import Reconciler
from aileron.runner.requests import ApprovalRequests
from aileron.runner.runs import RunRepository
from aileron.runner.scheduling import KeyedLocks, Tasks, shielded
from aileron.values import Actor, Approval, Halt, OwnCap, Pause, Run, RunQuery, RunState

_UNDER_WAY = RunQuery(states=(RunState.EXECUTING,), limit=1000, oldest_first=True)
_NOT_BEGUN = RunQuery(states=(RunState.APPROVED, RunState.AWAITING_VAULT), limit=1000, oldest_first=True)
_AGAIN = "It was approved before everything was paused: approve it once more to release it."
_AGAIN_HERE = "It was approved before its session was paused: approve it once more to release it."


@implementer(ILimitService)
@define(eq=False)
class LimitService:
    """Pauses everything at once, resumes one by one, and keeps the operator's caps; no write ends with its caller."""

    _runs: RunRepository
    _limits: Limits
    _requests: ApprovalRequests
    _scheduler: RunScheduler
    _reconciler: Reconciler
    _tasks: Tasks
    _locks: KeyedLocks

    async def hold(self) -> None:
        self._limits.effects.hold()
        self._reconciler.stop()
        await self._tasks.at_rest()

    def pauses(self) -> tuple[Pause, ...]:
        return self._limits.effects.pauses.all()

    def caps(self) -> tuple[OwnCap, ...]:
        return self._limits.caps.own()

    @shielded
    async def set_caps(self, caps: Sequence[OwnCap], actor: Actor) -> tuple[OwnCap, ...]:
        return await self._limits.caps.put(caps, actor)

    @shielded
    async def remove_cap(self, which: OwnCap, actor: Actor) -> None:
        await self._limits.caps.remove(which, actor)

    @shielded
    async def forgive(self, run_id: str, actor: Actor) -> Approval:
        return await self._limits.denials.forgive(run_id, actor)

    @shielded
    async def pause(self, session_id: str | None, reason: str | None, actor: Actor) -> Halt:
        pause = Pause(self._runs.events.now(), actor.id, reason, session_id)
        standing = await self._limits.effects.pauses.pause(pause, actor)
        return Halt(standing, tuple([run async for run in self._matching(_UNDER_WAY, session_id)]))

    @shielded
    async def resume(self, session_id: str | None, actor: Actor) -> tuple[Run, ...]:
        if session_id not in {pause.session_id for pause in self.pauses()}:
            return ()
        if not self._limits.effects.may_act():
            raise VaultLocked("The vault is locked: run `aileron vault unlock`, then resume.")
        asked = [run async for run in self._ask_anew(session_id)]
        await self._limits.effects.pauses.lift(session_id, actor)
        async for run in self._matching(_NOT_BEGUN, session_id):
            self._scheduler.start(run)  # it was approved while the others were asked anew
        return tuple(asked)

    async def _ask_anew(self, session_id: str | None) -> AsyncIterator[Run]:
        """Put up what had not begun, while nothing can begin, so that only a new decision releases it."""
        why = ApprovalStale(_AGAIN if session_id is None else _AGAIN_HERE)
        async for run in self._matching(_NOT_BEGUN, session_id):
            if not run.gated or self._stays_paused(run, session_id):
                continue
            asked = await self._locks.run(run.id, lambda run_id=run.id: self._ask_one(run_id, why))  # type: ignore[misc]
            if asked is not None:
                yield asked

    async def _ask_one(self, run_id: str, why: ApprovalStale) -> Run | None:
        run = await self._runs.run(run_id)
        if run.state not in _NOT_BEGUN.states:  # it was taken back
            return None
        await self._requests.ask_anew(run, why)
        return await self._runs.run(run_id)

    def _stays_paused(self, run: Run, resumed: str | None) -> bool:
        """Return whether a run's session is itself paused; its runs are put up anew when that pause is lifted."""
        paused = {pause.session_id for pause in self.pauses()} - {None, resumed}
        return run.session_id in paused

    def _matching(self, query: RunQuery, session_id: str | None) -> AsyncIterator[Run]:
        return self._runs.all(evolve(query, session_id=session_id))
