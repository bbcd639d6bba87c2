"""Checkpoints are told elsewhere, in their order, until they are kept, and nothing waits for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit.verify import read_anchor
from aileron.daemon._anchors import Anchor, file_anchor
from aileron.values import NO_CHECKPOINT, Checkpoint


def checkpoint(number: int) -> Checkpoint:
    """Some checkpoint."""
    return Checkpoint("vault", number, f"sha256:{number}", "2026-01-01T00:00:00.000000Z", NO_CHECKPOINT, "k", "s")


class FileTests(SynchronousTestCase):
    """An anchor in a file."""

    def test_appended(self) -> None:
        """Each is one line at the file's end, which the verification reads."""
        path = Path(self.mktemp())
        path.write_text("", encoding="ascii")

        def at_once(work: Callable[..., None], *args: object) -> Deferred[None]:
            work(*args)
            return succeed(None)

        anchor = file_anchor(path, Clock(), at_once)
        for number in (1, 2):
            anchor.tell(checkpoint(number))
        lines = path.read_text(encoding="ascii").splitlines(keepends=True)
        self.assertEqual(read_anchor(lines), (checkpoint(1), checkpoint(2)))
        self.assertEqual(read_anchor([*lines, '{"half'])[-1], checkpoint(2))


class TellingTests(SynchronousTestCase):
    """Whatever the place does."""

    def setUp(self) -> None:
        """A place that answers as a test says."""
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
            self.anchor.tell(checkpoint(number))
        self.assertEqual(self.told, [])
        self.clock.advance(1)
        self.assertEqual(self.told, [])
        self.clock.advance(2)
        self.assertEqual(self.told, [1, 2])

    def test_slow(self) -> None:
        """To tell returns at once, however long the place takes."""
        slow: Deferred[None] = Deferred()
        self.answers = [slow]
        self.anchor.tell(checkpoint(1))
        self.anchor.tell(checkpoint(2))
        self.assertEqual(self.told, [])
        slow.callback(None)
        self.assertEqual(self.told, [1, 2])

    def test_too_many(self) -> None:
        """Where too many wait the oldest are let go: the newest answers for them."""
        self.answers = [OSError("away")]
        for number in range(1, 1502):
            self.anchor.tell(checkpoint(number))
        self.clock.advance(1)
        self.assertEqual((len(self.told), self.told[0], self.told[-1]), (1000, 502, 1501))

    def test_stopped(self) -> None:
        """After the end nothing is tried any more."""
        self.answers = [OSError("away")]
        self.anchor.tell(checkpoint(1))
        self.anchor.stop()
        self.clock.advance(1000)
        self.assertEqual((self.told, self.clock.getDelayedCalls()), ([], []))
