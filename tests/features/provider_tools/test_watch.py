"""What a rule for provider tools does to a request: nothing, a note beside it, or a refusal before it."""

from __future__ import annotations

import json
from itertools import pairwise

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.address import IPv4Address

from aileron.base.http1 import Chunked, ChunkedContent
from aileron.features.gateway.values import ANTHROPIC, CHATGPT, OPENAI, GatewaySettings, ProviderTool, ToolKind
from aileron.features.provider_tools import watch as _tool_watch
from aileron.features.provider_tools.notes import MOST_SESSIONS, MOST_TOOLS
from aileron.features.provider_tools.scan import ToolScan
from aileron.features.provider_tools.values import SETTING, ToolRule, ToolRules
from aileron.features.provider_tools.watch import ToolWatch
from aileron.model.sessions import SANDBOX_ADDRESS
from tests.features.gateway.case import KEY, OK, GatewayCase, request
from tests.features.gateway.net import End

SERVER = b'{"model":"m","messages":[],"mcp_servers":[{"type":"url","url":"https://mcp.example.com/sse?key=secret"}]}'
SEARCH = b'{"model":"m","tools":[{"type":"web_search"}],"input":"a secret"}'
PLAIN = b'{"model":"m","messages":[{"role":"user","content":"web_search"}]}'
HOST = "mcp.example.com"
MINE = f"X-Aileron-Gateway-Key: {KEY}"


def rules(rule: ToolRule, *kinds: ToolKind) -> GatewaySettings:
    """A gateway with one rule, for all kinds where none are named."""
    tools = ToolRules(dict.fromkeys(kinds, rule)) if kinds else ToolRules.all(rule)
    return GatewaySettings((OPENAI, ANTHROPIC, CHATGPT), silence_seconds=40.0, of_features={SETTING: tools})


class ToolCase(GatewayCase):
    """A gateway with rules."""

    @property
    def watch(self) -> ToolWatch:
        """The watch over the gateway's requests."""
        watch = self.gateway._watch
        assert isinstance(watch, ToolWatch)
        return watch

    def counted(self) -> dict[str, int]:
        """What was counted, in words."""
        self.clock.pump([0.004] * 10)
        return {
            f"{each.provider} {each.session_id} {each.tool}{' refused' if each.refused else ''}": each.requests
            for each in self.notes.counts()
        }

    def told(self) -> list[tuple[str, object]]:
        """What was put on record."""
        return [(event.type, dict(event.payload)) for event in self.audit.events]

    def chunked(self, target: str, body: bytes, size: int) -> bytes:
        """A request in chunks."""
        head = request(target, "Transfer-Encoding: chunked", body=b"")
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
        return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


class OffTests(ToolCase):
    """Without a rule."""

    def test_unread(self) -> None:
        """By default no byte of a request is read, of whatever session, and nothing is counted."""
        self.patch(ToolScan, "feed", lambda *_: self.fail("a request was read"))
        self.session()
        for line in ((), (MINE,)):
            _, there = self.ask(request("/v1/messages", *line, body=SERVER), "anthropic")
            self.assertTrue(there.take().endswith(SERVER))
            self.ask(self.chunked("/v1/responses", SEARCH, 7))
        self.assertEqual((self.counted(), self.told()), ({}, []))

    def test_kind(self) -> None:
        """A rule for one provider, or one kind, is none for others."""
        note = ToolRules({ToolKind.WEB_SEARCH: ToolRule.NOTE})
        self.settings = GatewaySettings((evolve(OPENAI, of_features={SETTING: note}), ANTHROPIC, CHATGPT))
        self.gateway = self._gateway()
        self.site.taker = self.gateway
        self.gateway.open(())
        self.addCleanup(self.gateway.close)
        self.ask(request("/v1/messages", body=SERVER), "anthropic")
        self.ask(request("/v1/chat/completions", body=SERVER))
        self.ask(request("/v1/responses", body=SEARCH))
        self.assertEqual(self.counted(), {"openai None web_search": 1})


class SessionTests(ToolCase):
    """A session that notes them, with no rule in the configuration."""

    def test_session(self) -> None:
        """Its own calls are noted, whether or not it is at hand, and nobody else's."""
        for at_hand in (True, False):
            session = self.session(at_hand=at_hand)
            noting = evolve(session, notes_tools=True)
            for known in (self.keys.in_store, self.keys.in_memory):
                known.update(dict.fromkeys(known, noting))
            self.ask(request("/v1/messages", MINE, body=SERVER), "anthropic")
            self.keys.in_memory.clear()
        self.ask(request("/v1/messages", body=SERVER), "anthropic")
        self.assertEqual(self.counted(), {f"anthropic {session.id} remote_mcp at {HOST}": 2})
        self.assertEqual(self.audit.events[0].session_id, session.id)

    def test_without_key(self) -> None:
        """A call from a sandbox that leaves out its session's key is noted all the same, in no session."""
        self.session()
        self.patch(End, "getPeer", lambda _: IPv4Address("TCP", SANDBOX_ADDRESS, 40000))
        self.ask(request("/v1/messages", body=SERVER), "anthropic")
        self.ask(request("/v1/messages", MINE, body=SERVER), "anthropic")
        self.assertEqual(self.counted(), {f"anthropic None remote_mcp at {HOST}": 1})


class NoteTests(ToolCase):
    """Where they are noted."""

    settings = rules(ToolRule.NOTE)

    def test_counted(self) -> None:
        """What was asked for is counted each time and put on record once, by kind and host, never by content."""
        for _ in range(3):
            self.ask(request("/v1/messages", body=SERVER), "anthropic")
        self.ask(request("/v1/responses", body=SEARCH))
        self.ask(request("/v1/chat/completions", body=PLAIN))
        self.ask(request("/v1/chat/completions", body=b""))
        self.assertEqual(self.counted(), {f"anthropic None remote_mcp at {HOST}": 3, "openai None web_search": 1})
        expected: list[tuple[str, object]] = [
            ("tool.noted", {"provider": "anthropic", "kind": "remote_mcp", "host": HOST}),
            ("tool.noted", {"provider": "openai", "kind": "web_search", "host": None}),
        ]
        self.assertEqual(self.told(), expected)
        self.assertNotIn("secret", repr(self.audit.events) + repr(self.notes.counts()))

    def test_never_in_the_way(self) -> None:
        """Each byte is written to the provider before any of it is read, and unchanged."""
        moments: list[str] = []
        feed, line = ToolScan.feed, self.line()

        def noted(scan: ToolScan, data: bytes) -> None:
            moments.append("read")
            feed(scan, data)

        self.patch(ToolScan, "feed", noted)
        asked = request("/v1/messages", body=SERVER)
        line.end.write(asked[:-30])
        self.net.run()
        (there,) = self.places["anthropic"].peers
        line.end.write(asked[-30:])
        self.net.run()
        self.assertTrue(there.take().endswith(SERVER))
        self.assertEqual(moments, [])
        self.clock.advance(0)
        self.assertEqual(moments, [])
        self.assertEqual(self.counted(), {f"anthropic None remote_mcp at {HOST}": 1})
        self.assertTrue(moments)

    def test_chunked(self) -> None:
        """A request in chunks is read without what stands between them."""
        for size in (1, 3, 1000):
            self.ask(self.chunked("/v1/messages", SERVER, size), "anthropic")
        self.assertEqual(self.counted(), {f"anthropic None remote_mcp at {HOST}": 3})

    def test_unreadable(self) -> None:
        """A compressed request, or one that is no JSON, goes on and is counted as not readable."""
        for coding in ("zstd", "gzip, identity", "GZIP", " br "):
            _, there = self.ask(request("/v1/responses", f"content-encoding:{coding}", body=SEARCH))
            self.assertTrue(there.take().endswith(SEARCH))
        self.ask(request("/v1/responses", body=b"\x28\xb5\x2f\xfd"))
        self.ask(request("/v1/responses", "Content-Encoding: identity", body=PLAIN))
        self.assertEqual(self.counted(), {"openai None unreadable": 5})

    def test_left(self) -> None:
        """A request that never came whole is not counted; the daemon's end reads what still waits."""
        line = self.line()
        line.say(request("/v1/messages", body=SERVER)[:-1])
        line.go(politely=False)
        self.after(line)
        self.assertEqual(self.counted(), {})
        line = self.line()
        line.end.write(request("/v1/messages", body=SERVER))
        self.net.run()
        self.gateway.close()
        self.assertEqual([each.requests for each in self.notes.counts()], [1])

    def test_queue(self) -> None:
        """What waits to be read is bounded; what does not fit is counted as not readable."""
        self.patch(_tool_watch, "MOST_QUEUED_BYTES", 200_000)
        line, length = self.line(), 500_002
        line.end.write(request("/v1/messages", f"Content-Length: {length}", body=b"") + b'{"')
        line.pour(length - 2)
        self.assertLessEqual(self.watch._queued_bytes, 200_000)
        self.assertLess(len(self.watch._queue), 10)
        self.assertEqual(self.counted(), {"anthropic None unreadable": 1})
        self.assertEqual(self.watch._queued_bytes, 0)

    def slowed(self, seconds: float, body: bytes) -> list[float]:
        """Ask with a body, each slice of which takes so long to read: when each is."""
        moments: list[float] = []

        def feed(_: ToolScan, __: bytes) -> None:
            moments.append(self.clock.seconds())
            self.clock.rightNow += seconds

        self.patch(ToolScan, "feed", feed)
        self.ask(request("/v1/messages", body=body), "anthropic")
        return moments

    def test_turns(self) -> None:
        """Reading takes no more than a quarter of the time, two milliseconds in a row, whatever the request."""
        moments = self.slowed(0.001, bytes(8 * _tool_watch._SLICE_BYTES))
        self.clock.pump([0.0005] * 100)
        waits = [round(later - former, 4) for former, later in pairwise(moments)]
        self.assertEqual(waits[::2], [0.001] * 4)
        self.assertGreaterEqual(min(waits[1::2]), 0.007)

    def test_end(self) -> None:
        """The daemon's end waits a second for what is still to be read; what is left is counted as not readable."""
        moments = self.slowed(0.3, bytes(8 * _tool_watch._SLICE_BYTES))
        self.gateway.close()
        self.assertEqual(len(moments), 4)
        self.assertEqual(self.counted(), {"anthropic None unreadable": 1})

    def test_hosts(self) -> None:
        """A session that names ever new hosts is counted under a bounded number, and recorded as often."""
        for number in range(MOST_TOOLS + 40):
            tool = ProviderTool(ToolKind.REMOTE_MCP, f"h{number}.example")
            self.notes.note("openai", "ses1", [tool], refused=False)
        self.assertEqual(len(self.notes.counts()), MOST_TOOLS + 1)
        self.assertEqual(len(self.audit.events), MOST_TOOLS + 1)
        self.assertEqual(self.counted()["openai ses1 remote_mcp"], 40)
        for number in range(MOST_SESSIONS + 9):
            self.notes.note("openai", f"s{number}", [ProviderTool(ToolKind.OTHER)], refused=False)
        self.assertEqual(len(self.notes.counts()), MOST_SESSIONS)


class RefuseTests(ToolCase):
    """Where they are refused."""

    settings = rules(ToolRule.REFUSE)

    def heard(self, asked: bytes) -> bytes:
        """What a client hears that is refused, and nothing was sent."""
        heard = self.line().say(asked)
        self.assertEqual(self.reached(), [])
        return heard

    def test_shapes(self) -> None:
        """A request that asks for one is refused in the provider's shape, naming the setting; nothing is sent."""
        for target, status, body in (
            ("/v1/messages", 403, SERVER),
            ("/v1/chat/completions", 403, b'{"web_search_options":{}}'),
            ("/v1/responses", 400, SEARCH),
            ("/openai/v1/assistants", 403, b'{"tools":[{"type":"code_interpreter"}]}'),
        ):
            answer = self.refused(self.heard(request(target, body=body)), status, "forbidden")
            message = answer["error"]["message"]
            self.assertIn("gateway.provider_tools", message)
            self.assertNotIn("secret", message)
        refused = self.refused(self.heard(request("/v1/messages", body=SERVER)), 403)
        self.assertEqual((refused["type"], refused["error"]["type"]), ("error", "permission_error"))
        self.assertIn(f"remote_mcp at {HOST}", refused["error"]["message"])
        self.assertEqual(self.counted()[f"anthropic None remote_mcp at {HOST} refused"], 2)
        self.assertIn("tool.refused", [type_ for type_, _ in self.told()])

    def test_unreadable(self) -> None:
        """What cannot be read is refused: compressed, no JSON, or cut off."""
        for line, body in (("Content-Encoding: zstd", PLAIN), ("X: y", b"\xff\xfe{\x00}\x00"), ("X: y", PLAIN[:-1])):
            answer = self.refused(self.heard(request("/v1/responses", line, body=body)), 400, "forbidden")
            self.assertIn("cannot be read", answer["error"]["message"])
        self.assertEqual(self.counted(), {"openai None unreadable refused": 3})

    def test_waits(self) -> None:
        """Nothing is sent before the whole request is known to be harmless; then it goes on as it came."""
        for asked in (request("/v1/messages", body=PLAIN), self.chunked("/v1/messages", PLAIN, 9)):
            line, before = self.line(), len(self.places["anthropic"].peers)
            line.say(asked[:-5])
            self.assertEqual(len(self.places["anthropic"].peers), before)
            line.say(asked[-5:])
            there = self.places["anthropic"].peers[-1]
            heard = there.take()
            self.assertTrue(heard.endswith(asked.partition(b"\r\n\r\n")[2]))
            there.end.write(OK)
            self.assertEqual(self.after(line), OK)

    def test_at_once(self) -> None:
        """A tool is refused when it is seen; the rest of the request is not waited for."""
        line = self.line()
        heard = line.say(request("/v1/messages", "Content-Length: 5000000", body=b"") + SERVER[:-1])
        self.refused(heard, 403, "forbidden")

    def test_long(self) -> None:
        """A long request is held whole, one longer than the cap is refused, and no memory stays taken."""
        self.patch(_tool_watch, "MOST_HELD_BYTES", 500_000)
        for length, status in ((450_000, 0), (600_000, 413)):
            line = self.line()
            body = b'{"messages":[{"content":"%b"}]}' % (b"y" * length)
            line.say(request("/v1/messages", f"Content-Length: {len(body)}", body=b""))
            for start in range(0, len(body), 100_000):
                line.end.write(body[start : start + 100_000])
                self.net.run()
            if status:
                self.assertIn("gateway.provider_tools", self.refused(self.after(line), status)["error"]["message"])
            else:
                (there,) = self.places["anthropic"].peers
                self.assertTrue(self.after(there).endswith(body))
                there.end.write(OK)
                self.after(line)
        self.assertEqual(self.gateway._budget.held_bytes, 0)

    def test_silent(self) -> None:
        """A client that stops in the middle of such a request is told, in time."""
        line = self.line()
        line.say(request("/v1/messages", body=PLAIN)[:-3])
        self.wait(60)
        self.refused(line.take(), 408)

    def test_held_before(self) -> None:
        """A client that had to wait for its session to be known goes on, however much it had sent."""
        self.session(at_hand=False)
        self.keys.slow = True
        line = self.line()
        body = b'{"messages":[{"content":"%b"}]}' % (b"y" * 600_000)
        asked = request("/v1/messages", MINE, f"Content-Length: {len(body)}", body=b"") + body
        for start in range(0, len(asked), 50_000):
            line.end.write(asked[start : start + 50_000])
            self.net.run()
        self.assertEqual(self.reached(), [])
        self.keys.slow = False
        self.keys.waiting.pop().callback(None)
        self.net.run()
        (there,) = self.places["anthropic"].peers
        self.assertTrue(self.after(there).endswith(body))

    def test_meanwhile(self) -> None:
        """What was held is not sent if the vault was locked or the session ended before it had come whole."""
        asked = request("/v1/messages", MINE, body=PLAIN)
        for at_hand in (True, False):
            self.session(at_hand=at_hand)
            line = self.line()
            line.say(asked[:-3])
            self.session(live=False)
            self.keys.in_memory.clear()
            self.refused(line.say(asked[-3:]), 403, "forbidden")
        self.session()
        line = self.line()
        line.say(asked[:-3])
        self.vault.lock()
        self.refused(line.say(asked[-3:]), 403, "vault_locked")
        self.assertEqual(self.reached(), [])

    def test_without_body(self) -> None:
        """A request without a body goes on."""
        for asked in (request("/v1/models", method="GET", body=b""), request("/openai/v1/x", body=b"")):
            self.ask(asked)
        self.assertEqual(self.reached(), ["openai"])

    def test_next(self) -> None:
        """On a connection that is kept, each request is judged by itself, in one piece with others or not."""
        line = self.line()
        line.say(request("/v1/messages", body=PLAIN) + request("/v1/messages", body=SERVER))
        (there,) = self.places["anthropic"].peers
        there.end.write(OK)
        heard = self.after(line)
        self.assertTrue(heard.startswith(OK))
        self.refused(heard.removeprefix(OK), 403, "forbidden")
        self.assertNotIn(b"mcp_servers", there.heard)


class MixedTests(ToolCase):
    """One kind refused, another noted, and a session that notes the rest."""

    settings = GatewaySettings(
        (OPENAI, ANTHROPIC, CHATGPT),
        of_features={SETTING: ToolRules({ToolKind.REMOTE_MCP: ToolRule.REFUSE, ToolKind.WEB_FETCH: ToolRule.NOTE})},
    )

    def test_kinds(self) -> None:
        """Each kind has its own rule; a session that notes weakens none."""
        session = evolve(self.session(), notes_tools=True)
        self.keys.in_memory = dict.fromkeys(self.keys.in_memory, session)
        kinds = [{"type": "web_fetch_20250910"}, {"type": "web_search_20250305"}]
        self.ask(request("/v1/messages", body=json.dumps({"tools": kinds}).encode()), "anthropic")
        self.assertEqual(self.counted(), {"anthropic None web_fetch": 1})
        self.ask(request("/v1/messages", MINE, body=json.dumps({"tools": kinds}).encode()), "anthropic")
        self.assertEqual(self.counted()[f"anthropic {session.id} web_search"], 1)
        self.refused(self.line().say(request("/v1/messages", MINE, body=SERVER)), 403, "forbidden")


class ContentTests(GatewayCase):
    """The content of a chunked body."""

    @given(st.lists(st.binary(min_size=1, max_size=20), max_size=6), st.data())
    @settings(max_examples=60, deadline=None)
    def test_content(self, chunks: list[bytes], data: st.DataObject) -> None:
        """However a chunked body is split, its content is what its chunks hold."""
        body = b"".join(b"%x;a=b\r\n%b\r\n" % (len(each), each) for each in chunks) + b"0\r\n\r\n"
        places = sorted(data.draw(st.sets(st.integers(1, len(body) - 1), max_size=6)))
        pieces = [body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True)]
        content, follower = ChunkedContent(), Chunked(trailers=False)
        heard = b""
        for piece in pieces:
            follower.take(piece)
            heard += content.take(piece)
        self.assertEqual(heard, b"".join(chunks))
