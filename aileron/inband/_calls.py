"""Runs the calls of one turn, each by itself, and puts on record what was hidden: its shape, never its content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from attrs import field, frozen
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IReactorTime

from aileron.interfaces import IAudit
from aileron.values import JSON, Actor, Event, Session, compact, utc

from ._turns import CallResult, ModelCall, OfferedTool, Turn


class ITool(Protocol):
    """A tool as the daemon has it for its agents."""

    @property
    def name(self) -> str:
        """The name: C{[a-zA-Z0-9_]}, at most 64 characters."""

    @property
    def description(self) -> str:
        """The description that a model reads."""

    @property
    def input_schema(self) -> Mapping[str, JSON]:
        """The JSON Schema of its arguments."""


class IToolAnswer(Protocol):
    """The answer of a tool."""

    @property
    def text(self) -> str:
        """The text that a model reads."""

    @property
    def is_error(self) -> bool:
        """True where it says why there is no result."""

    @property
    def pending(self) -> object | None:
        """The run that waits for a person, where one does."""


class IAgentTools(Protocol):
    """The tools of agents' sessions, asked for with a session's in-band key."""

    async def offered(self, key: str) -> Sequence[ITool]:
        """Return the tools in a stable order.

        :raises Unauthorized: the session has ended.
        """

    async def call(
        self, key: str, name: str, arguments: Mapping[str, JSON], idempotency_key: str, wait_seconds: float
    ) -> IToolAnswer:
        """Call one.  Every answer is a result; cancelling ends the wait, never a run.

        :param idempotency_key: the same call with the same key is the same run.
        :param wait_seconds: how long it may wait for a person.
        """


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
