"""What the pages show of pauses, and of runs that can still be taken back."""

from __future__ import annotations

from datetime import timedelta

from twisted.internet.defer import Deferred

from aileron.base.json import timestamp, utc
from aileron.model.audit import Actor
from aileron.model.runs import Decision, Run, RunState
from tests.api.case import NOW
from tests.web.case import WebCase

OPERATOR = Actor("human", "operator-1")
LATER = utc(NOW) + timedelta(minutes=2)


def withdrawal(run: Run) -> str:
    """What a button does that takes C{run} back."""
    return f'data-act="POST /v1/action-approvals/{run.id}/withdraw"'


class PauseTests(WebCase):
    """Every fragment tells whether everything is paused."""

    def told(self, path: str) -> str:
        """The header."""
        return self.fragment(path).headers["x-aileron-paused"]

    def test_told(self) -> None:
        """Since when, on every page; the pause of a session alone is none of everything."""
        paths = ("/approvals", "/trust", f"/approvals/{self.ask().id}")
        self.successResultOf(Deferred.fromCoroutine(self.runner.pause("session-1", None, OPERATOR)))
        self.assertEqual([self.told(path) for path in paths], ["no"] * 3)
        self.successResultOf(Deferred.fromCoroutine(self.runner.pause(None, None, OPERATOR)))
        self.assertEqual([self.told(path) for path in paths], [timestamp(utc(NOW))] * 3)

    def test_nobody(self) -> None:
        """Who is not logged in is not told."""
        self.assertNotIn("x-aileron-paused", self.get("/fragments/approvals").headers)

    def test_button(self) -> None:
        """The shell has the button, hidden until somebody is logged in."""
        page = self.get("/approvals").text
        self.assertIn('<button type="button" id="pause" hidden disabled>Pause everything</button>', page)


class UndoTests(WebCase):
    """Runs that are approved and have not begun."""

    def held(self) -> Run:
        """One of them."""
        run = self.ask()
        digest = self.successResultOf(Deferred.fromCoroutine(self.runner.approval(run.id))).digest
        decision = Decision(True, digest, OPERATOR.id, not_before=LATER)
        self.successResultOf(Deferred.fromCoroutine(self.runner.decide(run.id, decision)))
        return run

    def test_held(self) -> None:
        """Its page says when it begins, and it can be taken back there and in the list, until it has begun."""
        self.assertNotIn("Approved, not started", self.fragment("/approvals").text)
        run = self.held()
        for path, parts in (
            (f"/approvals/{run.id}", (f'data-begins="{timestamp(LATER)}"', ">Undo</button>", "Starts ")),
            ("/approvals", ("Approved, not started", f'href="/approvals/{run.id}"')),
        ):
            for part in (*parts, withdrawal(run)):
                self.assertIn(part, self.fragment(path).text)
        self.runner.finish(run.id, RunState.EXECUTING)
        self.assertNotIn("Undo", self.fragment(f"/approvals/{run.id}").text)

    def test_pending(self) -> None:
        """One that waits for a decision has no such button."""
        self.assertNotIn(">Undo<", self.fragment(f"/approvals/{self.ask().id}").text)
