"""A look that several processes share says nothing of what one of them did not come to look at."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from multiprocessing import active_children, parent_process

from attrs import frozen
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import Verification
from aileron.audit._sharing import MOST_PROCESSES, HelperLost, processes_at_hand
from aileron.values import Row
from tests.audit.test_legs import COUNT, record


@frozen
class RealLeg:
    """Some records, at which a process may get a signal: a helper, or who asked it.

    :ivar struck: which signal; 0: none.
    :ivar helper: whether a helper gets it.
    """

    after: int
    until: int
    struck: int = 0
    helper: bool = True

    def rows(self) -> Iterator[Sequence[Row]]:
        """All at once."""
        if self.struck and self.helper == (parent_process() is not None):
            os.kill(os.getpid(), self.struck)
        yield record()[self.after : self.until]


class SharingTests(SynchronousTestCase):
    """Two processes at one record."""

    def hurried(self, struck: int = 0, helper: bool = True) -> Verification:
        """What is found in legs of one record each; no helper is left behind."""
        self.addCleanup(lambda: self.assertEqual(active_children(), []))
        verification = Verification(())
        legs = [RealLeg(each, each + 1, struck, helper) for each in range(COUNT)]
        self.assertEqual(verification.hurry(legs, 2), COUNT)
        return verification

    def test_same(self) -> None:
        """Two find what one finds."""
        one = Verification(())
        one.feed(record())
        self.assertEqual(self.hurried().end(), one.end())

    def test_killed(self) -> None:
        """Where a helper was killed nothing is said of the record."""
        with self.assertRaises(HelperLost):
            self.hurried(signal.SIGKILL)

    def test_interrupted(self) -> None:
        """Ctrl-C ends the look, and the helpers with it."""
        with self.assertRaises(KeyboardInterrupt):
            self.hurried(signal.SIGINT, helper=False)

    def test_helpers_leave_it_to_us(self) -> None:
        """The Ctrl-C that a terminal gives to all is not a helper's business."""
        self.assertEqual(self.hurried(signal.SIGINT).reached, COUNT)

    def test_at_hand(self) -> None:
        """As many look as there are cores, and not too many."""
        self.assertTrue(1 <= processes_at_hand() <= MOST_PROCESSES)
