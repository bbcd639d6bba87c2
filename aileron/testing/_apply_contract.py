"""The tests that every implementation of L{IRuns} must pass, for changing a run."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve

from aileron.model.errors import Conflict, LimitExceeded, NotFound, StateConflict
from aileron.model.faults import Fault
from aileron.model.reviews import Review
from aileron.model.runs import Approval, Ask, AttemptRow, Change, Charge, Progress, Run, RunState, StepRow

from ._case import RunsCase
from ._examples import NOON, example_ask, example_decision, example_event, example_run, example_transition

_S = RunState


class ApplyContract(RunsCase):
    """Tests of transitions, which are changes of a run's state. Mix into a test case with C{make_runs}."""

    def test_applied(self) -> None:
        """A transition changes the fields of the run and stores its event in the audit log."""
        run = self.executing()
        fault = Fault("external_api_error", "Slack said no", "external", details={"status": 200})
        failed = example_transition(run, _S.FAILED, "execution.failed", fault=fault, reason="why", audit_id="event-x")
        after = self.do(self.runs.apply(failed))
        expected = evolve(run, state=_S.FAILED, fault=fault, reason="why", audit_id="event-x", changed_at=failed.at)
        self.assertEqual(after, expected)
        self.assertEqual(self.do(self.runs.get(run.id)), expected)
        self.assertEqual(self.recorded()[-1], "execution.failed")

    def test_result(self) -> None:
        """A result with any JSON is stored, including long integers and invalid Unicode."""
        result = {"output": {"id": 2**70, "text": "\ud800", "\u0000": ["é", None]}, "steps": {}}
        after = self.do(self.runs.apply(example_transition(self.executing(), _S.COMPLETED, result=result)))
        self.assertEqual(after.result, result)
        self.assertEqual(self.do(self.runs.get("run-1")), after)

    def test_compare_and_set(self) -> None:
        """Of two transitions from one state the second fails with the present run and writes nothing."""
        run = self.pending()
        denied = self.do(
            self.runs.apply(example_transition(run, _S.DENIED, "denied", decision=example_decision(approved=False)))
        )
        late = example_transition(run, _S.APPROVED, "approved", decision=example_decision())
        self.assertEqual(self.refused(self.runs.apply(late), StateConflict).present, denied)
        self.assertEqual(self.do(self.runs.get(run.id)), denied)
        self.assertIs(self.approval().approved, False)
        self.assertEqual(self.recorded(), ["approval.requested", "denied"])

    def test_unknown_run(self) -> None:
        """A transition of an unknown run raises NotFound."""
        self.refused(self.runs.apply(example_transition(example_run(), _S.APPROVED)), NotFound)
        self.assertEqual(self.recorded(), [])

    def test_all_or_none(self) -> None:
        """If a later transition fails, the earlier ones of the call are rolled back."""
        run = self.received()
        good = example_transition(run, _S.APPROVED, "good")
        bad = example_transition(evolve(run, state=_S.EXECUTING), _S.COMPLETED, "bad")
        self.refused(self.runs.apply(good, bad), StateConflict)
        self.assertEqual(self.do(self.runs.get(run.id)), run)
        self.assertEqual(self.recorded(), [])

    def test_several(self) -> None:
        """Several transitions of one call are applied in order."""
        run = self.received()
        first = example_transition(run, _S.APPROVED, "one")
        second = example_transition(evolve(run, state=_S.APPROVED), _S.CANCELLED, "two", reason="withdrawn")
        after = self.do(self.runs.apply(first, second))
        self.assertEqual((after.state, after.reason), (_S.CANCELLED, "withdrawn"))
        self.assertEqual(self.recorded(), ["one", "two"])

    def test_note(self) -> None:
        """A note on another run, whose outcome is unknown, is stored with the transition. If that fails, neither is."""
        earlier, run = self.executing(), self.pending("run-2")
        fault = Fault("outcome_unknown", "Reset.", details={"found": True})
        doubtful = self.do(self.runs.apply(example_transition(earlier, _S.UNKNOWN, "doubtful", fault=fault)))
        noted = doubtful.note_repetition(example_event("noted"), superseded_by=run.id)
        late = example_transition(evolve(run, state=_S.APPROVED), _S.EXECUTING, note=noted)
        self.refused(self.runs.apply(late), StateConflict)
        self.assertEqual(self.do(self.runs.get(earlier.id)), doubtful)
        approved = example_transition(run, _S.APPROVED, "approved", decision=example_decision(), note=noted)
        self.do(self.runs.apply(approved))
        after = self.do(self.runs.get(earlier.id))
        assert after is not None and after.fault is not None
        self.assertEqual((after.state, after.superseded_by, after.fault.details["found"]), (_S.UNKNOWN, run.id, True))
        self.assertEqual(self.recorded()[-2:], ["approved", "noted"])

    def test_note_verified(self) -> None:
        """The verify function of a note is called with the other run's row. Its exception rolls back everything."""
        earlier, run, seen = self.executing(), self.pending("run-2"), list[Run]()

        def verify(present: Run) -> None:
            seen.append(present)
            raise Conflict("no")

        noted = evolve(earlier.note_repetition(example_event("noted"), run_again=run.id), verify=verify)
        before = self.recorded()
        approved = example_transition(run, _S.APPROVED, "ok", decision=example_decision(), note=noted)
        self.refused(self.runs.apply(approved), Conflict)
        self.assertEqual((seen[-1].id, self.do(self.runs.get(run.id)), self.recorded()), (earlier.id, run, before))

    def test_note_too_late(self) -> None:
        """If the other run has a known outcome when the note is stored, only the note's event is stored."""
        earlier, run = self.executing(), self.pending("run-2")
        done = self.do(self.runs.apply(example_transition(earlier, _S.COMPLETED, "done")))
        noted = done.note_repetition(example_event("noted"), "why", superseded_by=run.id)
        self.do(self.runs.apply(example_transition(run, _S.APPROVED, "ok", decision=example_decision(), note=noted)))
        self.assertEqual(self.do(self.runs.get(earlier.id)), done)
        self.assertEqual(self.recorded()[-2:], ["ok", "noted"])

    def test_verify_sees_the_row(self) -> None:
        """Verify is called with the stored run and approval, and its exception rolls back everything."""
        run, seen = self.pending(), list[tuple[Run, Approval | None]]()
        approval = self.approval()

        def verify(run: Run, approval: Approval | None) -> None:
            seen.append((run, approval))
            raise Conflict("no")

        approved = example_transition(run, _S.APPROVED, decision=example_decision(), verify=verify)
        self.refused(self.runs.apply(approved), Conflict)
        self.assertEqual(seen, [(run, approval)])
        self.assertEqual(self.approval(), approval)
        self.assertEqual(self.recorded(), ["approval.requested"])

    def test_verify_without_approval(self) -> None:
        """For a run that is not gated, verify gets no approval."""
        seen: list[Approval | None] = []
        run = self.received(example_run(gated=False))
        verified = example_transition(run, _S.EXECUTING, verify=lambda _, approval: seen.append(approval))
        self.do(self.runs.apply(verified))
        self.assertEqual(seen, [None])

    def test_edited(self) -> None:
        """Edited arguments replace the run's, and the original arguments are stored too, even after a second edit."""
        run = self.pending()
        once = self.do(self.runs.apply(example_transition(run, _S.PENDING, "edited", edited={"text": "other"})))
        self.assertEqual((once.arguments, once.asked), ({"text": "other"}, run.arguments))
        twice = self.do(self.runs.apply(example_transition(once, _S.PENDING, "edited", edited={})))
        self.assertEqual((twice.arguments, twice.asked), ({}, run.arguments))
        self.assertEqual(self.do(self.runs.get(run.id)), twice)

    def test_start_after(self) -> None:
        """The start time of a run is stored, and transitions without a start time do not change it."""
        later = NOON + timedelta(hours=1)
        run = self.pending()
        decision = example_decision()
        waits = example_transition(run, _S.APPROVED, "approved", decision=decision, start_after=later)
        approved = self.do(self.runs.apply(waits))
        self.assertEqual(approved.start_after, later)
        moved = self.do(self.runs.apply(example_transition(approved, _S.AWAITING_VAULT, "awaits")))
        self.assertEqual((moved.start_after, self.do(self.runs.get(run.id))), (later, moved))
        anew = self.do(self.runs.apply(example_transition(moved, _S.PENDING, "stale", ask=example_ask())))
        self.assertIs(anew.start_after, None)

    def test_charged(self) -> None:
        """A charge beyond the limit refuses the whole transition until its window has passed."""
        charge = Charge("key", 1, 3600.0, "One an hour.")
        first, second = self.pending(), self.pending("run-2")
        started = example_transition(first, _S.CANCELLED, "first", charges=(charge,))
        self.do(self.runs.apply(started))
        again = example_transition(second, _S.CANCELLED, "second", charges=(Charge("other", 1, 60.0, ""), charge))
        refused = self.refused(self.runs.apply(again), LimitExceeded)
        self.assertEqual((refused.message, refused.details["retry_after"]), ("One an hour.", 3600))
        self.assertEqual(self.do(self.runs.get("run-2")), second)
        later = evolve(again, at=started.at + timedelta(hours=1))
        self.assertIs(self.do(self.runs.apply(later)).state, _S.CANCELLED)

    def test_room(self) -> None:
        """C{room} raises an error if the run would exceed a limit, and counts nothing."""
        charge, other = Charge("key", 1, 3600.0, "One an hour."), Charge("other", 1, 60.0, "")
        run = self.pending()
        self.do(self.runs.room((charge, charge)))
        self.do(self.runs.apply(example_transition(run, _S.CANCELLED, "first", charges=(evolve(charge, most=5),))))
        self.do(self.runs.room((other,)))
        refused = self.refused(self.runs.room((other, charge)), LimitExceeded)
        self.assertEqual(refused.message, "One an hour.")

    def test_asked(self) -> None:
        """A requested approval is stored with its run."""
        run = self.pending()
        ask = example_ask()
        expected = Approval(run, ask.digest, ask.review, ask.requested_at, ask.expires_at, ask.stale)
        self.assertEqual(self.approval(), expected)

    def test_decided(self) -> None:
        """A decision is stored with its author, time and reason."""
        run = self.pending()
        approved = example_transition(run, _S.APPROVED, decision=example_decision(reason="fine"))
        after = self.do(self.runs.apply(approved))
        approval = self.approval()
        self.assertEqual(approval.run, after)
        self.assertEqual(
            (approval.approved, approval.decided_at, approval.decided_by, approval.reason),
            (True, approved.at, "operator-1", "fine"),
        )

    def test_marked(self) -> None:
        """A decision is stored with its mark (the vault's signature) and period. A new request deletes all of it."""
        run, later = self.pending(), NOON + timedelta(hours=1)
        decision = evolve(example_decision(), decided_at=NOON, not_before=NOON, not_after=later, mark=b"\x00mark")
        run = self.do(self.runs.apply(example_transition(run, _S.APPROVED, decision=decision)))
        kept = self.approval()
        self.assertEqual(
            (kept.decided_at, kept.not_before, kept.not_after, kept.mark), (NOON, NOON, later, b"\x00mark")
        )
        self.do(self.runs.apply(example_transition(run, _S.PENDING, ask=example_ask())))
        kept = self.approval()
        self.assertEqual((kept.decided_at, kept.not_before, kept.not_after, kept.mark), (None, None, None, None))

    def test_asked_anew(self) -> None:
        """A new request for approval replaces the stored review and deletes the decision."""
        run = self.pending()
        run = self.do(self.runs.apply(example_transition(run, _S.APPROVED, decision=example_decision(reason="fine"))))
        later, changes = NOON + timedelta(hours=1), (Change("/fields", "changed", None, [1]),)
        ask = Ask("sha256:new", Review(), later, later, "changed", changes)
        run = self.do(self.runs.apply(example_transition(run, _S.PENDING, ask=ask)))
        again = Approval(run, "sha256:new", Review(), later, later, "changed", changes=changes)
        self.assertEqual(self.approval(), again)

    def test_steps_and_attempts(self) -> None:
        """Steps and attempts of a transition are stored with it."""
        run = self.received(example_run(gated=False))
        began = AttemptRow(run.id, "post", 1, "started", NOON)
        run = self.do(self.runs.apply(example_transition(run, _S.EXECUTING, attempts=(began,))))
        self.assertEqual(self.do(self.runs.attempts(run.id)), (began,))
        step = StepRow(run.id, "post", 0, "succeeded", {"ts": "1"})
        ended = evolve(began, state="succeeded", ended_at=NOON, sent=True)
        self.do(self.runs.apply(example_transition(run, _S.COMPLETED, steps=(step,), attempts=(ended,))))
        self.assertEqual(self.do(self.runs.attempts(run.id)), (ended,))
        self.assertEqual(self.do(self.runs.steps(run.id)), (step,))

    def test_progress(self) -> None:
        """Progress of an executing run is stored in order with its events."""
        run = self.executing()
        fault = Fault("network_error", "refused", "external", True)
        attempts = (
            AttemptRow(run.id, "b", 1, "failed", NOON, NOON, fault, sent=False),
            AttemptRow(run.id, "b", 2, "started", NOON),
            AttemptRow(run.id, "a", 1, "started", NOON),
        )
        steps = (StepRow(run.id, "b", 1, "failed"), StepRow(run.id, "a", 0, "succeeded", [1]))
        self.do(self.runs.progress(Progress(run.id, (example_event("execution.attempt"),), steps, attempts)))
        self.assertEqual(self.do(self.runs.attempts(run.id)), attempts)
        self.assertEqual(self.do(self.runs.steps(run.id)), steps[::-1])
        self.assertEqual(self.recorded()[-1], "execution.attempt")

    def test_progress_elsewhere(self) -> None:
        """Progress of a run that is not executing is refused, and nothing is written."""
        run = self.pending()
        progress = Progress(run.id, (example_event(),), (StepRow(run.id, "a", 0, "succeeded"),))
        self.assertEqual(self.refused(self.runs.progress(progress), StateConflict).present, run)
        self.assertEqual(self.do(self.runs.steps(run.id)), ())
        self.assertEqual(self.recorded(), ["approval.requested"])
