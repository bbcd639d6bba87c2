"""Checkpoints are told elsewhere, in their order, until they are kept, and nothing waits for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit.verify import read_anchor
from aileron.base.converter import from_json
from aileron.daemon._record import Anchor, file_anchor, web_anchor
from aileron.model.audit import NO_CHECKPOINT, Checkpoint
from tests.features.notices.wired import Server


def at_once(work: Callable[..., None], *args: object) -> Deferred[None]:
    """Call what would be called in another thread."""
    work(*args)
    return succeed(None)


def checkpoint(number: int) -> Checkpoint:
    """Some checkpoint."""
    return Checkpoint("vault", number, f"sha256:{number}", "2026-01-01T00:00:00.000000Z", NO_CHECKPOINT, "k", "s")


class FileTests(SynchronousTestCase):
    """An anchor in a file."""

    def test_appended(self) -> None:
        """Each is one line at the file's end, which the verification reads, also behind a torn one."""
        path = Path(self.mktemp())
        path.write_text("", encoding="ascii")

        anchor = file_anchor(path, Clock(), at_once)
        for number in (1, 2):
            anchor.queue_checkpoint(checkpoint(number))
        lines = path.read_text(encoding="ascii").splitlines(keepends=True)
        self.assertEqual(read_anchor(lines), (checkpoint(1), checkpoint(2)))
        self.assertEqual(read_anchor([*lines, '{"half'])[-1], checkpoint(2))
        path.write_text('{"vault": "va', encoding="ascii")
        file_anchor(path, Clock(), at_once).queue_checkpoint(checkpoint(1))
        lines = path.read_text(encoding="ascii").splitlines(keepends=True)
        self.assertEqual(read_anchor(lines), (checkpoint(1),))


class WebTests(SynchronousTestCase):
    """An anchor behind an address."""

    def setUp(self) -> None:
        self.reactor = MemoryReactorClock()
        self.anchor = web_anchor("http://127.0.0.1:8800/anchor?of=me", self.reactor)
        self.anchor.queue_checkpoint(checkpoint(1))

    def test_posted(self) -> None:
        """Each is posted as JSON to exactly that address, by itself, and the next one after it was kept."""
        self.anchor.queue_checkpoint(checkpoint(2))
        server = Server.accept(self.reactor)
        self.assertTrue(server.head.startswith("POST /anchor?of=me HTTP/1.1\r\n"))
        self.assertIn("\r\nContent-Type: application/json", server.head)
        self.assertEqual(from_json(Checkpoint, json.loads(server.body)), checkpoint(1))
        self.assertEqual(self.reactor.tcpClients, [])
        server.answer(b"HTTP/1.1 204 No Content\r\n\r\n")
        self.assertEqual(json.loads(Server.accept(self.reactor).body)["sequence"], 2)

    def test_refused(self) -> None:
        """What is answered with another status is tried again; a status is enough, if the answer never ends."""
        for status in (b"500 No", b"302 Found\r\nLocation: http://127.0.0.1:1/"):
            Server.accept(self.reactor).answer(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
            self.assertEqual(self.reactor.tcpClients, [])
            self.reactor.advance(2)
        Server.accept(self.reactor).answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        self.reactor.advance(1000)
        self.assertEqual(self.reactor.tcpClients, [])
        self.anchor.queue_checkpoint(checkpoint(2))
        self.anchor.queue_checkpoint(checkpoint(3))
        Server.accept(self.reactor).answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        self.assertEqual(len(self.reactor.tcpClients), 1)

    def test_silent(self) -> None:
        """Where nothing is answered it is tried again after half a minute."""
        silent = Server.accept(self.reactor)
        self.reactor.advance(29)
        self.assertEqual(self.reactor.tcpClients, [])
        self.reactor.advance(2)
        silent.flush()
        self.reactor.advance(2)
        self.assertEqual(json.loads(Server.accept(self.reactor).body)["sequence"], 1)

    def test_stopped(self) -> None:
        """At the end the connection is let go, and nothing is left behind."""
        left = Server.accept(self.reactor)
        self.anchor.stop()
        left.flush()
        self.reactor.advance(1000)
        self.assertEqual(self.reactor.tcpClients, [])


class TellingTests(SynchronousTestCase):
    """Whatever the place does."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.told: list[int] = []
        self.answers: list[Exception | Deferred[None]] = []
        self.anchor = Anchor("test", self.deliver, self.clock)

    async def deliver(self, line: bytes) -> None:
        """Keep one line, fail, or take its time."""
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            await answer
        self.told.append(json.loads(line)["sequence"])

    def test_tried_again(self) -> None:
        """What could not be kept is tried again after a while, longer each time, and what came later waits."""
        self.answers = [OSError("away"), OSError("away")]
        for number in (1, 2):
            self.anchor.queue_checkpoint(checkpoint(number))
        self.assertEqual(self.told, [])
        self.clock.advance(1)
        self.assertEqual(self.told, [])
        self.clock.advance(2)
        self.assertEqual(self.told, [1, 2])

    def test_too_many(self) -> None:
        """Where too many wait the oldest are let go: the newest answers for them."""
        self.answers = [OSError("away")]
        for number in range(1, 1502):
            self.anchor.queue_checkpoint(checkpoint(number))
        self.clock.advance(1)
        self.assertEqual((len(self.told), self.told[0], self.told[-1]), (1000, 502, 1501))

    def test_stopped(self) -> None:
        """After the end nothing is tried any more."""
        self.answers = [OSError("away")]
        self.anchor.queue_checkpoint(checkpoint(1))
        self.anchor.stop()
        self.clock.advance(1000)
        self.assertEqual((self.told, self.clock.getDelayedCalls()), ([], []))
