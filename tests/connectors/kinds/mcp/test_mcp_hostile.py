"""Of the connector to MCP servers: servers that do what no server should."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from itertools import count, pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, canonical
from aileron.connectors._answer import ServiceUnreachable
from aileron.connectors.kinds.mcp import _pins
from aileron.connectors.kinds.mcp._events import EventMessages
from aileron.connectors.kinds.mcp._session import MOST_SERVER_REQUESTS, McpSession
from aileron.connectors.kinds.mcp._wire import Delivery
from aileron.model.connectors import Outcome
from tests.connectors.kinds.mcp.test_mcp import SECRET, McpCase
from tests.connectors.mcpserver import (
    CREATE,
    FILE,
    JSON_TYPE,
    MODERN,
    SEARCH,
    Answering,
    always,
    events,
    failing,
    giving,
    result,
    spec_of,
)
from tests.connectors.service import answer
from tests.mcp.stepped import SteppedCase

DONE = {"content": [{"type": "text", "text": "done"}]}

_BOTH = {"error": {"code": -32602, "message": "no"}}


def asking(method: str, number: int = 99, **params: JSON) -> dict[str, Any]:
    """A request of the server's."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def paging(tools: Sequence[Mapping[str, Any]]) -> Answering:
    """Pages of these tools without an end, each with another cursor."""
    numbers = count()

    def answering(message: Mapping[str, Any]) -> bytes | None:
        return giving({"tools": [*tools], "nextCursor": f"page {next(numbers)}"})(message)

    return answering


class HostileTests(McpCase):
    """One hostility each."""

    def assertUnknown(self, outcome: Outcome) -> None:
        """Check that the call went out once, and nobody says what came of it."""
        self.assertEqual((True, False), (outcome.sent, outcome.classified), outcome)
        self.assertEqual(1, len(self.service.calls()))

    def test_asks_back(self) -> None:
        """What a server asks during a call is refused and recorded: it samples nothing, asks nobody, sees no files."""
        elicits = asking("elicitation/create", message="Your password?", requestedSchema={"type": "object"})
        samples = asking("sampling/createMessage", 100, messages=[], maxTokens=10)
        roots = asking("roots/list", 101)
        outcome = self.answering(lambda message: events(elicits, samples, roots, result(message, DONE)))
        self.assertEqual({"text": "done"}, outcome.output)
        expected = ["elicitation/create", "sampling/createMessage", "roots/list"]
        self.assertEqual({"refused": expected}, outcome.notes)
        self.service.advance()
        replies = [message for message, _ in self.service.messages if "method" not in message]
        self.assertTrue(all("error" in each for each in replies), replies)

    def test_refusal_is_told(self) -> None:
        """A server that waits for what it has asked is told that it will not get it."""
        elicits = asking("elicitation/create", message="?", requestedSchema={"type": "object", "properties": {}})
        self.service.answers["tools/call"] = lambda _: events(elicits, ends=False)
        running = self.start(title="x")
        [reply] = [message for message, _ in self.service.messages if "method" not in message]
        self.assertEqual((99, True), (reply["id"], "error" in reply))
        self.assertNoResult(running)
        self.service.advance(60)
        self.assertUnknown(self.successResultOf(running))

    def test_leaves_nothing_open(self) -> None:
        """What a run has still under way when its answer is there is dropped with it."""
        elicits = asking("elicitation/create", message="?", requestedSchema={"type": "object", "properties": {}})
        self.service.answers[""] = always(None)
        self.service.answers["tools/call"] = always(events(elicits, ends=False))
        running = self.start(title="x", seconds=5)
        self.assertIn("", self.service.methods())
        self.service.advance(6)
        self.assertUnknown(self.successResultOf(running))
        self.assertEqual([], [peer for peer in self.service.peers if not peer.closed])

    def test_declares_nothing(self) -> None:
        """A session tells the server of no capability to be asked back."""
        self.run_(title="x")
        [initialize] = [each for each, _ in self.service.messages if each.get("method") == "initialize"]
        self.assertEqual({}, initialize["params"]["capabilities"])

    def test_input_required(self) -> None:
        """A newer server that answers by asking for input leaves the call unknown, and is not called again."""
        self.service.version = MODERN
        elicit = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}}
        said = {"resultType": "input_required", "inputRequests": {"a": elicit}, "requestState": "s"}
        outcome = self.answering(lambda message: events(result(message, said)))
        self.assertUnknown(outcome)
        self.assertIn("refused", outcome.fault.message if outcome.fault else "")

    def test_floods_with_requests(self) -> None:
        """A server that asks back again and again is given up."""
        flood = [asking("roots/list", number) for number in range(MOST_SERVER_REQUESTS + 5)]
        self.assertUnknown(self.answering(lambda message: events(*flood, result(message, DONE))))

    def test_floods_with_pings(self) -> None:
        """So is one that asks for so many signs of life at once that answering them would be a flood of ours."""
        flood = [asking("ping", number) for number in range(500, 1500)]
        self.assertUnknown(self.answering(lambda message: events(*flood, result(message, DONE))))
        self.assertLess(self.service.methods().count(""), MOST_SERVER_REQUESTS)

    def test_pings(self) -> None:
        """Who asks for one after the other gets them all, however many."""
        done: list[bytes] = []

        def answer_on(message: Mapping[str, Any]) -> bytes:
            done.append(b"")
            return answer(b"", 202)

        self.service.answers[""] = answer_on
        self.service.answers["tools/call"] = lambda _: events(asking("ping", 1), ends=False)
        running = self.start(title="x", seconds=5)
        [stream] = [each.transport for each in self.service.peers if not each.closed]
        for number in range(2, 40):
            assert stream is not None
            stream.write(b"data: " + canonical(asking("ping", number)) + b"\n\n")
            self.service.advance()
        self.assertEqual(39, len(done))
        self.assertNoResult(running)

    def test_no_number(self) -> None:
        """What asks for an answer under a name that none could have is left out, like what asks for none."""
        numbers: Any = ({}, [1], 1.5, True, None)
        strange = [{**asking("roots/list"), "id": number} for number in numbers]
        outcome = self.answering(lambda message: events(*strange, result(message, DONE)))
        self.assertEqual(({"text": "done"}, {}), (outcome.output, outcome.notes))

    def test_repeats(self) -> None:
        """The first response counts; another to the same request changes nothing."""
        other = {"content": [{"type": "text", "text": "other"}]}
        outcome = self.answering(lambda message: events(result(message, DONE), result(message, other)))
        self.assertEqual({"text": "done"}, outcome.output)

    def test_other_id(self) -> None:
        """A response to another request, or to none, is none to this one."""
        numbers: Any = (
            lambda own: own + 1,
            lambda own: own - 1,
            lambda _: None,
            str,
            lambda _: True,
            lambda _: [],
        )
        for number in numbers:
            self.service.messages.clear()

            def answer_other(message: Mapping[str, Any], number: Any = number) -> bytes:
                return events({"jsonrpc": "2.0", "id": number(message["id"]), "result": DONE})

            self.assertUnknown(self.answering(answer_other))

    def test_answers_ahead(self) -> None:
        """A response that comes before its request was made is dropped, not kept for it."""
        ahead = [{"jsonrpc": "2.0", "id": number, "result": DONE} for number in range(20)]
        usual = self.service._usual
        self.service.answers["tools/list"] = lambda message: events(usual_of(usual(message)), *ahead)
        self.service.answers["tools/call"] = lambda _: None
        running = self.start(title="x", seconds=5)
        self.assertNoResult(running)
        self.service.advance(6)
        self.assertUnknown(self.successResultOf(running))

    def test_malformed_messages(self) -> None:
        """What is no response of JSON-RPC leaves the call unknown."""
        for change in (
            {"result": "text"},
            {"result": None},
            {"jsonrpc": "1.0"},
            {"error": "no", "result": None},
            _BOTH,
        ):
            self.service.messages.clear()
            outcome = self.answering(giving(DONE, **change))
            if change != {"jsonrpc": "1.0"}:
                self.assertUnknown(outcome)

    def test_no_messages(self) -> None:
        """A body that is no JSON, nested too deep, or of another type leaves the call unknown."""
        deep = b"[" * 200 + b"]" * 200
        for body in (b"<html>", b"{", deep, b"[1]", b"\xff"):
            self.service.messages.clear()
            headers = {"Content-Type": "text/html"} if body == b"<html>" else JSON_TYPE
            self.assertUnknown(self.answering(always(answer(body, 200, headers))))

    def test_huge_result(self) -> None:
        """A result larger than the file allows is cut off."""
        said = {"content": [{"type": "text", "text": "x" * (1024 * 1024)}]}
        outcome = self.answering(lambda message: events(result(message, said)))
        self.assertUnknown(outcome)
        self.assertEqual("resource_limit_exceeded", outcome.fault and outcome.fault.kind)

    def test_endless_events(self) -> None:
        """Notifications without an end are cut off by their size, and by the time."""
        notification = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
        long = {**notification, "params": {"level": "info", "data": "x" * 100_000}}
        self.assertUnknown(self.answering(lambda _: events(*[long] * 12, ends=False)))
        self.service.messages.clear()
        self.service.answers["tools/call"] = lambda _: events(notification, ends=False)
        running = self.start(title="x", seconds=5)
        self.assertNoResult(running)
        self.service.advance(6)
        self.assertUnknown(self.successResultOf(running))

    def test_endless_pages(self) -> None:
        """Pages without an end are given up, and nothing is called."""
        self.patch(_pins, "MOST_PAGES", 6)  # so that it takes no time
        self.service.answers["tools/list"] = paging([SEARCH])
        outcome = self.run_(title="x")
        self.assertEqual((False, "hash_mismatch"), (outcome.sent, outcome.fault and outcome.fault.kind))
        self.assertEqual(6, self.service.methods().count("tools/list"))
        many: Any = self.run_("list_tools").output
        self.assertIs(True, many["more"])

    def test_endless_tools(self) -> None:
        """So are tools without an end."""
        self.service.answers["tools/list"] = paging([SEARCH] * 1000)
        output: Any = self.run_("list_tools").output
        self.assertEqual(_pins.MOST_TOOLS, len(output["tools"]))

    def test_circle(self) -> None:
        """A cursor that comes again ends the list, whose tools are there once; so does an empty one."""
        for cursor, pages in (("again", 2), ("", 1)):
            self.service.messages.clear()
            self.service.answers["tools/list"] = giving({"tools": [SEARCH, CREATE], "nextCursor": cursor})
            output: Any = self.run_("list_tools").output
            self.assertEqual([each["name"] for each in output["tools"]], ["search", "create_issue"])
            self.assertNotIn("more", output)
            self.assertEqual(pages, self.service.methods().count("tools/list"))
            self.assertIsNone(self.run_(title="x").fault)

    def test_many_tools(self) -> None:
        """Of a page with too many tools the first ones are read, and no page follows a listing that is too large."""
        self.patch(_pins, "MOST_TOOLS", 3)
        self.service.answers["tools/list"] = giving({"tools": [SEARCH] * 9})
        many: Any = self.run_("list_tools").output
        self.assertEqual((3, True), (len(many["tools"]), many["more"]))
        self.patch(_pins, "MOST_BYTES", 50)
        self.service.messages.clear()
        self.service.answers["tools/list"] = giving({"tools": [SEARCH], "nextCursor": "again"})
        large: Any = self.run_("list_tools").output
        self.assertIs(True, large["more"])
        self.assertEqual(1, self.service.methods().count("tools/list"))

    def test_only_what_is_called(self) -> None:
        """Of the tools that are not called no digest is made, because that would take time in the reactor."""
        made: list[JSON] = []

        def make(value: JSON) -> bytes:
            made.append(value)
            return canonical(value)

        self.patch(_pins, "canonical", make)
        self.service.answers["tools/list"] = giving({"tools": [SEARCH] * 50 + [CREATE]})
        self.assertTrue(self.run_(title="x").sent)
        self.assertEqual([CREATE], made)

    def test_malformed_tools(self) -> None:
        """A list of anything else, another cursor, or a number that no digest covers: nothing is called."""
        pages: Any = (
            {"tools": {}},
            {"tools": [{"name": 1, "inputSchema": {}}]},
            {"tools": ["create_issue"]},
            {"tools": [CREATE], "nextCursor": 7},
            {"tools": [{**CREATE, "inputSchema": {"type": "object", "maximum": 1e300}}]},
        )
        for page in pages:
            self.service.answers["tools/list"] = giving(page)
            outcome = self.run_(title="x")
            self.assertFalse(outcome.sent, page)
            self.assertIsNotNone(outcome.fault)
        self.assertEqual([], self.service.calls())

    def test_no_list(self) -> None:
        """A server that refuses to list its tools is not called, and its words are shown on one line."""
        self.service.answers["tools/list"] = failing(-32000, "a\nb")
        outcome = self.run_(title="x")
        self.assertFalse(outcome.sent)
        self.assertIn("refused to list its tools: -32000 a", outcome.fault.message if outcome.fault else "")
        self.assertNotIn("\n", outcome.fault.message if outcome.fault else "")

    def test_redirects(self) -> None:
        """A redirect is not followed, wherever it leads, so the credential goes nowhere else."""
        elsewhere = {"Location": "http://127.0.0.1:9999/mcp"}
        for status in (301, 302, 307, 308):
            self.service.messages.clear()
            self.assertUnknown(self.answering(always(answer(b"", status, elsewhere))))
        self.assertEqual({("127.0.0.1", 8765)}, set(self.service.connected))

    def test_leads_inwards(self) -> None:
        """A host that leads to a private address is not connected to where the file does not say so."""
        text = FILE.replace("http://127.0.0.1:8765", "https://mcp.example.com").replace("private_network = true", "")
        self.service.names["mcp.example.com"] = ["127.0.0.1"]
        connector = self.service.connecting(spec_of(text))
        running = self.service.start(connector, "create_issue", {}, secret=SECRET)
        outcome = self.successResultOf(running)
        self.assertEqual((False, "capability_denied"), (outcome.sent, outcome.fault and outcome.fault.kind))

    def test_gives_the_secret_back(self) -> None:
        """The secret is taken out of whatever comes back: texts, structures, pictures, errors, a tool's failure."""
        secret, encoded = SECRET.decode(), base64.b64encode(SECRET).decode()
        content = [
            {"type": "text", "text": f"Bearer {secret}"},
            {"type": "image", "data": encoded, "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "a:b", "text": secret}},
        ]
        said = {"content": content, "structuredContent": {secret: secret}}
        for raw in (
            lambda message: events(result(message, said)),
            lambda message: events(result(message, {**said, "isError": True})),
            failing(-32600, secret),
            lambda message: events(asking(secret), result(message, DONE)),
        ):
            outcome = self.answering(raw)
            told = repr(outcome)
            self.assertNotIn(secret, told)
            self.assertNotIn(encoded, told)
            self.assertIn("echoed", outcome.notes)

    def test_session_id(self) -> None:
        """A session that could not stand in a header is not begun."""
        usual = self.service._usual
        self.service.answers["initialize"] = lambda message: usual(message).replace(b"session-1", b"x" * 2000)
        outcome = self.run_(title="x")
        self.assertFalse(outcome.sent)
        self.assertEqual([], self.service.calls())

    def test_unknown_version(self) -> None:
        """A server that speaks a version that nobody knows is not called."""
        self.service.version = "2099-01-01"
        outcome = self.run_(title="x")
        self.assertFalse(outcome.sent)
        self.assertIsNotNone(outcome.fault)

    def test_schema_is_not_run(self) -> None:
        """A schema that would take for ever to check is not checked: results are taken as they are."""
        slow = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
        tool = {**CREATE, "outputSchema": slow}
        self.service.tools = [[tool]]
        said = {"content": [], "structuredContent": {"a": "a" * 64 + "!"}}
        self.service.answers["tools/call"] = lambda message: events(result(message, said))
        connector = self.service.connecting(spec_of(create=tool))
        outcome = self.successResultOf(self.service.start(connector, "create_issue", {}, secret=SECRET))
        self.assertEqual({"structured": said["structuredContent"]}, outcome.output)


def usual_of(raw: bytes) -> Any:
    """The message in an answer."""
    return json.loads(raw.partition(b"\r\n\r\n")[2])


class _NoWire:
    """A wire on which nothing goes out; it notes what would have."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def listen(self, receiver: object) -> None:
        """Nothing comes."""

    def send(self, message: Any, headers: Mapping[str, str], delivery: Delivery) -> Deferred[None]:
        """Note it."""
        self.sent.append(message)
        return succeed(None)

    def close(self) -> None:
        """There is nothing to close."""


class GateTests(SteppedCase):
    """What no longer leaves."""

    def test_withdrawn(self) -> None:
        """A request for which nobody waits any more never leaves, however late; nor after the session ended."""
        wire = _NoWire()
        session = McpSession(self.bridge, wire)
        message: Any = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}
        self.successResultOf(Deferred.fromCoroutine(session.send(message, {}, Delivery())))
        given_up = session.send(message, {}, Delivery(withdrawn=True))
        self.failureResultOf(Deferred.fromCoroutine(given_up), ServiceUnreachable)
        session.close()
        self.failureResultOf(Deferred.fromCoroutine(session.send(message, {}, Delivery())), ServiceUnreachable)
        self.assertEqual([message], wire.sent)

    def test_no_loop(self) -> None:
        """Where the loop has ended, as when the daemon stops, there is no session, and nothing leaves."""
        wire = _NoWire()
        self.sides.close()
        starting = Deferred.fromCoroutine(McpSession(self.bridge, wire).start())
        self.failureResultOf(starting, ServiceUnreachable)
        self.assertEqual([], wire.sent)


class EventTests(SynchronousTestCase):
    """The events of a stream."""

    def read(self, *pieces: bytes) -> list[bytes]:
        """The data of the messages in a stream that comes in these pieces."""
        found: list[bytes] = []
        reader = EventMessages(found.append)
        for piece in pieces:
            reader.feed(piece)
        return found

    def test_shapes(self) -> None:
        """Lines, comments, fields, other events and each kind of line end are read as the standard says."""
        stream = b"\xef\xbb\xbf: hi\nid: 1\ndata: a\ndata:b\n\nevent: ping\ndata: c\n\rdata: d\r\n\r\n"
        stream += b"\n\nevent: message\rdata\rdata: \r\r"
        self.assertEqual([b"a\nb", b"d", b"\n"], self.read(stream))
        self.assertEqual([], self.read(b"data: unfinished\n"))
        self.assertEqual([b"a"], self.read(b"data: a\r", b"\n", b"\n"))

    @given(
        st.lists(st.sampled_from([b"data: a", b"data:", b"event: x", b"\n", b"\r", b"\r\n", b":", b"b"]), max_size=30),
        st.data(),
    )
    def test_pieces(self, parts: list[bytes], data: st.DataObject) -> None:
        """However a stream is cut into pieces, the same messages come out."""
        stream = b"".join(parts)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
        ends = [0, *cuts, len(stream)]
        self.assertEqual(self.read(stream), self.read(*(stream[a:b] for a, b in pairwise(ends))))
