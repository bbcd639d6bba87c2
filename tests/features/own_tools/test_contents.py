"""The contents of pushes that wait: kept as long as a run needs them, limited, and never left behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twisted.internet.defer import Deferred

from aileron.base.json import digest_of_bytes
from aileron.features.own_tools import _contents
from aileron.home.stored_contents import UnfinishedContent
from aileron.model.errors import AileronError, StoreUnavailable
from aileron.model.runs import Run, RunState

from .door import THREE, TWO
from .gitdoor import GitDoorCase, push_body


class ContentsTests(GitDoorCase):
    """The contents of pushes, over a real runner and store."""

    def stored_digests(self) -> set[str]:
        """Return the digests of what is stored."""
        return set(self.stored.list_sizes())

    def leave(self, content: bytes) -> None:
        """Store a content."""
        unfinished = self.stored.begin()
        unfinished.add(content)
        unfinished.store()

    def submit_content(self, submit: Callable[[], Awaitable[Run]]) -> Deferred[Run]:
        """Submit a run with a content."""
        spool, long = self.sync(self.contents.spool("session-1", b"content"))
        return self.later(self.contents.submit("session-1", spool, long.size, submit))

    def test_kept(self) -> None:
        """A content is kept while one of its runs waits, also over a restart, and deleted when all are settled."""
        self.parked_push()
        self.parked_push(caller=TWO)
        self.push(caller=THREE)
        digest = digest_of_bytes(push_body())
        first, *others = self.runs()
        self.sync(self.contents.sweep())
        self.restart()
        self.sync(self.contents.start())
        self.assertEqual({digest}, self.stored_digests())
        for run in (first, *others):
            self.assertEqual({digest}, self.stored_digests())
            self.approve(run, approved=False)
            self.sync(self.contents.sweep())
        self.assertEqual(set(), self.stored_digests())

    def test_crashes(self) -> None:
        """What a crash left without a run, or half written, goes at the next start."""
        self.leave(b"orphan")
        (self.stored.directory / ".half").write_bytes(b"x")
        self.parked_push()
        self.leave(b"another")
        self.restart()
        self.sync(self.contents.start())
        names = [each.name for each in self.stored.directory.iterdir()]
        self.assertEqual([digest_of_bytes(push_body()).removeprefix("sha256:")], names)

    def test_refused(self) -> None:
        """If the runner refuses the call, no content is left after a sweep."""

        async def refuse() -> Run:
            raise StoreUnavailable("It is stopping.")

        self.failureResultOf(self.submit_content(refuse), AileronError)
        self.sync(self.contents.sweep())
        self.assertEqual(set(), self.stored_digests())

    def test_sweep_meanwhile(self) -> None:
        """A sweep while a run is being made waits for it."""
        self.parked_push()
        run, going = self.runs()[0], Deferred[Run]()

        async def submit() -> Run:
            return await going

        asked = self.submit_content(submit)
        swept = self.later(self.contents.sweep())
        self.assertNoResult(swept)
        self.assertIn(digest_of_bytes(b"content"), self.stored_digests())
        going.callback(run)
        self.successResultOf(asked)
        self.successResultOf(swept)

    def test_limits(self) -> None:
        """Contents that wait are limited, those of one session and all; what is settled does not count."""
        size = len(push_body())
        self.patch(_contents, "MOST_STORED_OF_SESSION", 2 * size)
        self.parked_push()
        self.parked_push(push_body(b"2", "c" * 40 + " " + "d" * 40 + " refs/heads/x"), TWO)
        refused = self.delivered(self.push(push_body(b"3", "d" * 40 + " " + "e" * 40 + " refs/heads/y"), THREE))
        self.assertIn(b"too long together", refused.body)
        self.assertEqual(2, len(self.runs()))
        for run in self.runs():
            self.approve(run, approved=False)
        self.patch(_contents, "MOST_STORED", size)
        self.parked_push(push_body(b"3", "d" * 40 + " " + "e" * 40 + " refs/heads/y"), THREE)
        self.assertEqual(RunState.PENDING, self.runs()[-1].state)

    def test_disk(self) -> None:
        """If the disk is full, the push is refused, and there is no run."""

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        for name in ("add", "store"):
            with self.subTest(name):
                patched = self.patch(UnfinishedContent, name, full)
                refused = self.delivered(self.push())
                self.assertIn(b"No space left on device", refused.body)
                patched.restore()
        self.assertEqual([], self.runs())
        self.assertEqual([], [*self.stored.directory.iterdir()])
