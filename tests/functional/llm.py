"""A model on loopback that follows a script and remembers every request, for real agents to talk to."""

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

import attrs
from twisted.web.http import BAD_REQUEST, NOT_FOUND
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from tests.functional import anthropic, chat
from tests.functional.answer import Answer, ToolCall, WireFormat
from tests.functional.loopback import LoopbackSite, headers_of, json_of
from tests.functional.reactor import IKitReactor
from tests.functional.script import Call, Calls, Hang, Received, Refuse, Say, ScriptError, Turn

Reply = Answer | Refuse | Hang
_FORMATS: Mapping[str, WireFormat] = {"/chat/completions": chat, "/messages": anthropic}


@attrs.define
class Script:
    """The turns of each model, spent in order; a request beyond them is a fault.

    :param turns: by model name, so that several agents can talk at once.
    """

    _left: dict[str, list[Turn]]
    received: list[Received] = attrs.Factory(list)
    titles: list[Received] = attrs.Factory(list)
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
            case Hang() | Refuse():
                return turn
            case Say():
                return Answer(received.model, turn.text)
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


class _ModelResource(Resource):
    """Every path of the service; only generations and the list of models are known."""

    isLeaf = True

    def __init__(self, script: Script, gone: Callable[[], None]) -> None:
        Resource.__init__(self)
        self._script = script
        self._gone = gone

    def render_GET(self, request: Request) -> bytes:
        """Answer the list of models, which is empty: the agent's configuration names its own."""
        return self._unknown(request) if not request.path.endswith(b"/models") else b'{"object":"list","data":[]}'

    def render_POST(self, request: Request) -> bytes | int:
        """Answer one generation as the script says, in the format of the path."""
        wire = next((wire for path, wire in _FORMATS.items() if request.path.decode().endswith(path)), None)
        if wire is None:
            return self._unknown(request)
        received = _received(request)
        reply = self._script.reply(received)
        match reply:
            case Hang():
                request.notifyFinish().addErrback(lambda _: self._gone())
                return NOT_DONE_YET
            case Refuse():
                request.setResponseCode(reply.status)
                request.setHeader("content-type", "application/json")
                return wire.refusal(reply.message)
            case Answer():
                return _generation(request, wire, reply, bool(received.body.get("stream")))
        assert_never(reply)

    def _unknown(self, request: Request) -> bytes:
        self._script.fault(f"unknown: {request.method.decode()} {request.path.decode()}")
        request.setResponseCode(NOT_FOUND)
        return chat.refusal("unknown path")


@attrs.define
class ScriptedLLM:
    """The running service.

    :ivar hung_up: how many clients left a `Hang` turn.
    """

    script: Script
    hung_up: int = 0
    _site: LoopbackSite = attrs.field(init=False)

    @classmethod
    def listen(cls, reactor: IKitReactor, turns: Mapping[str, Sequence[Turn]]) -> "ScriptedLLM":
        """Start to listen.

        :param turns: the script of each model, by the model's name.
        """
        service = cls(Script({model: list(its) for model, its in turns.items()}))
        service._site = LoopbackSite.listen(reactor, _ModelResource(service.script, service._count_hung_up))
        return service

    @property
    def url(self) -> str:
        """The address without ``/v1``."""
        return self._site.url

    async def stop(self) -> None:
        """Close the port and every connection."""
        await self._site.stop()

    def _count_hung_up(self) -> None:
        self.hung_up += 1


def _received(request: Request) -> Received:
    return Received(request.path.decode(), headers_of(request), json_of(request) or {})


def _generation(request: Request, wire: WireFormat, answer: Answer, streamed: bool) -> bytes | int:
    if not streamed:
        request.setHeader("content-type", "application/json")
        return wire.whole(answer)
    request.setHeader("content-type", "text/event-stream")
    for event in wire.stream(answer):
        request.write(event)
    request.finish()
    return NOT_DONE_YET
