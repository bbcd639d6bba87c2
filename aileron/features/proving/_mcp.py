"""The double of an MCP server, over HTTP or over the pipes of a process that relays its lines to the double."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol

from aileron.base.addresses import read_origin
from aileron.base.json import JSON, canonical, digest, loads_strict
from aileron.connectors import McpSpec, ServiceAnswer, Specimen

from ._bench import Bench
from ._double import Case, DoubleConnection, Move, ServiceDouble, wire
from ._network import HTTP, STDIO, STRANGER, surroundings
from ._trials import HTML, LATE_SECONDS, Rig, Trial, controls, list_trials, written

_RELAY = """
import os, select, socket, sys
double = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
double.sendall(sys.argv[2].encode() in os.environb and b"strange\\n" or b"\\n")
kept = b""
def hand_on(wait):
    while select.select([0], [], [], wait)[0]:
        data = os.read(0, 65536) or sys.exit()
        double.sendall(data)
        wait = 0
while True:
    if 0 in select.select([0, double], [], [])[0]:
        hand_on(0)
        continue
    data = double.recv(65536)
    *lines, kept = (kept + data).split(b"\\n")
    for line in lines:
        if line == b"\\x05":
            hand_on(0)
            double.sendall(b"\\x06\\n")
        elif line:
            os.write(1, line + b"\\n")
    if not data:
        os.write(1, kept)
        sys.exit()
"""
"""The program of the process: it relays each line, and answers the double's ENQ with ACK when all are relayed."""

_ASK, _DONE = b"\n\x05\n", b"\x06"
_NUMBER = "@number"
_REFUSED = (-32700, -32600, -32601, -32602)
_LIST, _CALL = "tools/list", "tools/call"
_LOST = Move(b"", 0, "abort")
_TURNS = 12
_VERSION = "2025-11-25"
_RECOVERY_SECONDS = 61.0


def _result(**result: JSON) -> dict[str, JSON]:
    return {"jsonrpc": "2.0", "id": _NUMBER, "result": result}


def _say(text: str, **more: JSON) -> dict[str, JSON]:
    return _result(content=[{"type": "text", "text": text}], structuredContent={"said": text}, **more)


def _error(code: int, text: str = "no") -> dict[str, JSON]:
    return {"jsonrpc": "2.0", "id": _NUMBER, "error": {"code": code, "message": text}}


def _asks(method: str, number: str | None = "asked") -> dict[str, JSON]:
    return {"jsonrpc": "2.0", "method": method, "params": {"data": method}, **({"id": number} if number else {})}


class StdioConnection(DoubleConnection):
    """The connection from the process that runs in place of a local MCP server.

    The process passes lines between the client and the double.
    """

    rests = True

    def __init__(self, service: McpDouble) -> None:
        super().__init__(service)
        self._pong: Deferred[None] | None = None
        self._began = False

    def dataReceived(self, data: bytes) -> None:
        """Handle messages, one for each line. The first line is the value of L{STRANGER}, which must be empty."""
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            if not self._began:
                self._began = True
                self._service.strange += ["the server was given a variable of the daemon's"] * bool(line)
            elif line == _DONE:
                self._settled()
            else:
                self._service.heard += 1
                self.act(self._service.decide(line))

    def ask(self) -> Deferred[None]:
        """Return a Deferred that fires when the process has passed on every line, or has ended."""
        self._pong = Deferred()
        transport: Any = self.transport
        transport.write(_ASK)
        return self._pong

    def _settled(self) -> None:
        pong, self._pong = self._pong, None
        if pong is not None:
            pong.callback(None)

    def connectionLost(self, *reason: Any) -> None:
        """Unregister the connection, and stop waiting for the process."""
        super().connectionLost(*reason)
        self._settled()


@define(eq=False, repr=False)
class McpDouble(ServiceDouble):
    """The double of an MCP server. The request under test is a call of a tool, or the list of tools.

    With the twist C{changed} or C{gone}, the list of tools has a changed tool or lacks it.

    :ivar tools: the descriptions of the tools, by operation.
    :ivar is_local: whether the server is a local process.
    """

    bench: Bench = field(kw_only=True)
    tools: Mapping[str, Mapping[str, JSON]] = field(kw_only=True)
    is_local: bool = field(kw_only=True)

    def begin(self, case: Case, moves: Sequence[Move], shows: bool | None = None, twist: str = "") -> None:
        """Reset the double for a run of the connector under test.

        For a local server, advance the clock so that its process may restart at once.
        """
        super().begin(case, moves, shows, twist)
        if self.is_local:
            self.bench.clock.advance(_RECOVERY_SECONDS)

    def speak(self, speech: str) -> IProtocol:
        """Return a connection from the relaying process, or an HTTP connection."""
        return StdioConnection(self) if speech == STDIO else super().speak(speech)

    def busy(self) -> bool:
        """Return whether a connection is busy, or a process runs that is not connected."""
        stays = sum(each.rests for each in self.open)
        return super().busy() or self.bench.processes.running > stays

    async def rest(self) -> None:
        """Wait until the client's asyncio loop and the relaying process are idle."""
        await (await self.bench.loop.bridge()).ask(_take_turns)
        for each in [each for each in self.open if each.rests]:
            await each.ask()

    def drop(self) -> None:
        """Abort all connections except the one from the relaying process."""
        for each in [each for each in self.open if not each.rests]:
            each.drop()

    def decide(self, request: bytes) -> Move:
        """Return the instruction for a message, with the message's id in the answer."""
        move, number = super().decide(request), _read(request).get("id", 0)
        ends = {"close": "stay", "cut": "close"}.get(move.ends, move.ends) if self.is_local else move.ends
        return evolve(move, ends=ends, writes=move.writes.replace(canonical(_NUMBER), canonical(number).rjust(9)))

    def answer_aside(self, request: bytes) -> bytes | None:
        """Return the answer to a message that is not under test, or None if it is under test."""
        message = _read(request)
        method, lists = message.get("method"), self.case.operation.name not in self.tools
        if method == (_LIST if lists else _CALL):
            return None
        if "id" not in message or method is None:
            return b"" if self.is_local else wire(ServiceAnswer(202, {}, b""))
        about: Any = {"name": "proof", "version": "1"}
        made = {
            "initialize": _result(protocolVersion=_VERSION, capabilities={"tools": {}}, serverInfo=about),
            _LIST: _result(tools=[self._describe(name) for name in self.tools]),
        }
        return write(made.get(method, _error(-32601)), is_local=self.is_local)

    def answer_well(self) -> bytes:
        """Return the answer of a server that has carried out the request."""
        return write(loads_strict(self.case.good.body), is_local=self.is_local)

    def _describe(self, name: str) -> Mapping[str, JSON]:
        if not self.twist or name != self.case.operation.name:
            return self.tools[name]
        changed = {"description": "Another one."} if self.twist == "changed" else {"name": "another"}
        return {**self.tools[name], **changed}


async def _take_turns() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def _read(request: bytes) -> Mapping[str, Any]:
    """Parse the message in an HTTP request or in a line."""
    body = request.partition(b"\r\n\r\n")[2] if b"\r\n\r\n" in request else request
    found: Mapping[str, Any] = json.loads(body) if body else {}
    return found


def write(*messages: JSON, is_local: bool) -> bytes:
    """Return messages as bytes: lines for a process, JSON for one message over HTTP, an event stream for several."""
    if is_local:
        return b"".join(canonical(each) + b"\n" for each in messages)
    if len(messages) == 1:
        return wire(ServiceAnswer(200, {"content-type": "application/json"}, canonical(messages[0])))
    body = b"".join(b"data: " + canonical(each) + b"\n\n" for each in messages)
    return wire(ServiceAnswer(200, {"content-type": "text/event-stream"}, body))


def set_up_mcp(specimen: Specimen, bench: Bench) -> Rig | str:
    """Set up the test of an MCP connector against a double of its server, with made-up tools and pins.

    Return the L{Rig}, or a clause why the connector cannot be tested.
    """
    spec: McpSpec = specimen.spec
    if spec.local is not None and spec.local.api is not None:
        return "its server gets no credential, and reaches its API only from a sandbox"
    tools: dict[str, Mapping[str, JSON]] = {
        name: {"name": each.tool, "description": "A sample.", "inputSchema": {"type": "object"}}
        for name, each in spec.operations.items()
    }
    here = evolve(
        spec, operations={name: evolve(each, pin=digest(tools[name])) for name, each in spec.operations.items()}
    )
    if spec.local is not None:
        argv = (sys.executable, "-I", "-S", "-c", _RELAY, str(bench.network.port(STDIO)), STRANGER)
        where = surroundings(spec.local.environment, bench.away)
        here = evolve(here, local=evolve(spec.local, argv=argv, environment=where))
    listed: list[JSON] = [dict(each) for each in tools.values()]
    cases = {
        name: Case(
            each,
            {"text": "sample"} if name in tools else {},
            good=_answer(_say("sample") if name in tools else _result(tools=listed)),
            most_bytes=spec.max_response_bytes,
        )
        for name, each in spec.description.operations.items()
    }
    is_local = spec.local is not None
    double = McpDouble(bench.clock, bench=bench, tools=tools, is_local=is_local, beside=True)
    origins = {} if is_local else {read_origin(spec.url): HTTP}
    kind = _Trials(is_local, frozenset(tools))
    return Rig(here, specimen.base_url, double, origins, cases, kind.trials, kind.controls)


def _answer(message: JSON) -> ServiceAnswer:
    return ServiceAnswer(200, {"content-type": "application/json"}, canonical(message))


@frozen
class _Trials:
    """The trials (faults of the service to be survived) of a connector to an MCP server, over HTTP or over pipes.

    :ivar calls: the operations that call a tool.
    """

    is_local: bool
    calls: Collection[str]

    def write(self, *messages: JSON) -> bytes:
        """Return messages as bytes, as the server under test sends them: lines over pipes, or an HTTP body."""
        return write(*messages, is_local=self.is_local)

    def trials(self, case: Case, secret: str) -> Iterator[Trial]:
        """Yield all trials of an operation: the faults of the service in which the connector is tested."""
        calls = case.operation.name in self.calls
        if self.is_local:
            yield from self._list_of_pipes(case)
        else:
            yield from list_trials(case, secret, self._infect if calls else None)
        if calls:
            yield from self._list_messages(case)
            yield from self._list_echoes(case, secret)

    def controls(self, case: Case, decoy: str) -> Iterator[tuple[str, Trial]]:
        """Yield the controls of an operation: trials in which a check of the proof must fail, each with that check.

        They show that the checks work.
        """
        whole = self.write(loads_strict(case.good.body))
        echoes = self._list_echoes(case, decoy) if case.operation.name in self.calls else ()
        yield from controls(case, decoy, echoes, idle=Move(whole, 0), twice=Move(whole, 2), lost=(_LOST,))

    def _infect(self, body: bytes, forms: Sequence[str]) -> bytes:
        return canonical(_say(" ".join(forms)))

    def _list_of_pipes(self, case: Case) -> Iterator[Trial]:
        whole, within = self.write(loads_strict(case.good.body)), case.operation.timeout_seconds
        yield Trial("answers well", for_actions=True)
        yield Trial("cannot be started", refusing=True)
        for title, move in {
            "does it, and ends before it answers": Move(b"", ends="abort"),
            "does nothing, and ends before it answers": _LOST,
            "does it, and ends within its answer": Move(whole[:-9], ends="cut"),
            "does it, and answers in another form": Move(HTML + b"\n", ends="hold"),
            "does it, and answers more than is read": Move(b"x" * (case.most_bytes + 2)),
            "does it, and answers twice": Move(whole + whole),
            "answers slowly": Move(whole, after=within / 2),
            "answers too late": Move(whole, after=within + LATE_SECONDS),
            "never answers": Move(b"", 0, "hold"),
        }.items():
            yield Trial(title, (move,), for_actions="before" in title)

    def _list_messages(self, case: Case) -> Iterator[Trial]:
        good, write = _say("sample"), self.write
        for code in _REFUSED:
            yield Trial(f"refuses it with the error {code}", (Move(write(_error(code)), 0),))
        answers: Mapping[str, list[JSON]] = {
            "answers with the error -32603": [_error(-32603)],
            "answers with an error of its own": [_error(-1)],
            "reports a failure of the tool": [_say("no", isError=True)],
            "asks for more input": [_result(resultType="input_required")],
            "answers with a result and an error": [{**good, "error": {"code": -32600, "message": "no"}}],
            "has answered another request": [{**good, "id": 10**6}, {**_error(-32600), "id": 10**6}],
            "answers twice in one stream": [good, _error(-32600)],
            "asks for a form first": [_asks("elicitation/create"), good],
            "asks for a model first": [_asks("sampling/createMessage"), good],
        }
        yield Trial("does nothing, and has answered another request", (Move(write({**good, "id": 10**6}), 0),))
        for title, messages in answers.items():
            yield Trial(f"does it, and {title}", (Move(write(*messages)),))
        yield Trial("describes the tool otherwise than it was reviewed", twist="changed", most=0)
        yield Trial("has the tool no more", twist="gone", most=0)

    def _list_echoes(self, case: Case, secret: str) -> Iterator[Trial]:
        text, write = " ".join(written(secret)), self.write
        echoes: Mapping[str, list[JSON]] = {
            "its answer": [_say(text)],
            "an error": [_error(-1, text)],
            "a notification": [_asks(f"notifications/{text}", None), _say("sample")],
            "a request of its own": [_asks(text), _say("sample")],
        }
        for title, messages in echoes.items():
            yield Trial(f"repeats the secret in {title}", (Move(write(*messages)),), for_actions="its" in title)
