"""The judge of the crash load tells a lost approval from one that had to be asked for once more."""

from __future__ import annotations

import random
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from .book import BY_NAME, LOST, Book, Call
from .words import LIMIT
from .world import World


class AgainTests(SynchronousTestCase):
    """A run that does another again, approved and confirmed."""

    def judged(self, kind: str = "once", parent: str = "unknown", state: str = "pending_approval") -> list[str]:
        """The promises that are broken where it is found in this state.

        :param parent: the state of the run that it does again.
        """
        book = Book(World(random.Random(1), lambda: None))
        call = book.calls["text"] = Call("text", BY_NAME[kind], None, "run-1", promised=True, done_again=True)
        child = book.child(call, "run-2")
        child.asked.add("approve")
        child.confirmed.add("approve")
        runs: dict[str, dict[str, Any]] = {
            "run-1": {"id": "run-1", "state": parent, "arguments": {"text": "text"}, "parent_id": None},
            "run-2": {"id": "run-2", "state": state, "arguments": {"text": "text"}, "parent_id": "run-1"},
        }
        return [promise for promise, _ in book.hold(runs, {"text": set()})]

    def test_lost(self) -> None:
        """Where nothing else happened, a confirmed approval that is gone was lost, pending or denied."""
        for state in ("pending_approval", "denied", "expired", "cancelled"):
            self.assertEqual(self.judged(state=state), [LOST], state)
        self.assertEqual(self.judged(state="completed"), [])

    def test_full(self) -> None:
        """Where a limit is full, of the action's file or the operator's, it is asked anew."""
        for kind in ("few", "open-few", LIMIT):
            self.assertEqual(self.judged(kind), [], kind)

    def test_happened(self) -> None:
        """So is one whose original was found out to have happened."""
        self.assertEqual(self.judged("found", parent="completed"), [])
        self.assertEqual(self.judged("found", parent="failed"), [LOST])
