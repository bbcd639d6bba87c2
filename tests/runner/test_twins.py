"""Identical requests of one session: what each is shown with, and a denial that reaches them all."""

from __future__ import annotations

from typing import Any

from aileron.model.runs import Run, RunState
from aileron.review import describe_twins, group_identical

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


class GroupTests(PreviewedCase):
    """Requests that several sessions make alike."""

    def setUp(self) -> None:
        """Offer an action."""
        super().setUp()
        self.offer("plain", step("post"))

    def ask(self, text: str = "hello", session: str | None = "session-1", **more: Any) -> Run:
        """A call of a session."""
        return self.submit("plain", {"text": text}, session=session, **more)

    def groups(self, *runs: Run) -> list[list[str]]:
        """The groups of their approvals, by run."""
        return [[each.run.id for each in group] for group in group_identical([self.shown(run) for run in runs])]

    def test_sessions(self) -> None:
        """Requests of any session with equal arguments are one group, each with a digest of its own."""
        one, other, two, own = self.ask(), self.ask("other"), self.ask(session="session-2"), self.ask(session=None)
        self.assertEqual(self.groups(one, other, two, own), [[one.id, two.id, own.id], [other.id]])
        self.assertEqual(len({self.shown(run).digest for run in (one, two, own)}), 3)

    def test_own_keys(self) -> None:
        """Two that their agent told apart are in no group, though a third one of another session may be with either."""
        one, two, three = self.ask(key="a"), self.ask(key="b"), self.ask(session="session-2", key="c")
        self.assertEqual(self.groups(one, two, three), [[one.id, three.id], [two.id]])

    def test_edited(self) -> None:
        """One that the operator edited is in no group with one as it was asked, even with the same arguments."""
        one, two = self.ask("hi"), self.ask("hello", session="session-2")
        digest = self.shown(two).digest
        self.sync(self.runner.decisions.edit(two.id, {"text": "hi"}, digest, OPERATOR))
        self.assertEqual(self.groups(one, two), [[one.id], [two.id]])

    def test_changed(self) -> None:
        """One that was shown before the action's file changed is in no group with one that was not."""
        one = self.ask()
        self.offer("plain", step("post"), expires="undo_seconds = 3")
        two = self.ask(session="session-2")
        self.assertEqual(self.groups(one, two), [[one.id], [two.id]])


class RepeatTests(PreviewedCase):
    """A scheduled job whose action says C{on_repeat = "replace"}."""

    def setUp(self) -> None:
        """Offer an action."""
        super().setUp()
        self.offer("job", step("post"), expires='on_repeat = "replace"')

    def ask(self, arguments: dict[str, Any] = _FIRST, session: str | None = "session-1", **more: Any) -> Run:
        """A call of a session."""
        self.clock.advance(1)
        return self.submit("job", arguments, session=session, **more)

    def test_replaced(self) -> None:
        """A repetition replaces the older request, of another session too; the older one says by which."""
        first, second = self.ask(), self.ask(session="session-2")
        self.assertEqual((self.state(first), self.state(second)), (RunState.CANCELLED, RunState.PENDING))
        self.assertIn(second.id, str(self.sync(self.runner.submission.run(first.id)).reason))
        third = self.ask(session=None)
        self.assertEqual((self.state(second), self.state(third)), (RunState.CANCELLED, RunState.PENDING))
        self.decide(third, self.shown(third).digest)
        self.assertEqual(len(self.effects()), 1)
        self.assertIn("run.cancelled", self.events(first))

    def test_kept(self) -> None:
        """Other arguments, an edited request, keys of their own, a decided one and other actions stay."""
        other = self.ask({"text": "other"})
        edited = self.ask({"text": "edited"})
        digest = self.shown(edited).digest
        self.sync(self.runner.decisions.edit(edited.id, {"text": "hello", "times": 1}, digest, OPERATOR))
        decided = self.ask()
        self.decide(decided, self.shown(decided).digest)
        keyed = [self.ask(key="a"), self.ask(key="b")]
        self.offer("usual", step("post"))
        usual = [self.submit("usual", _FIRST), self.submit("usual", _FIRST)]
        for run in (other, edited, *keyed, *usual):
            self.assertEqual(self.state(run), RunState.PENDING)
        self.assertEqual(self.state(decided), RunState.COMPLETED)

    def test_killed(self) -> None:
        """A daemon that ends before the older one is replaced leaves both; the next repetition replaces both."""
        self.offer("job", step("post"))
        waiting = [self.ask(), self.ask()]
        self.offer("job", step("post"), expires='on_repeat = "replace"')
        newest = self.ask()
        self.assertEqual(
            [self.state(each) for each in (*waiting, newest)], ["cancelled", "cancelled", "pending_approval"]
        )
