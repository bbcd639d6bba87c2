"""The brakes of a scripted runner: kept, told, and obeyed by nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from attrs import define, evolve, field

from aileron.errors import Conflict, NotFound
from aileron.values import Actor, Approval, Halt, OwnCap, Page, Pause, Run, RunQuery, RunState


@define
class ScriptedBrakes:
    """Pauses and limits, and counts, as L{ILimitService} says."""

    _pauses: dict[str | None, Pause] = field(factory=dict, init=False)
    _caps: dict[tuple[str, str, bool, float], OwnCap] = field(factory=dict, init=False)

    @abstractmethod
    async def runs(self, query: RunQuery) -> Page[Run]:
        """List runs; the runner that this is mixed into keeps them."""

    @abstractmethod
    def finish(self, run_id: str, state: RunState, **changes: Any) -> Run:
        """Bring a run to C{state}."""

    @abstractmethod
    def _now(self) -> datetime:
        """By the clock."""

    @abstractmethod
    async def approval(self, run_id: str) -> Approval:
        """Return one approval; the runner that this is mixed into keeps them."""

    async def most_used(self, limit: int) -> tuple[str, ...]:
        """List the actions with the most completed runs."""
        done = (await self.runs(RunQuery((RunState.COMPLETED,)))).items
        uses = Counter(run.action for run in done)
        return tuple(sorted(uses, key=lambda name: (-uses[name], name))[:limit])

    async def forgive(self, run_id: str, actor: Actor) -> Approval:
        """Nothing that is scripted remembers a denial."""
        approval = await self.approval(run_id)
        if approval.run.state is not RunState.DENIED:
            raise Conflict("It was not denied.", {"state": approval.run.state.value})
        return approval

    def pauses(self) -> tuple[Pause, ...]:
        """Return the pauses in the order in which they were set."""
        return tuple(self._pauses.values())

    async def pause(self, session_id: str | None, reason: str | None, actor: Actor) -> Halt:
        """Nothing that is scripted obeys it."""
        pause = self._pauses.setdefault(session_id, Pause(self._now(), actor.id, reason, session_id))
        return Halt(pause, (await self.runs(RunQuery((RunState.EXECUTING,)))).items)

    async def resume(self, session_id: str | None, actor: Actor) -> tuple[Run, ...]:
        """Resume; a run that is approved waits again."""
        if self._pauses.pop(session_id, None) is None:
            return ()
        approved = (await self.runs(RunQuery((RunState.APPROVED,), session_id))).items
        return tuple(self.finish(run.id, RunState.PENDING) for run in approved)

    def caps(self) -> tuple[OwnCap, ...]:
        """Return the caps in the order of their names."""
        return tuple(self._caps[name] for name in sorted(self._caps))

    async def set_caps(self, caps: Sequence[OwnCap], actor: Actor) -> tuple[OwnCap, ...]:
        """Keep caps in memory."""
        fresh = {each.name: evolve(each, set_at=self._now(), set_by=actor.id) for each in caps}
        self._caps |= fresh
        return tuple(fresh.values())

    async def remove_cap(self, which: OwnCap, actor: Actor) -> None:
        """Remove a cap from memory."""
        if self._caps.pop(which.name, None) is None:
            raise NotFound("There is no such cap.")
