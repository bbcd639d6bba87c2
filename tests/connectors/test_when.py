"""Of the comparison that tells a failure in a well-formed answer."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors._when import condition
from aileron.values import JSON


class ConditionTests(SynchronousTestCase):
    """One comparison."""

    def holds(self, text: str, answer: JSON) -> bool:
        """Whether C{text} is true of C{answer}."""
        return condition(text).holds(answer)

    def test_equal(self) -> None:
        """Equality is of type and value; a path that leads nowhere equals nothing."""
        self.assertTrue(self.holds("ok == false", {"ok": False}))
        self.assertFalse(self.holds("ok == false", {"ok": 0}))
        self.assertFalse(self.holds("ok == 0", {"ok": False}))
        self.assertFalse(self.holds("ok == null", {}))
        self.assertTrue(self.holds('data.items.1.state == "bad"', {"data": {"items": [{}, {"state": "bad"}]}}))

    def test_not_equal(self) -> None:
        """Inequality holds for a path that leads nowhere."""
        self.assertTrue(self.holds("ok != true", {}))
        self.assertTrue(self.holds("ok != true", [1]))
        self.assertFalse(self.holds("ok != true", {"ok": True}))

    def test_missing(self) -> None:
        """A null is there."""
        self.assertTrue(self.holds("id missing", {}))
        self.assertTrue(self.holds("id missing", "id"))
        self.assertFalse(self.holds("id missing", {"id": None}))
        self.assertTrue(self.holds("items.2 missing", {"items": [1, 2]}))

    def test_nonsense(self) -> None:
        """Anything else is no condition."""
        for text in (
            "",
            "ok",
            "ok = 1",
            "ok == ",
            "ok == yes",
            "ok == [1]",
            "a..b == 1",
            "ok and bad",
            "== 1",
            "ok == NaN1",
        ):
            self.assertRaises(ValueError, condition, text)
