"""Who gives way, when what the gateway holds passes a bound: not those who hold little, and not those who are new."""

from __future__ import annotations

import hashlib

from attrs import evolve
from twisted.internet.error import ConnectionLost

from aileron.features.gateway.values import Ending
from aileron.testing import example_session
from tests.features.gateway.case import OK, GatewayCase, Line, get, request, status_of

MIB = 1 << 20
LONG = 300_000
UNREAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LONG + b"x" * 70_000
"""The beginning of an answer, more than is written to a client that does not read."""


class CrowdedCase(GatewayCase):
    """Sessions of the names that they are given, and many clients."""

    most_connections = 4096

    def key(self, name: str) -> str:
        """The gateway key of a session of its own."""
        key = f"ail_g_{name:x<43}"
        digest = hashlib.sha256(key.encode()).digest()
        self.keys.in_store[digest] = self.keys.in_memory[digest] = evolve(example_session("ses1"), id=f"ses-{name}")
        return f"X-Aileron-Gateway-Key: {key}"

    def unfinished(self, count: int, *lines: str) -> list[Line]:
        """So many clients whose answers have begun, and who read none of them."""
        clients = []
        for _ in range(count):
            client, there = self.ask(get("/openai/x", *lines))
            client.end.pauseProducing()
            there.end.write(UNREAD)
            self.net.run()
            clients.append(client)
        return clients

    def begun(self, count: int, *lines: str) -> list[Line]:
        """So many clients that have sent heads and nothing of the bodies that these tell of."""
        clients = []
        for _ in range(count):
            clients.append(self.line())
            clients[-1].end.write(request("/openai/x", "Content-Length: 100000", *lines, body=b""))
            self.net.run()
        return clients

    def served(self, *lines: str) -> None:
        """Assert that a client is served."""
        client, there = self.ask(request("/openai/x", *lines))
        there.end.write(OK)
        self.assertEqual(self.after(client), OK)

    @property
    def held(self) -> float:
        """How many MiB are counted."""
        return self.gateway._budget.held_bytes / MIB


class UnreadTests(CrowdedCase):
    """Answers that their clients do not read."""

    def test_session(self) -> None:
        """A session's answers that wait keep its bound: of more, the one that has waited longest is broken off."""
        clients = self.unfinished(200, self.key("a"))
        self.assertLessEqual(self.held, 16)
        self.assertGreater(self.held, 15)
        gone = [bool(client.end.other.aborted) for client in clients]
        self.assertEqual(gone, sorted(gone, reverse=True))
        self.assertEqual(self.meters.all[0].ending, Ending.CUT)
        self.served(self.key("a"))
        self.served(self.key("b"))
        self.served()

    def test_all_at_once(self) -> None:
        """So do those of clients that stop to read after all were admitted."""
        asked = [self.ask(get("/openai/x", self.key("a"))) for _ in range(513)]
        self.assertEqual(self.held, 0)
        for client, there in asked:
            client.end.pauseProducing()
            there.end.write(UNREAD)
        self.net.run()
        self.assertLessEqual(self.held, 16)
        self.served(self.key("b"))

    def test_total(self) -> None:
        """Four sessions that hold all there is leave the others their share: who holds most gives way."""
        for name in "abcd":
            self.unfinished(128, self.key(name))
        self.assertEqual(self.held, 64)
        few = self.unfinished(5, self.key("e"))
        self.assertLessEqual(self.held, 64)
        self.served(self.key("f"))
        self.served()
        for client in few:
            self.assertTrue(client.end.other.connected and not client.end.other.aborted)

    def test_never_read(self) -> None:
        """An answer that is not read at all is broken off when its client was silent for too long."""
        (client,) = self.unfinished(1)
        self.wait(39)
        self.assertFalse(client.end.other.aborted)
        self.wait(12)
        self.assertEqual((client.end.other.reason is None, self.held), (False, 0))
        client.end.resumeProducing()
        self.net.run()
        self.assertEqual(client.end.reason, ConnectionLost)
        self.assertEqual(self.meters.all[0].ending, Ending.SILENT)

    def test_gives_way_alone(self) -> None:
        """Where nobody else is left, the one that passes the bound ends, and nothing more is written to its client."""
        for chunked in (False, True):
            budget = self.gateway._budget
            budget.most_bytes = MIB // 16
            client, there = self.ask(get())
            client.end.pauseProducing()
            length = b"Transfer-Encoding: chunked\r\n\r\n13880\r\n" if chunked else b"Content-Length: 80000\r\n\r\n"
            there.end.write(b"HTTP/1.1 200 OK\r\n" + length + b"x" * 80_000 + b"\r\n0\r\n\r\n" * chunked)
            self.net.run()
            self.assertEqual((self.held, self.meters.all[-1].ending), (0, Ending.CUT))
            self.assertTrue(there.lost)
            self.assertIsNotNone(client.end.other.reason)

    def test_interim(self) -> None:
        """So does one to which only interim answers were written."""
        client, there = self.ask(get())
        client.end.pauseProducing()
        self.gateway._budget.most_bytes = MIB // 16
        there.end.write(b"HTTP/1.1 102 Processing\r\nX: " + b"x" * 40_000 + b"\r\n\r\n")
        there.end.write(b"HTTP/1.1 102 Processing\r\nX: " + b"x" * 40_000 + b"\r\n\r\n" + OK)
        client.end.resumeProducing()
        client.end.pauseProducing()
        self.net.run()
        client.end.resumeProducing()
        self.assertEqual(self.after(client).count(b" 200 OK"), 0)
        self.assertEqual((self.held, self.meters.all[0].ending), (0, Ending.CUT))


class WholeTests(CrowdedCase):
    """Answers that are whole, and not read."""

    def test_counted(self) -> None:
        """They are counted until they are read, while the provider's connection serves others."""
        for lines in ((), ("Connection: close",)):
            client, there = self.unread(get("/openai/x", *lines))
            self.assertGreater(self.held, 0)
            self.assertIs(self.ask(get())[1], there, lines)
            there.end.write(OK)
            client.end.resumeProducing()
            self.assertEqual(len(self.after(client).partition(b"\r\n\r\n")[2]), 70_000)
            self.assertEqual((self.held, self.meters.all[-2].ending), (0, Ending.COMPLETE))

    def test_session(self) -> None:
        """They keep the bound of their session."""
        for _ in range(200):
            self.unread(get("/openai/x", self.key("a")))
        self.assertLessEqual(self.held, 16)
        self.assertLessEqual(sum(end.waiting != b"" for end in self.net.ends), 128)
        self.served(self.key("b"))

    def test_never_read(self) -> None:
        """They are dropped when their client was silent for too long, were they but a few bytes."""
        for length, seconds in ((70_000, 52), (2, 300)):
            for lines in ((), ("Connection: close",)):
                client, _ = self.unread(get("/openai/x", *lines), length)
                self.wait(seconds)
                self.assertEqual((client.end.other.connected, self.held), (False, 0), (length, lines))

    def test_client_left(self) -> None:
        """What a client leaves unread is given back."""
        client, _ = self.unread(get())
        client.end.abortConnection()
        self.net.run()
        self.wait(1)
        self.assertEqual((self.held, self.meters.all[0].ending), (0, Ending.CLIENT_LEFT))


class UploadTests(CrowdedCase):
    """Requests whose bodies do not come."""

    def test_without_key(self) -> None:
        """However many are begun without a key, there is room for the next: the oldest gives way, and is told."""
        clients = self.begun(600)
        self.assertLessEqual(self.held, 16)
        self.served()
        (late,) = self.begun(1)
        refused = clients[0].take()
        self.assertEqual(status_of(refused), 429)
        self.assertIn(b"X-Aileron-Error: limit_exceeded", refused)
        late.end.write(b"y" * 100_000)
        self.net.run()
        self.places["openai"].peers[-1].end.write(OK)
        self.assertEqual(self.after(late), OK)
        self.served(self.key("a"))

    def test_one_that_goes_on(self) -> None:
        """One whose body comes does not give way to those whose bodies do not."""
        (client,) = self.begun(1)
        there = self.places["openai"].peers[-1]
        for _ in range(4):
            self.begun(300)
            client.end.write(b"y" * 25_000)
            self.net.run()
        there.end.write(OK)
        self.assertEqual(self.after(client), OK)

    def test_drip(self) -> None:
        """A body that comes by the byte takes too long, and one that comes in pieces of some size does not."""
        slow, steady = self.begun(2)
        for _ in range(4):
            slow.end.write(b"y")
            steady.end.write(b"y" * 20_000)
            self.net.run()
            self.wait(25)
        self.refused(slow.take(), 408, "invalid_request")
        steady.end.write(b"y" * 20_000)
        self.net.run()
        self.places["openai"].peers[1].end.write(OK)
        self.assertEqual(self.after(steady), OK)

    def test_copies(self) -> None:
        """Of a request that was sent it is the copy for another try that gives way, not the call."""
        warm = [self.ask(get()) for _ in range(20)]
        for client, there in warm:
            there.end.write(OK)
            self.after(client)
        clients = self.begun(20)
        for client in clients:
            client.end.write(b"y" * 99_000)
        self.net.run()
        held, self.gateway._budget.most_session_bytes = self.held, MIB
        for each in range(500, 1001, 500):
            for client in clients:
                client.end.write(b"y" * 500)
            self.net.run()
            self.assertLessEqual(self.held, 1, each)
        self.assertGreater(held, 2)
        for _, there in warm:
            there.end.write(OK)
            self.net.run()
        self.assertEqual([self.after(client) for client in clients], [OK] * 20)


class CutTests(CrowdedCase):
    """How an answer is broken off."""

    def test_unread(self) -> None:
        """What its client does not read is thrown away with it; what it has read so far shows that it is not whole."""
        (client,) = self.unfinished(1)
        self.gateway.close()
        self.addCleanup(self.gateway.open, ())
        self.net.run()
        self.assertEqual((client.end.other.waiting, client.end.other.connected), (b"", False))
