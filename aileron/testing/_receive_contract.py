"""The tests that every implementation of L{IRuns} must pass, for receiving a run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from attrs import evolve
from zope.interface.verify import verifyObject

from aileron.model.errors import Conflict, LimitExceeded
from aileron.model.interfaces.store import IRuns
from aileron.model.runs import Approval, Run, RunState

from ._case import LIMITS, RunsCase
from ._examples import NOON, example_ask, example_decision, example_run, example_transition

_S = RunState
_WEEK = timedelta(days=7)


class ReceiveContract(RunsCase):
    """Tests of receiving runs.  Mix into a test case with C{make_runs}."""

    def test_provides(self) -> None:
        """The implementation provides L{IRuns}."""
        self.assertTrue(verifyObject(IRuns, self.runs))

    def test_kept_whole(self) -> None:
        """A received run is read back unchanged."""
        run = example_run(session_id=None, idempotency_key="k", arguments={"é": [1, 2.5, None, {"ü": True}]})
        kept, new = self.do(self.runs.receive(run, (), LIMITS))
        self.assertEqual((kept, new), (run, True))
        self.assertEqual(self.do(self.runs.get(run.id)), run)

    def test_transitions_applied(self) -> None:
        """Transitions that are received with a run are applied in order, with their events."""
        run = example_run(gated=False)
        first = example_transition(run, _S.APPROVED, "one")
        second = example_transition(evolve(run, state=_S.APPROVED), _S.EXECUTING, "two")
        kept, _ = self.do(self.runs.receive(run, (first, second), LIMITS))
        self.assertIs(kept.state, _S.EXECUTING)
        self.assertEqual(self.do(self.runs.get(run.id)), kept)
        self.assertEqual(self.recorded(), ["one", "two"])

    def test_refused_by_verify(self) -> None:
        """If the verify function of a transition raises, neither the run nor its events are stored."""

        def no(run: Run, approval: Approval | None) -> None:
            raise ValueError("no")

        run = example_run()
        self.refused(self.runs.receive(run, (example_transition(run, _S.APPROVED, verify=no),), LIMITS), ValueError)
        self.assertIsNone(self.do(self.runs.get(run.id)))
        self.assertEqual(self.recorded(), [])

    def test_same_key(self) -> None:
        """A repeated idempotency key with equal arguments returns the first run, and writes nothing."""
        first = self.pending(idempotency_key="k")
        again = example_run("run-2", idempotency_key="k")
        asked = example_transition(again, _S.PENDING, "again", ask=example_ask())
        self.assertEqual(self.do(self.runs.receive(again, (asked,), LIMITS)), (first, False))
        self.assertIsNone(self.do(self.runs.get("run-2")))
        self.assertEqual(self.recorded(), ["approval.requested"])

    def test_same_key_other_arguments(self) -> None:
        """A repeated idempotency key with other arguments conflicts. True is not 1."""
        self.received(example_run(idempotency_key="k", arguments={"n": 1}))
        other = example_run("run-2", idempotency_key="k", arguments={"n": True})
        error = self.refused(self.runs.receive(other, (), LIMITS), Conflict)
        self.assertEqual(error.details["run_id"], "run-1")
        self.assertIsNone(self.do(self.runs.get("run-2")))

    def test_same_key_other_manifest(self) -> None:
        """A repeated idempotency key for another version of the action's file conflicts."""
        self.received(example_run(idempotency_key="k"))
        other = example_run("run-2", idempotency_key="k", manifest_digest="sha256:" + "b" * 64)
        self.refused(self.runs.receive(other, (), LIMITS), Conflict)

    def test_key_is_of_session_and_action(self) -> None:
        """Equal idempotency keys of other sessions, of other actions or of no session are independent."""
        self.received(example_run(idempotency_key="k"))
        others: tuple[dict[str, Any], ...] = ({"session_id": "session-2"}, {"session_id": None}, {"action": "other"})
        for number, changes in enumerate(others):
            run = example_run(f"other-{number}", **{"idempotency_key": "k", **changes})
            self.assertEqual(self.do(self.runs.receive(run, (), LIMITS)), (run, True))

    def test_keys_without_session(self) -> None:
        """Runs without a session share their idempotency keys."""
        first = self.received(example_run(session_id=None, idempotency_key="k"))
        again = example_run("run-2", session_id=None, idempotency_key="k")
        self.assertEqual(self.do(self.runs.receive(again, (), LIMITS)), (first, False))
        self.assertEqual(self.do(self.runs.find_by_key(None, "ship-update", "k")), first)

    def test_key_forgotten(self) -> None:
        """An idempotency key can be used again after seven days, and not before."""
        first = self.received(example_run(idempotency_key="k"))
        nearly = example_run("run-2", idempotency_key="k", received_at=NOON + _WEEK - timedelta(seconds=1))
        self.assertEqual(self.do(self.runs.receive(nearly, (), LIMITS)), (first, False))
        later = evolve(nearly, received_at=NOON + _WEEK + timedelta(seconds=1))
        self.assertEqual(self.do(self.runs.receive(later, (), LIMITS)), (later, True))

    def test_find_by_key(self) -> None:
        """A run is found by the combination of idempotency key, session and action."""
        run = self.received(example_run(idempotency_key="k"))
        self.assertEqual(self.do(self.runs.find_by_key("session-1", "ship-update", "k")), run)
        for other in (("session-2", "ship-update", "k"), ("session-1", "x", "k"), ("session-1", "ship-update", "x")):
            self.assertIsNone(self.do(self.runs.find_by_key(*other)))

    def test_limit_of_session(self) -> None:
        """The number of pending approvals per session is limited. Other runs are still accepted."""
        for number in range(LIMITS.per_session):
            self.pending(f"run-{number}")
        run = example_run("late")
        asked = example_transition(run, _S.PENDING, "late", ask=example_ask())
        error = self.refused(self.runs.receive(run, (asked,), LIMITS), LimitExceeded)
        self.assertIn("retry_after", error.details)
        self.assertIsNone(self.do(self.runs.get("late")))
        self.assertNotIn("late", self.recorded())
        self.pending("other", session_id="session-2")
        self.received(example_run("ungated", gated=False))

    def test_limit_of_action(self) -> None:
        """The number of pending approvals per action is limited over all sessions. Other actions are still accepted."""
        limits = evolve(LIMITS, per_action=1)
        self.pending(session_id=None)
        run = example_run("late", session_id="session-2")
        asked = example_transition(run, _S.PENDING, ask=example_ask())
        error = self.refused(self.runs.receive(run, (asked,), limits), LimitExceeded)
        self.assertIn("of this action", error.message)
        other = example_run("other", action="other")
        asked = example_transition(other, _S.PENDING, ask=example_ask())
        self.assertTrue(self.do(self.runs.receive(other, (asked,), limits))[1])

    def test_limit_of_home(self) -> None:
        """The total number of pending approvals is limited. A decided one frees its place."""
        runs = [self.pending(f"run-{number}", session_id=f"s-{number}") for number in range(LIMITS.per_home)]
        run = example_run("late", session_id=None)
        asked = example_transition(run, _S.PENDING, ask=example_ask())
        self.refused(self.runs.receive(run, (asked,), LIMITS), LimitExceeded)
        denied = example_transition(runs[0], _S.DENIED, decision=example_decision(approved=False))
        self.do(self.runs.apply(denied))
        self.assertEqual(self.do(self.runs.receive(run, (asked,), LIMITS))[1], True)
