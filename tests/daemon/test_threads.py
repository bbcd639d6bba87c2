"""Work in the reactor's threads, and who gives it up."""

from __future__ import annotations

from twisted.internet.defer import CancelledError
from twisted.trial.unittest import SynchronousTestCase

from aileron.daemon._threads import in_thread
from aileron.testing import UnthreadedPool, UnthreadedReactor


class Reactor(UnthreadedReactor):
    """One whose threads are stepped by hand."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.threads = UnthreadedPool()
        self.threads.hold()

    def getThreadPool(self) -> UnthreadedPool:
        """See L{twisted.internet.interfaces.IReactorThreads}."""
        return self.threads


class InThreadTests(SynchronousTestCase):
    """L{in_thread}."""

    def setUp(self) -> None:
        """Two pieces of work at once, of which it is told which were done."""
        self.reactor = Reactor()
        self.threads = self.reactor.threads
        self.call = in_thread(self.reactor, at_once=2)
        self.done: list[int] = []

    def test_answers(self) -> None:
        """What the work answers or raises comes here."""
        answers = [self.call(int, text) for text in ("7", "seven")]
        self.assertNoResult(answers[0])
        self.threads.release()
        self.assertEqual(self.successResultOf(answers[0]), 7)
        self.failureResultOf(answers[1], ValueError)

    def test_bounded(self) -> None:
        """So much is done at once; the rest follows, whatever became of what was before it."""
        answers = [self.call(int, text) for text in ("x", "1", "2", "3")]
        self.assertEqual(len(self.threads.todo), 2)
        self.threads.step()
        self.assertEqual(len(self.threads.todo), 2)
        self.threads.release()
        self.failureResultOf(answers[0], ValueError)
        self.assertEqual([self.successResultOf(each) for each in answers[1:]], [1, 2, 3])

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
