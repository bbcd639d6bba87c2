"""What the crash load remembers of what the operator did."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from .book import BY_NAME, Book, Call
from .governing import Governing
from .sites import Said, Site
from .world import World


class _Answers:
    """A site that answers at once."""

    def __init__(self, body: dict[str, Any], then: Callable[[], object] = lambda: None) -> None:
        self.body = body
        self.then = then

    async def post(self, path: str, body: dict[str, Any]) -> Said:
        """As told."""
        self.then()
        return Said(200, self.body)


class ResumeTests(SynchronousTestCase):
    """Resuming."""

    def setUp(self) -> None:
        """Two approved calls, one of which its agent still waits to be told of."""
        self.book = Book(World(random.Random(1), lambda: None))
        for text, run_id in (("told", "run-1"), ("waits", None)):
            self.book.calls[text] = Call(text, BY_NAME["once"], None, run_id, asked={"approve"}, confirmed={"approve"})
        self.governing = Governing(self.book, random.Random(1), lambda promise, how: self.fail(how))

    def resume(self, *asked_anew: str) -> None:
        """Resume, and be told what is asked anew."""
        site = cast(Site, _Answers({"asked_anew": [{"id": each} for each in asked_anew]}))
        self.successResultOf(Deferred.fromCoroutine(self.governing.resume(site)))

    def test_not_told_yet(self) -> None:
        """Whatever was approved may be asked anew, also where no agent was told yet which run it is."""
        self.resume()
        self.assertEqual([call.asked for call in self.book.all()], [{"approve", "resume"}] * 2)

    def test_seen_meanwhile(self) -> None:
        """So may a run that does another again, which somebody sees for the first time, and approves, meanwhile."""
        parent = self.book.calls["told"]
        site = _Answers({"asked_anew": []}, lambda: self.book.child(parent, "run-2"))
        self.successResultOf(Deferred.fromCoroutine(self.governing.resume(cast(Site, site))))
        self.book.child(parent, "run-3")
        self.assertEqual([child.asked for child in parent.children.values()], [{"resume"}, set()])

    def test_asked_anew(self) -> None:
        """The yes to what is asked anew counts no more."""
        self.resume("run-1")
        self.assertEqual([call.confirmed for call in self.book.all()], [set(), {"approve"}])
