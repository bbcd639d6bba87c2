"""A model on loopback that follows a script and remembers every request, for real agents to talk to."""

import time
from collections.abc import Mapping, Sequence
from typing import assert_never

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater
from twisted.python.failure import Failure
from twisted.web.http import BAD_REQUEST, NOT_FOUND
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from tests.functional import anthropic, chat, responses
from tests.functional.answer import Answer, ToolCall, WireFormat
from tests.functional.loopback import LoopbackSite, headers_of, json_of
from tests.functional.reactor import IKitReactor
from tests.functional.script import Call, Calls, Received, Refuse, Say, ScriptError, Turn

Reply = Answer | Refuse
_FORMATS: Mapping[str, WireFormat] = {
    "/chat/completions": chat,
    "/messages": anthropic,
    "/responses": responses,
}


@attrs.define
class Script:
    """The turns of each model, spent in order; a request beyond them is a fault.

    :param turns: by model name, so that several agents can talk at once.
    :ivar listings: requests for the list of models and for counts of tokens, which spend no turn.
    """

    _left: dict[str, list[Turn]]
    received: list[Received] = attrs.Factory(list)
    titles: list[Received] = attrs.Factory(list)
    listings: list[Received] = attrs.Factory(list)
    faults: list[str] = attrs.Factory(list)
    _calls_made: int = 0

    def reply(self, received: Received) -> Reply:
        """Record the request and spend a turn on it; a title request spends none."""
        if received.is_title:
            self.titles.append(received)
            return Answer(received.model, "A title")
        self.received.append(received)
        try:
            return self._spend(received)
        except ScriptError as problem:
            return self.fault(str(problem))

    def fault(self, message: str) -> Refuse:
        """Remember that agent and script disagree, and tell the agent so."""
        self.faults.append(message)
        return Refuse(BAD_REQUEST, message)

    def of(self, model: str) -> list[Received]:
        """What one model received, titles left out, oldest first."""
        return [each for each in self.received if each.model == model]

    def models(self) -> list[str]:
        """The names of the models that have a script."""
        return list(self._left)

    def check(self) -> None:
        """Pass if every turn was spent and nothing more was asked.

        :raises ScriptError: naming the faults and the turns left.
        """
        left = {model: turns for model, turns in self._left.items() if turns}
        if self.faults or left:
            raise ScriptError(f"faults: {self.faults}; turns left: {left}")

    def _spend(self, received: Received) -> Reply:
        turns = self._left.get(received.model)
        if not turns:
            raise ScriptError(f"no turn left for model {received.model!r}: request {len(self.received)}")
        turn = turns.pop(0)
        match turn:
            case Refuse():
                return turn
            case Say():
                return Answer(received.model, turn.text, (), turn.pause_seconds, turn.cut_after)
            case Call():
                return Answer(received.model, calls=self._wire((turn,), received))
            case Calls():
                return Answer(received.model, calls=self._wire(turn.calls, received))
        assert_never(turn)

    def _wire(self, calls: Sequence[Call], received: Received) -> list[ToolCall]:
        return [self._wire_one(call, received) for call in calls]

    def _wire_one(self, call: Call, received: Received) -> ToolCall:
        name, arguments = received.tool_named(call.tool), call.arguments_for(received)
        self._calls_made += 1
        return ToolCall(f"call_{self._calls_made}", name, arguments)


@attrs.frozen
class Times:
    """When things happened, by the monotonic clock.

    :ivar asked: each generation asked for.
    :ivar sent: each event of a streamed answer.
    :ivar left: each client that left before its answer was whole.
    """

    asked: list[float] = attrs.Factory(list)
    sent: list[float] = attrs.Factory(list)
    left: list[float] = attrs.Factory(list)


class _ModelResource(Resource):
    """Every path of the service; only generations, counts of tokens and the list of models are known."""

    isLeaf = True

    def __init__(self, reactor: IKitReactor, script: Script, times: Times) -> None:
        Resource.__init__(self)
        self._reactor = reactor
        self._script = script
        self._times = times

    def render_GET(self, request: Request) -> bytes:
        """Answer the list of models, in the format of whoever asks."""
        if not request.path.endswith(b"/models"):
            return self._unknown(request)
        self._script.listings.append(_received(request))
        wire: WireFormat = anthropic if request.getHeader("anthropic-version") else chat
        request.setHeader("content-type", "application/json")
        return wire.models(self._script.models())

    def render_POST(self, request: Request) -> bytes | int:
        """Answer one generation as the script says, in the format of the path."""
        if request.path.endswith(b"/messages/count_tokens"):
            self._script.listings.append(_received(request))
            request.setHeader("content-type", "application/json")
            return anthropic.tokens(len(self._script.listings[-1].messages))
        wire = next((wire for path, wire in _FORMATS.items() if request.path.decode().endswith(path)), None)
        if wire is None:
            return self._unknown(request)
        self._times.asked.append(time.monotonic())
        received = _received(request)
        reply = self._script.reply(received)
        match reply:
            case Refuse():
                return _refused(request, wire, reply)
            case Answer():
                return self._generation(request, wire, reply, bool(received.body.get("stream")))
        assert_never(reply)

    def _generation(self, request: Request, wire: WireFormat, answer: Answer, streamed: bool) -> bytes | int:
        if not streamed:
            request.setHeader("content-type", "application/json")
            return wire.whole(answer)
        request.setHeader("content-type", "text/event-stream")
        streaming = Deferred.fromCoroutine(self._stream(request, wire, answer))
        streaming.addErrback(_given_up)
        request.notifyFinish().addErrback(lambda _: self._left(streaming))
        return NOT_DONE_YET

    async def _stream(self, request: Request, wire: WireFormat, answer: Answer) -> None:
        for number, event in enumerate(wire.stream(answer)):
            if number == answer.cut_after:
                request.loseConnection()
                return
            if number and answer.pause_seconds:
                await deferLater(self._reactor, answer.pause_seconds)
            self._times.sent.append(time.monotonic())
            request.write(event)
        request.finish()

    def _left(self, streaming: Deferred[None]) -> None:
        self._times.left.append(time.monotonic())
        streaming.cancel()

    def _unknown(self, request: Request) -> bytes:
        self._script.fault(f"unknown: {request.method.decode()} {request.path.decode()}")
        request.setResponseCode(NOT_FOUND)
        return chat.refusal("unknown path", NOT_FOUND)


@attrs.define
class ScriptedLLM:
    """The running service.

    :ivar resource: serves it, also for a test that has another way to it.
    """

    script: Script
    times: Times = attrs.Factory(Times)
    _site: LoopbackSite = attrs.field(init=False)
    resource: Resource = attrs.field(init=False)

    @classmethod
    def listen(cls, reactor: IKitReactor, turns: Mapping[str, Sequence[Turn]], port: int = 0) -> "ScriptedLLM":
        """Start to listen.

        :param turns: the script of each model, by the model's name.
        :param port: 0: one that the system chooses.
        :raises CannotListenError: it is taken.
        """
        service = cls(Script({model: list(its) for model, its in turns.items()}))
        service.resource = _ModelResource(reactor, service.script, service.times)
        service._site = LoopbackSite.listen(reactor, service.resource, port)
        return service

    @property
    def url(self) -> str:
        """The address without ``/v1``."""
        return self._site.url

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._site.port

    @property
    def hung_up(self) -> int:
        """How many clients left before their answer was whole."""
        return len(self.times.left)

    async def stop(self) -> None:
        """Close the port and every connection."""
        await self._site.stop()


def _received(request: Request) -> Received:
    return Received(request.path.decode(), headers_of(request), json_of(request) or {})


def _given_up(failure: Failure) -> None:
    failure.trap(CancelledError)


def _refused(request: Request, wire: WireFormat, refusal: Refuse) -> bytes:
    request.setResponseCode(refusal.status)
    request.setHeader("content-type", "application/json")
    for name, text in refusal.headers.items():
        request.setHeader(name, text)
    return wire.refusal(refusal.message, refusal.status)
