"""Reviews of one request and of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.model.precedents import Precedents
from aileron.model.reviews import Card
from aileron.model.runs import Approval
from aileron.review import review_requests

from .test_warnings import DONE, approval


class Decisions:
    """Compares and plans, and keeps for which requests it planned."""

    def __init__(self) -> None:
        self.planned: list[Approval] = []

    async def precedents(self, approvals: Sequence[Approval]) -> tuple[Precedents, ...]:
        return tuple(DONE for _ in approvals)

    def cards(self, asked: Approval) -> tuple[Card, ...]:
        self.planned.append(asked)
        return ()


class ReviewTests(SynchronousTestCase):
    """What a list costs."""

    def test_large(self) -> None:
        """A large request is planned for its cards when it is reviewed alone, and not in a list."""
        large, small = approval(text="long " * 40_000), approval(text="hello")
        for asked, planned in (((large,), [large]), ((large, small), [small]), ((small, small), [small, small])):
            decisions = Decisions()
            reviews = self.successResultOf(Deferred.fromCoroutine(review_requests(cast(Any, decisions), {}, asked)))
            self.assertEqual(([each.approval for each in reviews], decisions.planned), ([*asked], planned))
