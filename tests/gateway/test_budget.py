"""How many bytes the gateway holds: for a request, a session, and in total."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from aileron.gateway._budget import MOST_SESSION_BYTES, RESERVED_BYTES, ByteBudget, RequestBuffer
from aileron.gateway._exchange import MOST_WAITING_BYTES
from tests.gateway.case import HOST, KEY, OK, GatewayCase, Line, get, request, status_of

LENGTH = 900_000


def upload(path: str = "/openai/x") -> bytes:
    """The head of a request with a body that is kept for another try, and is longer than what may wait."""
    return f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {LENGTH}\r\n\r\n".encode()


class AccountTests(SynchronousTestCase):
    """Counting."""

    def setUp(self) -> None:
        """Little room."""
        self.budget = ByteBudget(most_bytes=100, most_session_bytes=60)

    def test_session(self) -> None:
        """A session is bounded by itself, and does not take the room of another."""
        one, other = self.budget.account("one"), self.budget.account("other")
        self.assertEqual((one.change(60), one.change(1)), (True, False))
        self.assertEqual((one.has_room(0), other.has_room(39), other.has_room(40)), (False, True, False))
        self.assertTrue(other.change(39))

    def test_total(self) -> None:
        """All together are bounded, and what is given back can be used again."""
        accounts = [self.budget.account(name) for name in "abc"]
        self.assertEqual([account.change(50) for account in accounts], [True, True, False])
        self.assertFalse(accounts[0].has_room(1))
        self.assertTrue(accounts[2].change(-50))
        self.assertEqual(self.budget.held_bytes, 100)

    def test_one_for_a_session(self) -> None:
        """Exchanges of one session share an account as long as one of them is there; none is kept after that."""
        account = self.budget.account("one")
        account.change(5)
        self.assertIs(self.budget.account("one"), account)
        account.change(-5)
        del account
        self.assertEqual(self.budget.account("one").held_bytes, 0)

    def test_buffer(self) -> None:
        """A buffer counts what it holds and what is reserved beside it, from when its account is known."""
        buffer, account = RequestBuffer(), self.budget.account("one")
        self.assertTrue(buffer.keep(b"x" * 30))
        buffer.open(b"head", account)
        buffer.reserve(20)
        self.assertEqual((buffer.whole(), account.held_bytes), (b"head" + b"x" * 30, 54))
        self.assertFalse(buffer.keep(b"y" * 10))
        buffer.forget()
        self.assertEqual(
            (account.held_bytes, buffer.replayable, buffer.keep(b"z"), buffer.whole()), (20, False, True, b"")
        )
        buffer.reserve(0)
        self.assertEqual(self.budget.held_bytes, 0)


class HeldTests(GatewayCase):
    """A gateway whose provider does not answer."""

    @property
    def held(self) -> int:
        """How many bytes are counted."""
        return self.gateway._budget.held_bytes

    def say(self, line: Line, length: int = LENGTH) -> None:
        """Send a body."""
        for _ in range(length // 50_000):
            line.end.write(b"y" * 50_000)
            self.net.run()

    def test_fresh_connection(self) -> None:
        """What was sent by a connection of its own is not kept: it never has to be sent by another."""
        line, _ = self.ask(upload())
        self.assertEqual(self.held, RESERVED_BYTES)
        self.say(line)
        self.assertEqual(self.held, 0)

    def test_used_connection(self) -> None:
        """What was sent by one that had served before is kept and counted until its answer begins."""
        line, there = self.ask(get())
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)
        line.say(upload())
        self.say(line)
        self.assertGreater(self.held, LENGTH)
        there.end.write(OK)
        self.assertEqual((self.after(line), self.held), (OK, 0))

    def test_unconnected(self) -> None:
        """While nobody is connected to, what waits is counted, and given back when that has lasted too long."""
        self.places["openai"].open = False
        line = self.line()
        line.say(upload())
        self.say(line)
        self.assertGreater(self.held, MOST_WAITING_BYTES)
        self.assertLess(self.held, MOST_WAITING_BYTES + 2 * RESERVED_BYTES)
        self.wait(60)
        self.assertEqual((status_of(self.after(line)), self.held), (504, 0))

    def test_slow_client(self) -> None:
        """An answer that its client does not read is counted until it does."""
        line, there = self.ask(get())
        line.end.pauseProducing()
        there.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + b"x" * 300_000)
        self.net.run()
        self.assertEqual(self.held, RESERVED_BYTES)
        line.end.resumeProducing()
        self.net.run()
        self.assertEqual(self.held, 0)

    def test_refused(self) -> None:
        """Beyond its bound a session's next request is refused as the provider would, and others go on."""
        self.places["openai"].open = self.places["anthropic"].open = False
        lines = []
        while self.held + RESERVED_BYTES <= MOST_SESSION_BYTES:
            lines.append(self.line())
            lines[-1].say(upload())
            self.say(lines[-1])
        self.assertLess(self.held, MOST_SESSION_BYTES + MOST_WAITING_BYTES + RESERVED_BYTES)
        refused = self.line()
        heard = refused.say(request("/v1/messages"))
        self.assertEqual(status_of(heard), 429)
        self.assertEqual(json.loads(heard.partition(b"\r\n\r\n")[2])["error"]["type"], "rate_limit_error")
        other = self.line()
        self.session()
        heard = other.say(request("/v1/messages", f"X-Aileron-Gateway-Key: {KEY}"))
        self.assertEqual((heard, self.places["anthropic"].asked), (b"", 1))
        self.wait(60)
        self.assertEqual(self.held, 0)
