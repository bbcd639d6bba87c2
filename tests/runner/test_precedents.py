"""What is asked for, beside what was done before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, utc
from aileron.model.precedents import Precedents
from aileron.model.queries import Page, RunQuery
from aileron.model.reviews import Review, ReviewedStep
from aileron.model.runs import Approval, Run, RunState
from aileron.review import MOST_COMPARED, MOST_LOOKED_AT, MOST_PIECES, find_precedents
from aileron.testing import RunsProxy

from .kit import OPERATOR, START, step
from .previewed import PreviewedCase


class PrecedentsTests(PreviewedCase):
    """Through the runner's door."""

    def setUp(self) -> None:
        """Offer an action."""
        super().setUp()
        self.offer("plain", step("post"))

    def compared(self, **arguments: Any) -> Precedents:
        """A call that waits, compared."""
        run = self.submit("plain", arguments)
        (found,) = self.sync(self.runner.decisions.precedents((self.shown(run),)))
        return found

    def done(self, **arguments: Any) -> None:
        """A call that was approved and done."""
        run = self.submit("plain", arguments)
        self.decide(run, self.shown(run).digest)
        self.assertEqual(self.state(run), RunState.COMPLETED)

    def test_known(self) -> None:
        """A value that was used in a call that was done is known; in one that only waits it is not.

        Before the first call there is nothing.  Texts that are long or in several lines are not told.
        """
        self.assertEqual(self.compared(text="hello", times=2), Precedents(0, True, {"text": ("hello",), "times": (2,)}))
        self.done(text="hello", times=2)
        self.submit("plain", {"text": "other"})
        self.assertEqual(self.compared(text="hello", times=3), Precedents(1, True, {"times": (3,)}))
        self.assertEqual(self.compared(text="other").novel, {"text": ("other",)})
        for text in ("x" * 201, "a\nb"):
            self.assertEqual(self.compared(text=text).novel, {})

    def test_action_changed(self) -> None:
        """That the action's file is another than when it was done last is told."""
        self.done(text="hello")
        self.assertFalse(self.compared(text="again").action_changed)
        self.offer("plain", step("post"), body="Other words.")
        self.assertTrue(self.compared(text="anew").action_changed)

    def repeated(self, session: str | None, **arguments: Any) -> list[tuple[str, RunState]]:
        """Submit a call of a session, and return the identical calls of others that its approval is shown with."""
        run = self.submit("plain", arguments, session=session)
        (found,) = self.sync(self.runner.decisions.precedents((self.shown(run),)))
        return [(each.id, each.state) for each in found.repeats]

    def test_repeated(self) -> None:
        """A call that another session has waiting, or had done within a day, is shown with that call.

        Calls of the same session, and calls with other arguments, are not.
        """
        first = self.submit("plain", {"text": "hello"})
        self.assertEqual(self.repeated("session-1", text="hello"), [])
        self.assertEqual(self.repeated("resumed", text="other"), [])
        self.assertIn((first.id, RunState.PENDING), self.repeated("resumed", text="hello"))
        self.decide(first, self.shown(first).digest)
        self.assertIn((first.id, RunState.COMPLETED), self.repeated("resumed", text="hello"))
        self.assertIn((first.id, RunState.COMPLETED), self.repeated(None, text="hello"))
        self.clock.advance(24 * 3600 + 1)
        self.assertNotIn(first.id, [run_id for run_id, _ in self.repeated("resumed", text="hello")])

    def test_repeated_after_edit(self) -> None:
        """What was edited before it was approved counts as what the agent had asked for, and as what was done."""
        first = self.submit("plain", {"text": "hello"})
        digest = self.shown(first).digest
        edited = self.sync(self.runner.decisions.edit(first.id, {"text": "hi"}, digest, OPERATOR))
        self.decide(first, edited.digest)
        for text in ("hello", "hi"):
            self.assertIn((first.id, RunState.COMPLETED), self.repeated("resumed", text=text))

    def test_not_repeated(self) -> None:
        """A call that another session was denied is not told: nothing of it happened."""
        first = self.submit("plain", {"text": "hello"})
        self.decide(first, self.shown(first).digest, approved=False)
        self.clock.advance(3600)
        self.assertEqual(self.repeated("resumed", text="hello"), [])


@define
class Kept(RunsProxy):
    """Runs of which one was done.

    :ivar asked: for what it was asked.
    :ivar times: how often it was done.
    """

    last: Approval
    cursor: str | None = None
    asked: list[RunQuery] = field(factory=list)
    times: int = 1

    async def list(self, query: RunQuery) -> Page[Run]:
        """See L{IRuns}."""
        self.asked.append(query)
        return Page((self.last.run,) * self.times, self.cursor)

    async def approval(self, run_id: str) -> Approval | None:
        """See L{IRuns}."""
        return self.last


class RecallTests(SynchronousTestCase):
    """By runs that lie in a store."""

    def test_connector_changed(self) -> None:
        """That a connector is another than when it was done last is told by its name; one that is new then is not."""
        before, now = self.approval("1", {"a": "1", "b": "1"}), self.approval("2", {"a": "1", "b": "2", "c": "1"})
        (found,) = self.before(Kept(before), now)
        self.assertEqual(found.connectors_changed, ("b",))

    def test_elements(self) -> None:
        """Of an array the elements that are new are told: a number is not known by a text, nor 2.0 by 2.

        Elements far behind are taken for new, so that nobody waits while they are compared.
        """
        many: list[JSON] = list(range(MOST_COMPARED + 2))
        cases: tuple[tuple[list[JSON], list[JSON], str], ...] = (
            (["a", "b"], ["b", "c"], "{'to': ('c',)}"),
            (["1", 2, 3], [1, 2.0, 3], "{'to': (1, 2.0)}"),
            (many, many, str({"to": tuple(many[MOST_COMPARED:])})),
        )
        for before, now, novel in cases:
            (found,) = self.before(Kept(self.approval("1", {}, to=before)), self.approval("2", {}, to=now))
            self.assertEqual(str(found.novel), novel)

    def test_bounded(self) -> None:
        """No more are looked at than that, once an action, and that there are more is told."""
        kept = Kept(self.approval("1", {}), cursor="more")
        waiting = [self.approval(str(number), {}) for number in range(5)]
        found = self.before(kept, *waiting)
        self.assertEqual([each.whole for each in found], [False] * 5)
        self.assertEqual([query.limit for query in kept.asked], [MOST_LOOKED_AT])

    def test_many_pieces(self) -> None:
        """As many calls are looked at as have a bounded number of values together, and it is told how many."""
        elements = list(range(MOST_COMPARED))
        before, now = self.approval("1", {}, to=elements), self.approval("2", {}, to=["new"])
        (found,) = self.before(Kept(before, times=MOST_LOOKED_AT), now)
        self.assertEqual(found, Precedents(MOST_PIECES // MOST_COMPARED, False, {"to": ("new",)}))

    def before(self, kept: Kept, *approvals: Approval) -> tuple[Precedents, ...]:
        """How they compare with what is kept."""
        return self.successResultOf(Deferred.fromCoroutine(find_precedents(kept, approvals)))

    def approval(self, run_id: str, contents: Mapping[str, str], **arguments: Any) -> Approval:
        """One whose connectors have these contents."""
        now = utc(START)
        run = Run(run_id, "x", "1.0.0", "sha256:x", arguments, RunState.COMPLETED, True, "e", now, now)
        steps = [
            ReviewedStep("do", name, "1.0.0", content, "do", "https://x.example", None, None)
            for name, content in contents.items()
        ]
        return Approval(run, "sha256:y", Review(steps=tuple(steps)), now)
