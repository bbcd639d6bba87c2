"""Who leaves when, and what the other side is told: never a clean end of what is not whole."""

from __future__ import annotations

from itertools import product

from attrs import evolve
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.python.failure import Failure

from aileron.features.gateway.exchange import PROGRESS_BYTES
from aileron.features.gateway.values import Ending
from tests.features.gateway.case import GatewayCase, Line, get, request, status_of

FIXED = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nhello"
HALF = request(body=b"x" * 100)[:-50]


class ProviderLeavesTests(GatewayCase):
    """A provider that goes."""

    def test_before_any_answer(self) -> None:
        """Without a byte of an answer, or with half a head, the client gets 502 at once and knows why."""
        for asked, said in product((request(), HALF), (b"", b"HTTP/1.1 200 O", b"HTTP/1.1 100 Continue\r\n\r\n")):
            for politely in (True, False):
                line, there = self.ask(asked)
                there.end.write(said)
                self.net.run()
                there.go(politely)
                heard = self.after(line).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
                self.refused(heard, 502, "network_error")
                self.assertTrue(line.lost)
                self.assertEqual(self.meters.all[-1].ending, Ending.CUT if said else Ending.UNREACHABLE)

    def test_in_a_framed_answer(self) -> None:
        """In an answer that says where it ends, the client hears what came, and what it asked next is dropped."""
        answers = (FIXED, CHUNKED, CHUNKED + b"0\r\n", CHUNKED + b"0\r\nX: 1\r\n")
        for count, (answer, politely) in enumerate(product(answers, (True, False)), 1):
            line, there = self.ask(request() + get("/openai/next"))
            there.end.write(answer)
            self.net.run()
            there.go(politely)
            self.assertEqual(self.after(line), answer)
            self.assertTrue(line.lost)
            self.assertEqual(self.meters.all[-1].ending, Ending.CUT)
            self.assertEqual((len(self.places["openai"].peers), len(self.meters.all)), (count, count))

    def test_in_an_answer_until_close(self) -> None:
        """In an answer that ends with its connection, a clean end is passed on as clean and a reset as broken."""
        for politely, reason, ending in (
            (True, ConnectionDone, Ending.COMPLETE),
            (False, ConnectionLost, Ending.CUT),
        ):
            line, there = self.ask(request())
            there.end.write(UNTIL_CLOSE)
            self.net.run()
            there.go(politely)
            self.assertEqual(self.after(line), b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello")
            self.assertEqual((line.end.reason, self.meters.all[-1].ending), (reason, ending))

    def test_last_bytes(self) -> None:
        """What came before the end arrives before the end, however slowly the client reads."""
        for answer in (FIXED, UNTIL_CLOSE):
            line, there = self.ask(request())
            line.end.pauseProducing()
            there.end.write(answer)
            there.end.loseConnection()
            self.net.run()
            line.end.resumeProducing()
            self.assertTrue(self.after(line).endswith(answer[-5:]))
            self.assertTrue(line.lost)


class ClientLeavesTests(GatewayCase):
    """A client that goes: in the same turn nothing more is done for it."""

    def leave(self, line: Line) -> None:
        """Let the site see the client's end, and nothing else happen."""
        line.end.other.connected = False
        line.end.other.protocol.connectionLost(_reason())

    def left(self, line: Line) -> None:
        """Assert that the provider's connection was aborted in that turn, and all ends well."""
        there = self.places["openai"].peers[-1]
        self.leave(line)
        self.assertTrue(there.end.other.aborted)
        self.net.run()
        self.assertEqual(there.end.reason, ConnectionLost)
        self.assertEqual(there.end.other.reason, ConnectionAborted)
        self.assertEqual(self.meters.all[-1].ending, Ending.CLIENT_LEFT)
        self.assertEqual(len(self.gateway._silence._quiet), 0)

    def test_connecting(self) -> None:
        """While it is connected for, connecting is given up."""
        place = self.places["openai"]
        place.open = False
        line = self.line()
        line.say(request())
        self.leave(line)
        self.assertEqual((place.given_up, place.asked), (1, 0))
        self.assertEqual(self.meters.all[0].ending, Ending.CLIENT_LEFT)

    def test_in_the_midst(self) -> None:
        """In the midst of its request, before an answer, in its head or body, in both; and with more asked for."""
        for asked, said in (
            (HALF, b""),
            (request(), b""),
            (request(), b"HTTP/1.1 200"),
            *((request(), answer) for answer in (FIXED, CHUNKED, UNTIL_CLOSE)),
            (HALF, CHUNKED),
            (get() + get("/openai/next"), b""),
        ):
            line, there = self.ask(asked)
            there.end.write(said)
            self.net.run()
            self.left(line)
        self.assertEqual(len(self.places["openai"].peers), 8)

    def test_choked(self) -> None:
        """While it was not reading."""
        line, there = self.ask(request())
        line.end.pauseProducing()
        there.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n")
        for _ in range(10):
            there.end.write(b"x" * 50_000)
            self.net.run()
        self.left(line)

    def test_at_rest(self) -> None:
        """Between requests, the provider's connection stays for others."""
        line, there = self.used(get())
        line.end.loseConnection()
        self.net.run()
        self.assertFalse(there.lost)
        self.assertIs(self.ask(get())[1], there)

    def test_politely(self) -> None:
        """A clean close in the midst is a leave like any other."""
        line, there = self.ask(request())
        there.end.write(CHUNKED)
        self.net.run()
        line.end.loseConnection()
        self.net.run()
        self.assertTrue(there.lost)


class DaemonStopsTests(GatewayCase):
    """A daemon that is stopped while something is under way."""

    def test_not_answered(self) -> None:
        """Who has no answer yet is told, whether the provider was reached or not."""
        line, there = self.ask(request())
        self.places["openai"].open = False
        other = self.line()
        other.say(request())
        self.gateway.close()
        for each in (line, other):
            self.refused(self.after(each), 502, "network_error")
        self.assertTrue(there.lost)
        self.assertEqual(self.places["openai"].given_up, 1)

    def test_answered_in_part(self) -> None:
        """No half answer looks whole, however it was to end."""
        for answer, reason in ((FIXED, ConnectionDone), (CHUNKED, ConnectionDone), (UNTIL_CLOSE, ConnectionLost)):
            line, there = self.ask(request())
            there.end.write(answer)
            self.net.run()
            self.gateway.close()
            self.assertTrue(self.after(line).endswith(answer[-5:]))
            self.assertEqual((line.end.reason, there.end.reason), (reason, ConnectionLost))
            self.gateway.open(self.own_ports)


class SilenceTests(GatewayCase):
    """Who owes something and says nothing for too long."""

    def silent(self, line: Line, seconds: float = 40.0) -> bytes:
        """What a client hears; nothing before the time is over, and not much after it either."""
        self.wait(seconds - 1)
        self.assertEqual(line.take(), b"")
        self.wait(12)
        self.assertEqual(self.meters.all[-1].ending, Ending.SILENT)
        self.assertTrue(line.lost)
        return line.take()

    def test_one_look_fails(self) -> None:
        """Whatever one look at the clock fails with, the next ones are made."""

        def fail() -> None:
            raise RuntimeError("once")

        self.pools["local"].sweep = fail  # type: ignore[method-assign]
        line, _ = self.ask(request())
        self.wait(15)
        self.assertTrue(self.flushLoggedErrors(RuntimeError))
        del self.pools["local"].sweep
        self.wait(40)
        self.refused(self.after(line), 504, "network_error")

    def test_half_an_answer(self) -> None:
        """One that stops in its answer: the client's connection is cut."""
        for answer, reason in ((FIXED, ConnectionDone), (CHUNKED, ConnectionDone), (UNTIL_CLOSE, ConnectionLost)):
            line, there = self.ask(request())
            there.end.write(answer)
            self.after(line)
            self.assertEqual(self.silent(line), b"")
            self.assertEqual(line.end.reason, reason)
            self.assertTrue(there.lost)

    def test_owed(self) -> None:
        """A provider that does not answer, or stops in its head: 504; a client that stops in its request: 408."""
        for asked, said, status, kind in (
            (request(), b"", 504, "network_error"),
            (request(), b"HTTP/1.1 200", 504, "network_error"),
            (HALF, b"", 408, "invalid_request"),
        ):
            line, there = self.ask(asked)
            there.end.write(said)
            self.net.run()
            self.refused(self.silent(line), status, kind)
            self.assertTrue(there.lost)

    def test_provider_that_does_not_read(self) -> None:
        """A provider that takes no more of a request is the silent one: 504."""
        line, there = self.ask(request(body=b"x" * 900_000)[:100])
        there.end.pauseProducing()
        line.end.write(b"x" * 800_000)
        self.net.run()
        self.wait(60)
        self.refused(line.take(), 504, "network_error")

    def test_nobody_is_silent(self) -> None:
        """Whoever says something now and then, an interim answer too, is not cut, whichever side it is."""
        line, there = self.ask(request(body=b"x" * 10 * PROGRESS_BYTES)[: -10 * PROGRESS_BYTES])
        for _ in range(10):
            self.wait(35)
            line.say(b"x" * PROGRESS_BYTES)
        chunks = [b"1\r\nx\r\n"] * 10
        for said in (*[b"HTTP/1.1 102 P\r\n\r\n"] * 5, CHUNKED, *chunks, b"0\r\n\r\n"):
            self.wait(35)
            there.end.write(said)
            self.net.run()
        self.assertTrue(self.after(line).endswith(b"x\r\n0\r\n\r\n"))


class OddSilenceTests(GatewayCase):
    """A time that is no multiple of how often the clock is looked at."""

    settings = evolve(GatewayCase.settings, silence_seconds=45.0)

    def test_when(self) -> None:
        """It is over no earlier than was said, and at most ten seconds later."""
        for early in range(10):
            self.wait(early)
            line, _ = self.ask(request())
            self.wait(45)
            self.assertEqual(line.take(), b"", early)
            self.wait(10)
            self.assertEqual(status_of(line.take()), 504, early)


def _reason() -> Failure:
    return Failure(ConnectionLost())
