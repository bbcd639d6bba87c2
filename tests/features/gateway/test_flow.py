"""Flow control: who does not read makes the other side wait, and nothing piles up between them."""

from __future__ import annotations

from tests.features.gateway.case import OK, GatewayCase, Line, Peer, get, request

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

    def test_reads_after_the_answer(self) -> None:
        """An answer that is whole is not cut before its client was silent for too long."""
        for asked in (get(), get("/openai/x", "Connection: close")):
            line, _ = self.unread(asked)
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
        line, there = self.unread(get())
        line.say(get("/openai/next"))
        self.assertEqual(there.take(), b"")
        line.end.resumeProducing()
        self.net.run()
        self.assertIn(b"GET /next ", there.take())


class ToProviderTests(GatewayCase):
    """A provider that does not read, or is not there yet."""

    def test_client_waits(self) -> None:
        """The client is not read while the provider does not read, and all arrives when it does."""
        line, there = self.ask(much())
        there.end.pauseProducing()
        line.pour(MUCH)
        self.assertLess(there.end.other.peak, MOST_HELD)
        self.assertGreater(len(line.end.waiting), MUCH - MOST_HELD)
        there.end.resumeProducing()
        self.net.run()
        self.assertEqual(there.heard.count(b"y"), MUCH)
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)

    def test_client_waits_for_connection(self) -> None:
        """It is not read either beyond some, while nobody is connected to, or by who accepts and does not read."""
        self.places["openai"].open = False
        for reads in (True, False):
            line = self.line()
            line.say(much())
            line.pour(MUCH)
            self.assertGreater(len(line.end.waiting), MUCH - MOST_HELD)
            there = self.places["openai"].accept()
            if not reads:
                there.end.pauseProducing()
                self.net.run()
                self.assertLess(there.end.other.peak, MOST_HELD)
                there.end.resumeProducing()
            self.net.run()
            self.assertEqual(there.heard.count(b"y"), MUCH)
            there.end.write(OK)
            self.assertEqual(self.after(line), OK)
            there.end.abortConnection()
            self.net.run()

    def test_held_once_is_held_again(self) -> None:
        """A client that was held for sending ahead is held for its next upload too."""
        line = self.line()
        line.end.pauseProducing()
        line.say(get("/ours") * 2000)
        line.end.resumeProducing()
        self.wait(0, turns=2000)
        line.take()
        line.say(much())
        there = self.places["openai"].peers[-1]
        there.end.pauseProducing()
        line.pour(MUCH)
        self.assertLess(there.end.other.peak, MOST_HELD)
