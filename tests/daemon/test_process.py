"""What the daemon takes from its process."""

from __future__ import annotations

import resource

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.unthreaded import UnthreadedPool, UnthreadedReactor
from aileron.daemon import fresh_ids
from aileron.daemon._process import WANTED, allow_descriptors, in_thread, most_connections, raised_limit

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_INFINITE = resource.RLIM_INFINITY


class IdsTests(SynchronousTestCase):
    """L{fresh_ids}."""

    def test_form(self) -> None:
        """An id is a ULID: its first ten letters are the milliseconds, and those of one moment differ in all others."""
        clock = Clock()
        clock.advance(1469922850.259)
        found = fresh_ids(clock)()
        self.assertEqual(found[:10], "01ARZ3NDEK")
        self.assertEqual(len(found), 26)
        self.assertLessEqual(set(found), set(_LETTERS))
        ids = fresh_ids(Clock())
        drawn = [ids() for _ in range(1000)]
        self.assertEqual(len(set(drawn)), 1000)
        self.assertTrue(all(len({one[place] for one in drawn}) > 16 for place in range(10, 26)))

    @settings(deadline=None, max_examples=50)
    @given(st.floats(0, 2**33), st.floats(0.001, 2**33))
    def test_order(self, first: float, later: float) -> None:
        """Ids of a later millisecond sort after those before."""
        clock = Clock()
        ids = fresh_ids(clock)
        clock.advance(first)
        before, began = ids(), int(clock.seconds() * 1000)
        clock.advance(later)
        if int(clock.seconds() * 1000) > began:
            self.assertLess(before, ids())


class Reactor(UnthreadedReactor):
    """One whose threads are stepped by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = UnthreadedPool()
        self.threads.hold()

    def getThreadPool(self) -> UnthreadedPool:
        return self.threads


class InThreadTests(SynchronousTestCase):
    """L{in_thread}."""

    def setUp(self) -> None:
        self.reactor = Reactor()
        self.threads = self.reactor.threads
        self.call = in_thread(self.reactor, at_once=2)
        self.done: list[int] = []

    def test_bounded(self) -> None:
        """What the work answers or raises comes here; so much is done at once, and the rest follows."""
        answers = [self.call(int, text) for text in ("x", "1", "2", "3")]
        self.assertEqual(len(self.threads.todo), 2)
        self.threads.step()
        self.assertEqual(len(self.threads.todo), 2)
        self.threads.release()
        self.failureResultOf(answers[0], ValueError)
        self.assertEqual([self.successResultOf(each) for each in answers[1:]], [1, 2, 3])
        self.threads.hold()
        answers = [self.call(int, text) for text in ("7", "seven")]
        self.assertNoResult(answers[0])
        self.threads.release()
        self.assertEqual(self.successResultOf(answers[0]), 7)
        self.failureResultOf(answers[1], ValueError)

    def test_given_up(self) -> None:
        """What is given up before it began is not done, be it in a thread's queue or not yet there."""
        answers = [self.call(self.done.append, number) for number in range(4)]
        for number in (1, 3):
            answers[number].cancel()
            self.failureResultOf(answers[number], CancelledError)
        self.threads.release()
        self.assertEqual(self.done, [0, 2])

    def test_given_up_under_way(self) -> None:
        """What is given up while it is done keeps its turn until its thread has ended."""
        handed: list[int] = []

        def give_up() -> None:
            answers[0].cancel()
            handed.append(len(self.threads.todo))

        answers = [self.call(work) for work in (give_up, bool, bool)]
        self.threads.step()
        self.failureResultOf(answers[0], CancelledError)
        self.assertEqual((handed, len(self.threads.todo)), ([1], 2))


class LimitTests(SynchronousTestCase):
    """The limit that is set."""

    def test_raised_limit(self) -> None:
        """It is raised to what is wanted or may be had, what is more already stays, and the process has it then."""
        self.assertEqual(
            [raised_limit(1024, hard) for hard in (1024, 4096, 1 << 20, _INFINITE)], [1024, 4096, WANTED, WANTED]
        )
        self.assertEqual([raised_limit(1 << 18, 1 << 20), raised_limit(_INFINITE, _INFINITE)], [1 << 18, _INFINITE])
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (600, before[1]))
        limit = allow_descriptors()
        self.assertEqual(resource.getrlimit(resource.RLIMIT_NOFILE), (limit, before[1]))
        self.assertEqual(allow_descriptors(), limit)
        self.assertGreater(limit, 600)


class ConnectionsTests(SynchronousTestCase):
    """How many connections the agent site may hold."""

    def test_rest(self) -> None:
        """Each connection takes two descriptors and enough are left; who has more holds more, who has few some."""
        for limit in (1024, 4096, WANTED, 1 << 20, _INFINITE):
            used = 2 * most_connections(limit)
            self.assertLess(used + 256 + 100, min(limit, WANTED) if limit > 0 else WANTED)
        self.assertEqual([most_connections(limit) for limit in (256, 1024, 4096, WANTED)], [64, 320, 1856, 4928])
