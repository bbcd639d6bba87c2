"""Flow control: who does not read makes the other side wait, and nothing piles up between them."""

from __future__ import annotations

from attrs import evolve

from tests.gateway.case import HOST, KEY, OK, GatewayCase, Line, Peer, get, request

MUCH = 2_000_000
MOST_HELD = 500_000
"""More than we may hold of a message: a buffer, a segment on its way, and what waits for a connection."""


def much(length: int = MUCH) -> bytes:
    """The head of a request with a long body."""
    return request(body=b"")[:-2] + b"Content-Length: %d\r\n\r\n" % length


class ToClientTests(GatewayCase):
    """A client that does not read."""

    def start(self) -> tuple[Line, Peer]:
        """A long answer to one."""
        line, there = self.ask(get())
        line.end.pauseProducing()
        there.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % MUCH)
        for _ in range(MUCH // 50_000):
            there.end.write(b"x" * 50_000)
            self.net.run()
        return line, there

    def test_provider_waits(self) -> None:
        """The provider is not read while the client does not read, and all arrives when it does."""
        line, there = self.start()
        self.assertLess(line.end.other.peak, MOST_HELD)
        self.assertGreater(len(there.end.waiting), MUCH - MOST_HELD)
        line.end.resumeProducing()
        heard = self.after(line)
        self.assertEqual(len(heard.partition(b"\r\n\r\n")[2]), MUCH)
        self.assertLess(line.end.other.peak, MOST_HELD)

    def test_it_may_take_its_time(self) -> None:
        """A client that reads slowly is not silent, as long as it has read now and then what waits for it."""
        line, _ = self.start()
        for _ in range(10):
            self.wait(35)
            line.end.resumeProducing()
            for _ in range(4):
                self.net.turn()
            line.end.pauseProducing()
        self.assertLess(len(line.heard), MUCH)
        line.end.resumeProducing()
        self.assertEqual(len(self.after(line).partition(b"\r\n\r\n")[2]), MUCH)

    def test_paused_connection_is_kept_awake(self) -> None:
        """A provider's connection that was paused for one client serves the next."""
        line, there = self.ask(get())
        line.end.pauseProducing()
        there.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + b"x" * 70_000)
        self.net.run()
        there.take()
        other, again = self.ask(get("/openai/again"))
        self.assertIs(again, there)
        there.end.write(OK)
        self.assertEqual(self.after(other), OK)

    def test_reads_after_the_answer(self) -> None:
        """An answer that is whole is not cut before its client was silent for too long."""
        for asked in (get(), get("/openai/x", "Connection: close")):
            line, there = self.ask(asked)
            line.end.pauseProducing()
            there.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + b"x" * 70_000)
            self.net.run()
            self.wait(39)
            line.end.resumeProducing()
            heard = self.after(line)
            self.assertEqual(len(heard.partition(b"\r\n\r\n")[2]), 70_000)
            self.wait(150)
            self.assertTrue(line.lost)

    def test_long_stream(self) -> None:
        """A client's connection rests for its time from the end of an answer, not from its beginning."""
        line, there = self.ask(get())
        for _ in range(7):
            self.wait(17)
            there.end.write(b"HTTP/1.1 102 Processing\r\n\r\n")
            self.after(line)
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)
        self.wait(30)
        line.say(get())
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)
        self.wait(150)
        self.assertTrue(line.lost)

    def test_pipelined_behind_unread(self) -> None:
        """No request is begun before the answers to those before it were read."""
        line, there = self.ask(get())
        line.end.pauseProducing()
        there.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + b"x" * 70_000)
        self.net.run()
        there.take()
        line.say(get("/openai/next"))
        self.assertEqual(there.take(), b"")
        line.end.resumeProducing()
        self.net.run()
        self.assertIn(b"GET /next ", there.take())


class ToProviderTests(GatewayCase):
    """A provider that does not read, or is not there yet."""

    def upload(self, line: Line, length: int = MUCH) -> None:
        """Send a long body."""
        for _ in range(length // 50_000):
            line.end.write(b"y" * 50_000)
            self.net.run()

    def test_client_waits(self) -> None:
        """The client is not read while the provider does not read, and all arrives when it does."""
        line, there = self.ask(much())
        there.end.pauseProducing()
        self.upload(line)
        self.assertLess(there.end.other.peak, MOST_HELD)
        self.assertGreater(len(line.end.waiting), MUCH - MOST_HELD)
        there.end.resumeProducing()
        self.net.run()
        self.assertEqual(there.heard.count(b"y"), MUCH)
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)

    def test_client_waits_for_connection(self) -> None:
        """It is not read either beyond some, while nobody is connected to."""
        self.places["openai"].open = False
        line = self.line()
        line.say(much())
        self.upload(line)
        self.assertGreater(len(line.end.waiting), MUCH - MOST_HELD)
        there = self.places["openai"].accept()
        self.net.run()
        self.assertEqual(there.heard.count(b"y"), MUCH)
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)

    def test_slow_from_the_first_byte(self) -> None:
        """A provider that accepts and does not read makes the client wait, whatever had been collected by then."""
        self.places["openai"].open = False
        line = self.line()
        line.say(much())
        self.upload(line)
        there = self.places["openai"].accept()
        there.end.pauseProducing()
        self.net.run()
        self.assertLess(there.end.other.peak, MOST_HELD)
        there.end.resumeProducing()
        self.net.run()
        self.assertEqual(there.heard.count(b"y"), MUCH)

    def test_held_once_is_held_again(self) -> None:
        """A client that was held for sending ahead is held for its next upload too."""
        for ahead in (get("/ours"), get()):
            line = self.line()
            if ahead == get("/ours"):
                line.end.pauseProducing()
                line.say(get("/ours") * 2000)
                line.end.resumeProducing()
                self.wait(0, turns=2000)
            else:
                line.say(ahead)
                there = self.places["openai"].peers[-1]
                line.end.pauseProducing()
                there.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + b"x" * 70_000)
                self.net.run()
                line.say(get("/ours") + b"GET /ours HTTP/1.1\r\nHost: " + HOST.encode() + b"\r\nX: " + b"x" * 16_000)
                self.upload(line, 150_000)
                line.end.resumeProducing()
                self.net.run()
                line = self.line()
                continue
            line.take()
            line.say(much())
            there = self.places["openai"].peers[-1]
            there.end.pauseProducing()
            self.upload(line)
            self.assertLess(there.end.other.peak, MOST_HELD)
            line.end.abortConnection()
            self.net.run()

    def test_large_body(self) -> None:
        """More than is kept for another try goes through as well."""
        line, there = self.ask(much())
        self.upload(line)
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)


class ManyTests(GatewayCase):
    """Bounds."""

    most_connections = 4

    def setUp(self) -> None:
        """A short silence is none of these tests' business."""
        self.settings = evolve(type(self).settings, silence_seconds=10_000.0)
        super().setUp()

    def test_session_is_never_evicted(self) -> None:
        """However many come, a connection of a session whose answer is under way stays; the others make room."""
        self.session()
        relays = [self.ask(get("/openai/x", f"X-Aileron-Gateway-Key: {KEY}")) for _ in range(3)]
        resting = [self.line() for _ in range(5)]
        self.assertEqual([bool(line.lost) for line in resting], [True] * 4 + [False])
        for line, there in relays:
            there.end.write(OK)
            self.assertEqual(self.after(line), OK)
        self.assertFalse(resting[-1].lost)

    def test_unread_answers_make_room(self) -> None:
        """A client that leaves its whole answer unread for ever is dropped when there are too many."""
        lines = []
        for _ in range(6):
            line, there = self.ask(get("/openai/x", "Connection: close"))
            line.end.pauseProducing()
            there.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + b"x" * 70_000)
            self.net.run()
            lines.append(line)
        self.wait(500, step=10)
        self.assertEqual(sum(line.end.other.connected for line in lines), 4)
