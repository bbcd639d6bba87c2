"""Arguments with many values are planned with one approval after another, and others have their turn between."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from aileron.base.json import JSON, heavy
from aileron.model.queries import RunQuery

from .kit import manifest, step
from .previewed import PreviewedCase

_ARRAY = """
[[inputs]]
name = "much"
description = "Anything"

[inputs.schema]
type = "array"
items = {}
"""


class HeavyTests(PreviewedCase):
    """Through the runner's door."""

    def test_others_have_their_turn(self) -> None:
        """A list of heavy approvals comes once others had their turn; one of light ones comes at once."""
        self.write("plain", manifest("plain", step("post")))
        self.offer("heavy", step("post"), top=_ARRAY)
        self.submit("plain", {"text": "light"})
        self.assertEqual(len(self.sync(self.runner.decisions.approvals(RunQuery())).items), 1)
        for number in range(3):
            self.submit("heavy", {"text": str(number), "much": [0] * 1100})
        listed = Deferred.fromCoroutine(self.runner.decisions.approvals(RunQuery()))
        self.assertFalse(listed.called)
        self.clock.advance(0)
        self.assertEqual(len(self.successResultOf(listed).items), 4)

    def test_what_is_heavy(self) -> None:
        """Many values, wherever they are, and very long texts."""
        values: tuple[JSON, ...] = ([0] * 1100, {"a": [{"b": [[0] * 20] * 60}]}, ["x" * 60_000] * 2, "x" * 200_000)
        self.assertEqual([heavy(each) for each in values], [True] * 4)
        self.assertEqual([heavy(each) for each in ({}, {"a": "x" * 60_000}, [0] * 900, None, 5)], [False] * 5)
