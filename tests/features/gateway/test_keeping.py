"""Providers' connections that are kept: for whom, how many, how long; and what is sent again when one was stale."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.error import ConnectionRefusedError as Refused

from aileron.features.gateway._pool import IDLE_SECONDS, MOST_IDLE, STALE_SECONDS
from aileron.features.gateway.exchange import MOST_KEPT_BYTES
from aileron.features.gateway.values import Ending
from tests.features.gateway.case import OK, GatewayCase, Line, Peer, get, request


class PoolTests(GatewayCase):
    """The pool."""

    def test_one_after_another(self) -> None:
        """Requests that do not overlap share a connection, whoever sends them; those of another provider do not."""
        for _ in range(3):
            self.used(get())
        self.used(request("/v1/messages"), "anthropic")
        asked = {name: len(place.peers) for name, place in self.places.items() if place.peers}
        self.assertEqual(asked, {"openai": 1, "anthropic": 1})

    def test_at_once(self) -> None:
        """Requests at the same time have a connection each; the one used last serves next, so that others grow old."""
        asked = [self.ask(get()) for _ in range(3)]
        self.assertEqual(len({id(there) for _, there in asked}), 3)
        self.answer_all(asked)
        self.assertIs(self.ask_again(), asked[2][1])
        self.assertEqual(len(self.places["openai"].peers), 3)

    def answer_all(self, asked: Sequence[tuple[Line, Peer]]) -> None:
        """Answer these requests, in their order."""
        for line, there in asked:
            there.end.write(OK)
            self.assertEqual(self.after(line), OK)

    def ask_again(self) -> Peer:
        """The provider's end of whichever connection serves next."""
        for peer in self.places["openai"].peers:
            peer.take()
        self.line().say(get("/openai/again"))
        return next(peer for peer in self.places["openai"].peers if peer.heard)

    def test_most(self) -> None:
        """No more than so many are kept."""
        self.answer_all([self.ask(get()) for _ in range(MOST_IDLE + 3)])
        self.assertEqual(sum(not peer.lost for peer in self.places["openai"].peers), MOST_IDLE)

    def test_idle(self) -> None:
        """A connection is closed when it was kept for its time since its last use, and not before."""
        line, there = self.used(get())
        for _ in range(3):
            self.wait(IDLE_SECONDS - 20)
            line.say(get())
            self.answer_all([(line, there)])
        self.wait(IDLE_SECONDS - 1)
        self.assertFalse(there.lost)
        self.wait(12)
        self.assertTrue(there.lost)
        self.assertIsNot(self.ask_again(), there)

    def test_busy_is_not_idle(self) -> None:
        """One that carries something for longer is not closed; one that its provider closes is forgotten."""
        line, there = self.ask(get())
        for _ in range(5):
            self.wait(30)
            there.end.write(b"HTTP/1.1 102 P\r\n\r\n")
            self.after(line)
        self.answer_all([(line, there)])
        there.end.loseConnection()
        self.net.run()
        self.assertIsNot(self.ask_again(), there)

    def test_closing(self) -> None:
        """With the gateway, what is kept is closed."""
        _, there = self.used(get())
        self.gateway.close()
        self.net.run()
        self.assertTrue(there.lost)


class StaleTests(GatewayCase):
    """A connection that was kept, and that the provider closed just before it was used again."""

    def stale(self, asked: bytes, said: bytes = b"", *, politely: bool = True) -> tuple[Line, Peer]:
        """Send a request by one."""
        line, there = self.used(get())
        line.say(asked)
        self.assertTrue(there.heard)
        there.end.write(said)
        self.net.run()
        there.go(politely)
        self.net.run()
        return line, there

    def test_again(self) -> None:
        """The request is sent again, whole, by a new connection, and its client notices nothing."""
        for politely in (True, False):
            line, there = self.stale(request(body=b"once and again"), politely=politely)
            again = self.places["openai"].peers[-1]
            self.assertIsNot(again, there)
            self.assertEqual(again.heard, there.heard)
            again.end.write(OK)
            self.assertEqual(self.after(line), OK)
            self.assertEqual(self.meters.all[-1].told, ["sent", "sent", "arrived", "answered"])
            again.end.abortConnection()
            self.net.run()

    def test_no_more_stale(self) -> None:
        """Who closes after some time may have begun with the request: it is not sent again."""
        line, there = self.used(request())
        line.say(request())
        self.wait(STALE_SECONDS + 1)
        there.end.loseConnection()
        self.refused(self.after(line), 502, "network_error")
        self.assertEqual(len(self.places["openai"].peers), 1)

    def test_only_once(self) -> None:
        """A new connection that closes without an answer is no stale one, be it the first or the second: 502."""
        line, there = self.ask(get())
        there.end.loseConnection()
        self.refused(self.after(line), 502, "network_error")
        line, _ = self.stale(request())
        self.places["openai"].peers[-1].end.loseConnection()
        self.refused(self.after(line), 502, "network_error")
        self.assertEqual(len(self.places["openai"].peers), 3)

    def test_not_by_another_stale_one(self) -> None:
        """It is sent by a new connection, not by another that was kept."""
        asked = [self.ask(get()) for _ in range(2)]
        for line, there in asked:
            there.end.write(OK)
            self.after(line)
        line = self.line()
        line.say(get("/openai/again"))
        asked[1][1].end.loseConnection()
        self.net.run()
        self.assertEqual(len(self.places["openai"].peers), 3)

    def test_after_a_byte(self) -> None:
        """Once a byte of an answer came nothing is sent again."""
        for said in (b"H", b"HTTP/1.1 100 Continue\r\n\r\n"):
            line, _ = self.stale(request(), said)
            heard = self.after(line).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.refused(heard, 502, "network_error")
            self.assertEqual(self.meters.all[-1].ending, Ending.CUT)

    def test_while_it_comes(self) -> None:
        """A request that is still coming is sent as far as it came, and goes on, connected again at once or later."""
        whole, place = request(body=b"0123456789"), self.places["openai"]
        for at_once in (True, False):
            line, there = self.used(get())
            line.say(whole[:-5])
            place.open = at_once
            there.end.loseConnection()
            self.net.run()
            line.say(whole[-5:])
            again = place.peers[-1] if at_once else place.accept()
            self.net.run()
            self.assertTrue(again.heard.endswith(b"\r\n\r\n0123456789"))
            again.end.write(OK)
            self.assertEqual(self.after(line), OK)
            again.end.abortConnection()
            self.net.run()

    def test_nobody_there_again(self) -> None:
        """If nobody is connected to then, the client gets 502; one that leaves meanwhile has that given up."""
        place = self.places["openai"]
        for leaves in (False, True):
            place.open = True
            line, there = self.used(get())
            line.say(request())
            place.open = False
            there.end.loseConnection()
            self.net.run()
            if leaves:
                line.end.abortConnection()
                self.net.run()
            else:
                place.refuse(Refused())
                self.refused(self.after(line), 502, "network_error")
            self.assertEqual((place.given_up, place.asked), (int(leaves), 0))

    def test_too_long_to_keep(self) -> None:
        """A request longer than what is kept of it cannot be sent again: 502."""
        line, there = self.used(get())
        line.say(request(body=b"x" * (MOST_KEPT_BYTES + 200_000))[:-1])
        there.end.loseConnection()
        self.refused(self.after(line), 502, "network_error")
        self.assertEqual(len(self.places["openai"].peers), 1)
