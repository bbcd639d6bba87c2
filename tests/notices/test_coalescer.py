"""When it is told: bursts together, and ever slower."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.notices._notifier import GATHER_SECONDS, MOST_NOTICES, PAUSES_SECONDS, Coalescer
from aileron.values import Notice, NoticeKind

from .case import notice


class CoalescerTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Nothing was told yet."""
        self.clock = Clock()
        self.told: list[tuple[int, int]] = []
        self.last: Sequence[Notice] = ()
        self.coalescer = Coalescer(self.clock, self.tell)

    def tell(self, notices: Sequence[Notice], more: int) -> None:
        """Note how many there were, and what."""
        self.told.append((len(notices), more))
        self.last = notices

    def test_burst(self) -> None:
        """What comes within two seconds is one message, the same notice told once, and none comes before."""
        for number in (*range(7), 6):
            self.coalescer.add(notice(number=number))
        self.clock.advance(GATHER_SECONDS - 0.1)
        self.assertEqual(self.told, [])
        self.clock.advance(1000)
        self.assertEqual(self.told, [(7, 0)])

    def test_slower(self) -> None:
        """While it goes on and on messages come ever slower, five minutes apart in the end."""
        moments: list[float] = []
        for second in range(1500):
            self.coalescer.add(notice(number=second))
            before = len(self.told)
            self.clock.advance(1)
            if len(self.told) > before:
                moments.append(self.clock.seconds())
        apart = [late - soon for soon, late in itertools.pairwise(moments)]
        self.assertEqual(apart[: len(PAUSES_SECONDS)], list(PAUSES_SECONDS))
        self.assertEqual(set(apart[len(PAUSES_SECONDS) :]), {PAUSES_SECONDS[-1]})

    def test_quiet(self) -> None:
        """After a quiet time the next is told at once again."""
        for number in (1, 2, 3):
            self.coalescer.add(notice(number=number))
            self.clock.pump((GATHER_SECONDS, 700))
        self.coalescer.add(notice(number=4))
        self.clock.advance(GATHER_SECONDS)
        self.assertEqual(len(self.told), 4)

    def test_urgent(self) -> None:
        """What is wrong does not wait for as long as questions do."""
        for number in range(6):
            self.coalescer.add(notice(number=number))
            while len(self.told) == number:
                self.clock.advance(1)
        before = len(self.told)
        self.coalescer.add(notice(number=8))
        self.clock.pump([1.0] * int(PAUSES_SECONDS[0]))
        self.assertEqual(len(self.told), before)
        self.coalescer.add(notice(NoticeKind.TAMPER))
        self.clock.advance(GATHER_SECONDS)
        self.assertEqual(len(self.told), before + 1)
        self.assertEqual([each.kind for each in self.last], [NoticeKind.APPROVAL, NoticeKind.TAMPER])

    def test_too_many(self) -> None:
        """Of more than fit the number alone is kept, but what is wrong takes a place."""
        for number in range(MOST_NOTICES + 10):
            self.coalescer.add(notice(number=number))
        self.coalescer.add(notice(NoticeKind.TAMPER))
        self.clock.advance(GATHER_SECONDS)
        self.assertEqual(self.told, [(MOST_NOTICES, 11)])
        self.assertIs(self.last[-1].kind, NoticeKind.TAMPER)

    def test_stopped(self) -> None:
        """After the end nothing is told."""
        self.coalescer.add(notice())
        self.coalescer.stop()
        self.coalescer.add(notice(number=2))
        self.clock.advance(1000)
        self.assertEqual((self.told, self.clock.getDelayedCalls()), ([], []))
