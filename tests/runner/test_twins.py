"""Identical requests of one session: what each is shown with, and a denial that reaches them all."""

from __future__ import annotations

from typing import Any

from aileron.model.runs import Run, RunState
from aileron.review import describe_twins

from .kit import OPERATOR, step
from .previewed import PreviewedCase

_FIRST = {"text": "hello"}


class TwinsTests(PreviewedCase):
    """An agent asks twice for the same."""

    def setUp(self) -> None:
        """Offer an action."""
        super().setUp()
        self.offer("plain", step("post"))

    def ask(self, arguments: dict[str, Any], session: str | None = "session-1", name: str = "plain") -> Run:
        """A call of a session."""
        self.clock.advance(1)
        return self.submit(name, arguments, session=session)

    def told(self, run: Run) -> str:
        """What its approval says of the others."""
        shown = self.shown(run)
        (found,) = self.sync(self.runner.decisions.precedents((shown,)))
        return describe_twins(shown.run, found.twins)

    def test_told(self) -> None:
        """Each of two says which of them it is, and how the first one stands."""
        first = self.ask(_FIRST)
        self.assertEqual(self.told(first), "")
        second = self.ask(_FIRST)
        third = self.ask(_FIRST)
        self.assertIn("Identical requests of this session that came later: 2.", self.told(first))
        self.assertIn("Second identical request of this session. The first is waiting for your", self.told(second))
        self.assertIn("the identical pending requests are denied as well", self.told(second))
        self.decide(first, self.shown(first).digest)
        self.assertEqual(self.state(first), RunState.COMPLETED)
        self.assertIn(f"The first is completed (run {first.id}).", self.told(third))
        self.assertEqual(self.told(self.ask(_FIRST, session="session-2")), "")

    def test_denied(self) -> None:
        """A denial reaches every identical request of the session that is pending, at once, and no other request."""
        first = self.ask(_FIRST)
        second, disguised = self.ask(_FIRST), self.ask({"text": "hel\u200blo"})
        others = [self.ask({"text": "other"}), self.ask(_FIRST, session="session-2"), self.ask(_FIRST, session=None)]
        self.decide(first, self.shown(first).digest, approved=False, reason="not now")
        for run in (second, disguised):
            approval = self.shown(run)
            self.assertEqual((approval.run.state, approval.reason), (RunState.DENIED, "not now"))
            self.assertEqual(approval.decided_by, OPERATOR.id)
        self.assertEqual([self.state(each) for each in others], [RunState.PENDING] * 3)
        self.assertEqual(self.effects(), [])

    def test_edited(self) -> None:
        """An identical request that the operator has edited is another by now: a denial leaves it."""
        first, second = self.ask(_FIRST), self.ask(_FIRST)
        self.sync(self.runner.decisions.edit(second.id, {"text": "hi"}, self.shown(second).digest, OPERATOR))
        self.decide(first, self.shown(first).digest, approved=False)
        self.assertEqual(self.state(second), RunState.PENDING)

    def test_approved(self) -> None:
        """An approval is for one of them."""
        first, second = self.ask(_FIRST), self.ask(_FIRST)
        self.decide(first, self.shown(first).digest)
        self.assertEqual((self.state(first), self.state(second)), (RunState.COMPLETED, RunState.PENDING))
        self.assertEqual(self.effects(), ["post"])
