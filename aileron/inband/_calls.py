"""Runs the calls of one turn, each by itself, and puts on record what was hidden: its shape, never its content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IReactorTime

from aileron.interfaces import IAgentTools, IAudit
from aileron.values import JSON, Actor, Event, Session, compact, utc

from ._turns import CallResult, ModelCall, OfferedTool, Turn


@frozen
class SessionCalls:
    """The calls of one client's request.

    :ivar key: the session's in-band key.
    :ivar request_id: fresh, so that no call of another request has the same idempotency key.
    :ivar about: what is told with each turn on record.
    :ivar ids: fresh ULIDs.
    """

    tools: IAgentTools
    audit: IAudit
    clock: IReactorTime
    ids: Callable[[], str]
    session: Session
    key: str = field(repr=False)
    request_id: str
    about: Mapping[str, JSON]

    async def offered(self) -> list[OfferedTool]:
        """Return what the model is offered."""
        found = await self.tools.offered(self.key)
        return [OfferedTool(each.name, each.description, each.input_schema) for each in found]

    async def run(self, turn: Turn, number: int, wait_seconds: float) -> list[CallResult]:
        """Run the calls of a turn, all at once, and put it on record.  Cancelling ends the wait, never a run.

        :param number: of the turn, within the request.
        """
        asked = [
            Deferred.fromCoroutine(self._run(call, index, number, wait_seconds))
            for index, call in enumerate(turn.calls)
        ]
        told = await gatherResults(asked, consumeErrors=True)
        shapes: list[JSON] = [shape for _, shape in told]
        await self.record("in_band.turn", {**self.about, "turn": number, "mixed": turn.mixed, "calls": shapes})
        return [result for result, _ in told]

    async def record(self, kind: str, payload: Mapping[str, JSON]) -> None:
        """Put something on record."""
        actor = Actor("agent", self.session.id)
        event = Event(self.ids(), kind, utc(self.clock.seconds()), actor, payload, session_id=self.session.id)
        await self.audit.append(event)

    async def _run(self, call: ModelCall, index: int, number: int, wait_seconds: float) -> tuple[CallResult, Any]:
        shape = {"tool": call.name, "input_bytes": len(compact(call.arguments).encode())}
        if call.problem:
            result, outcome = CallResult(call.id, call.problem, is_error=True), "invalid"
        else:
            # A provider may give the ids of its calls anew in each turn, or twice in one.
            named = f"{self.session.id} {self.request_id} {number} {index} {call.id}"
            key = hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()
            answer = await self.tools.call(self.key, call.name, call.arguments, key, wait_seconds)
            result = CallResult(call.id, answer.text, answer.is_error)
            outcome = "pending" if answer.pending is not None else "error" if answer.is_error else "answered"
        return result, {**shape, "output_bytes": len(result.text.encode("utf-8", "replace")), "outcome": outcome}
