"""How requests in in-band mode end badly: never as if they were complete, and within bounds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred
from zope.interface import implementer

from aileron.features.inband._exchange import MOST_BODY_BYTES, SILENT_SECONDS
from aileron.model.audit import Event
from aileron.model.errors import StoreUnavailable
from aileron.model.interfaces.store import IInBandMemories
from aileron.testing import AuditProxy
from tests.features.gateway.case import OK, status_of

from .case import WAITING, Answered, InBandCase, asked, chunk, content, events_of, head, text_of
from .provider import Called, Said, chat_events

SHIP = Called("c1", "ship")
REFUSAL = b'HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\nContent-Length: 31\r\n\r\n{"error":{"message":"slowly"}}\n'


class ProviderTests(InBandCase):
    """Providers that refuse, break off, or say nothing that can be read."""

    def test_refused_at_first(self) -> None:
        """A refusal before anything was said is passed on as it came, and the connection goes on."""
        for stream in (True, False):
            line, there = self.begin(stream=stream)
            self.next_request(there)
            there.end.write(REFUSAL[:50])
            self.net.run()
            there.end.write(REFUSAL[50:])
            self.assertEqual(self.after(line), REFUSAL)
            line.say(self.post(asked(stream=stream)))
            self.assertIsNotNone(self.next_request(there))

    def test_refused_later(self) -> None:
        """A refusal after a call was run ends the reply as an error that no SDK tries again by itself."""
        line, there = self.begin()
        self.next_request(there)
        self.say(there, SHIP)
        self.next_request(there)
        there.end.write(REFUSAL)
        told = events_of(self.after(line))[-1]["error"]["message"]
        called = "Before that, the model called ship. Check the outcome before you repeat it."
        self.assertEqual(told.partition("HTTP ")[2], f"429: slowly. {called}")
        line, there = self.begin(stream=False)
        self.next_request(there)
        self.say(there, SHIP, stream=False)
        self.next_request(there)
        there.end.write(REFUSAL)
        heard = self.after(line)
        self.assertEqual(status_of(heard), 429)
        self.assertIn(b"\r\nX-Should-Retry: false\r\n", heard)
        self.assertIn("slowly", json.loads(content(heard))["error"]["message"])

    def test_unreachable(self) -> None:
        """A provider that closes the connection without a word is the gateway's error."""
        line, there = self.begin()
        there.end.loseConnection()
        self.assertEqual(status_of(self.after(line)), 502)

    def test_broken_off(self) -> None:
        """An answer that breaks off ends the stream with an error, and a document with a status."""
        for stream, status in ((True, 200), (False, 502)):
            line, there = self.begin(stream=stream)
            there.end.write(head(stream=stream) + chunk(chat_events([Said("abc")])[0]))
            self.net.run()
            there.end.loseConnection()
            heard = self.after(line)
            self.assertEqual(status_of(heard), status)
            last = events_of(heard)[-1] if stream else json.loads(content(heard))
            self.assertIn("error", last)
            self.assertNotIn(b"[DONE]", heard)

    def test_refusal_broken_off(self) -> None:
        """A refusal that breaks off while it is passed on is broken off."""
        line, there = self.begin()
        there.end.write(REFUSAL[:-5])
        self.net.run()
        there.end.loseConnection()
        self.assertEqual(self.after(line), REFUSAL[:-5])
        self.assertIsNotNone(line.lost)

    def test_unreadable(self) -> None:
        """What is no stream of this protocol, and what is compressed, ends as an error; the provider is let go."""
        for answer, word in (
            (head() + chunk(b"data: {nonsense\n\n"), b""),
            (head(lines=b"Content-Encoding: gzip\r\n") + chunk(b"x") + b"0\r\n\r\n", b"compressed"),
        ):
            line, there = self.begin()
            there.end.write(answer)
            self.net.run()
            self.wait(1)
            heard = line.take()
            self.assertIn(b'"error"', heard)
            self.assertIn(word, heard)
            self.assertNotIn(b"[DONE]", heard)
            self.assertTrue(there.lost is not None or answer.endswith(b"0\r\n\r\n"))

    def test_not_compressed(self) -> None:
        """A request or a response that says it has no coding, in so many words, is none that is compressed."""
        line, there = self.begin("Content-Encoding: identity")
        self.next_request(there)
        answer = head(lines=b"Content-Encoding: identity\r\n")
        there.end.write(answer + b"".join(map(chunk, chat_events([Said("abc")]))) + b"0\r\n\r\n")
        self.assertEqual(text_of(self.after(line)), "abc")

    def test_ended_at_once(self) -> None:
        """An empty answer, and one that has no body at all, are errors."""
        for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", OK):
            line, there = self.begin()
            there.end.write(answer)
            self.assertIn(b'"error"', self.after(line))


class RequestTests(InBandCase):
    """Requests that cannot be read, are too long, or do not come."""

    def test_unreadable(self) -> None:
        """A body that is no JSON object, or is compressed, is refused in the provider's shape, and nothing is sent."""
        bodies = ((b"{", ""), (b"[]", ""), (b"{}", "Content-Encoding: gzip"))
        for body, field in bodies:
            heard = self.line().say(self.post(body, *([field] if field else [])))
            self.assertEqual(status_of(heard), 400, body)
            self.assertEqual(json.loads(content(heard))["error"]["type"], "invalid_request_error")
        self.assertEqual(self.reached(), [])

    def test_thread(self) -> None:
        """A thread that the provider would keep is refused so that the SDK sends the whole history by itself."""
        body = {"model": "m", "max_tokens": 9, "messages": [], "thread": {"type": "create"}}
        heard = self.line().say(self.post(body, path="/inband/anthropic/v1/messages?beta=true"))
        error = json.loads(content(heard))["error"]
        self.assertEqual((status_of(heard), error["type"]), (400, "invalid_request_error"))
        self.assertEqual(error["details"]["error_code"], "thread_unsupported_request")
        self.assertEqual(self.reached(), [])

    def test_in_pieces(self) -> None:
        """A body may come in pieces, or in chunks, and goes on whole."""
        body = json.dumps(asked()).encode()
        whole = self.post(asked())
        line = self.line()
        for at in range(0, len(whole), 40):
            line.say(whole[at : at + 40])
        (there,) = self.places["openai"].peers
        self.assertEqual(self.next_request(there)["messages"], asked()["messages"])
        start = self.post(b"", "Transfer-Encoding: chunked")
        whole = start + chunk(body[:10]) + chunk(body[10:]) + b"0\r\n\r\n"
        for step in (len(whole), 7):
            line = self.line()
            for at in range(0, len(whole), step):
                line.say(whole[at : at + step])
            there = self.places["openai"].peers[-1]
            self.assertEqual(self.next_request(there)["messages"], asked()["messages"])

    def test_malformed(self) -> None:
        """Chunks that are none are refused."""
        heard = self.line().say(self.post(b"", "Transfer-Encoding: chunked") + b"zz\r\n")
        self.assertEqual(status_of(heard), 400)
        self.assertEqual(self.reached(), [])

    def test_too_long(self) -> None:
        """A body beyond the cap is refused before it is read whole, and what was held is let go."""
        start = self.post(b"", f"Content-Length: {MOST_BODY_BYTES + 100_000}")
        line = self.line()
        line.end.write(start)
        line.pour(MOST_BODY_BYTES + 50_000)
        self.assertEqual(status_of(self.after(line)), 413)
        self.assertEqual(self.handler.budget.held, 0)

    def test_announced_too_long(self) -> None:
        """A body that is announced beyond the cap is refused before a byte of it."""
        start = self.post(b"", f"Content-Length: {MOST_BODY_BYTES + 1}", "Expect: 100-continue")
        self.assertEqual(status_of(self.line().say(start)), 413)

    def test_expected(self) -> None:
        """A client that waits to be told is told to go on, once, and one that has begun to send is not."""
        body = json.dumps(asked()).encode()
        start = self.post(b"", f"Content-Length: {len(body)}", "expect: 100-Continue")
        line = self.line()
        self.assertEqual(line.say(start), b"HTTP/1.1 100 Continue\r\n\r\n")
        line.say(body[:10])
        line.say(body[10:])
        there = self.places["openai"].peers[-1]
        self.assertNotIn(b"xpect", there.heard)
        self.assertEqual(self.next_request(there)["messages"], asked()["messages"])
        self.say(there, Said("done"))
        self.assertEqual(text_of(self.after(line)), "done")
        line.say(start + body)
        self.next_request(there)
        self.say(there, Said("more"))
        self.assertTrue(self.after(line).startswith(b"HTTP/1.1 200 "))

    def test_stranger(self) -> None:
        """A client whose key opens nothing is refused by its head, whatever it still wants to send."""
        for field in ("Expect: 100-continue", "X-Other: 1"):
            line = self.line()
            start = self.post(b"", "Content-Length: 1000", field, key="ail_i_" + "x" * 43)
            self.refused(line.say(start + b"x" * 9), 403)
        self.assertEqual((self.reached(), self.handler.budget.held), ([], 0))

    def test_held_until_known(self) -> None:
        """Nothing more is read of a request before it is known whose it is."""
        looked_up: Deferred[None] = Deferred()

        @frozen
        class SlowSessions:
            """Sessions that are found late."""

            async def by_in_band_key(self, digest: bytes) -> Any:
                """Find one after a while."""
                await looked_up
                return await sessions.by_in_band_key(digest)

        sessions = self.store.sessions
        self.build(sessions=SlowSessions())
        whole, line = self.post(asked()), self.line()
        line.say(whole[:-20])
        self.assertFalse(line.end.other.reading)
        line.end.write(whole[-20:])
        looked_up.callback(None)
        self.net.run()
        self.assertIsNotNone(self.next_request(self.places["openai"].peers[-1]))

    def test_store_fails(self) -> None:
        """Where nobody can tell whose request it is, that is the answer, and the body is not read."""

        @frozen
        class FailingSessions:
            """Sessions of which none can be found."""

            async def by_in_band_key(self, digest: bytes) -> Any:
                """Fail."""
                raise StoreUnavailable("The disk is full.")

        self.build(sessions=FailingSessions())
        line = self.line()
        heard = line.say(self.post(b"", "Content-Length: 1000"))
        self.assertEqual((status_of(heard), b"The disk is full." in heard), (503, True))
        self.assertIn(b"Connection: close", heard)

    def test_too_much(self) -> None:
        """Where all requests hold too much, the next piece is refused; once they are over there is room again."""
        self.handler.budget.most = 100_000
        first, there = self.begin()
        heard = self.line().say(self.post({**asked(), "more": "x" * 100_000}))
        self.assertEqual(status_of(heard), 429)
        self.next_request(there)
        self.say(there, Said("done"))
        self.after(first)
        self.assertEqual(self.handler.budget.held, 0)

    def test_too_much_of_one(self) -> None:
        """One session's requests hold half of all at most, so that there is room for those of others."""
        self.handler.budget.most = 200_000
        heard = self.line().say(self.post({**asked(), "more": "x" * 110_000}))
        self.assertEqual((status_of(heard), self.handler.budget.held), (429, 0))
        some = self.post({**asked(), "more": "x" * 60_000})
        for _ in range(2):
            line, there = self.ask(some)
            self.next_request(there)
            self.assertEqual(status_of(self.line().say(some)), 429)
            self.say(there, Said("done"))
            self.assertEqual(text_of(self.after(line)), "done")
        self.assertEqual(self.handler.budget.held, 0)

    def test_too_slow(self) -> None:
        """A body that does not come is given up after a while, counted from its last piece."""
        whole, line = self.post(asked()), self.line()
        line.say(whole[:-20])
        self.wait(SILENT_SECONDS - 1)
        line.say(whole[-20:-10])
        self.wait(SILENT_SECONDS - 1)
        self.assertEqual(line.take(), b"")
        self.wait(1)
        self.assertEqual(status_of(line.take()), 408)
        self.assertEqual((self.reached(), self.handler.budget.held), ([], 0))

    def test_left_before(self) -> None:
        """A client that leaves before its request is whole leaves nothing behind."""
        line = self.line()
        line.say(self.post(asked())[:-20])
        line.end.loseConnection()
        self.wait(1)
        self.assertEqual((self.handler.budget.held, self.clock.getDelayedCalls()[1:]), (0, []))


class FullAudit(AuditProxy):
    """A record on which nothing can be put."""

    async def append(self, *events: Event) -> None:
        """Fail."""
        raise StoreUnavailable("The disk is full.")


@implementer(IInBandMemories)
@frozen
class FullMemories:
    """Memories of which none can be kept."""

    async def keep(self, session_id: str, keys: Sequence[str], content: str) -> None:
        """Fail."""
        raise StoreUnavailable("The disk is full.")

    async def find(self, session_id: str, keys: Sequence[str]) -> Sequence[tuple[tuple[str, ...], str]]:
        """Find none."""
        return ()

    async def keep_request(self, session_id: str, digest: bytes, request_id: str) -> None:
        """Keep nothing."""

    async def claim_request(self, session_id: str, digest: bytes, request_id: str, within_seconds: float) -> str:
        """Keep nothing."""
        return request_id

    async def find_request(self, session_id: str, digest: bytes, within_seconds: float) -> str | None:
        """Find none."""
        return None


class StoreTests(InBandCase):
    """A store that cannot be written, and tools that fail."""

    def test_not_on_record(self) -> None:
        """A hidden turn that cannot be put on record ends the reply, and the model is asked nothing more."""
        self.build(audit=FullAudit(self.store.audit))
        line, there = self.begin()
        self.next_request(there)
        self.say(there, SHIP)
        self.assertIn("The disk is full.", events_of(self.after(line))[-1]["error"]["message"])
        self.assertIsNone(self.next_request(there))

    def test_not_kept(self) -> None:
        """A mixed turn of which ours cannot be kept is no complete one."""
        self.build(memories=FullMemories())
        line, there = self.begin(tools=["own"])
        self.next_request(there)
        self.say(there, SHIP, Called("c2", "own"))
        heard = self.after(line)
        self.assertIn("The disk is full.", events_of(heard)[-1]["error"]["message"])
        self.assertNotIn(b"[DONE]", heard)

    def test_tools_fail(self) -> None:
        """What fails unexpectedly ends the reply, and nothing of it is told or logged but its kind."""
        self.tools.answers = [WAITING]
        line, there = self.begin()
        self.next_request(there)
        self.say(there, SHIP)
        heard = self.after(line)
        self.tools.waiting[0].errback(RuntimeError("canary"))
        heard += self.after(line)
        told = events_of(heard)[-1]["error"]["message"]
        self.assertIn("in-band mode failed. Before that, the model called ship. Check", told)
        [turn] = self.events("in_band.turn")
        self.assertEqual(turn.payload["calls"], [{"tool": "ship", "input_bytes": 2, "outcome": "left"}])
        self.assertNotIn(b"canary", heard)

    def test_answered_late(self) -> None:
        """Calls of one turn are run at once, and the model gets their results in its own order."""
        self.tools.answers = [WAITING, WAITING]
        _line, there = self.begin()
        self.next_request(there)
        self.say(there, Called("a", "ship"), Called("b", "look_up"))
        self.net.run()
        waiting: list[Deferred[Answered]] = self.tools.waiting
        waiting[1].callback(Answered("second"))
        self.assertIsNone(self.next_request(there))
        waiting[0].callback(Answered("first"))
        results = [each["content"] for each in self.next_request(there)["messages"] if each["role"] == "tool"]
        self.assertEqual(results, ["first", "second"])
