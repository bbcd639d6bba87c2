"""Tests of what a run goes through, what binds it, and what is told of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import compact, digest_of_bytes, utc
from aileron.model.connectors import Outcome
from aileron.model.faults import Fault
from aileron.model.queries import AuditQuery
from aileron.model.runs import Run, RunState
from aileron.runner.plan import Plan
from aileron.runner.runs import TRANSITIONS, transition
from aileron.testing import example_event, example_run
from tests.runner.kit import RunnerCase

_PAGE = Path(__file__).parents[2] / "doc" / "architecture.md"


class TransitionTests(SynchronousTestCase):
    """The table of transitions."""

    def test_page(self) -> None:
        """doc/architecture.md has a row for each, in the same order, and says when it happens."""
        told = re.findall(
            r"^\| `(\w+)` \| `?([\w.]*)`? \| `(\w+)` \| ([\w, ]+) \| \w.*\|$", _PAGE.read_text("utf-8"), re.MULTILINE
        )
        self.assertEqual(told, [(start.value, event, end.value, who) for start, event, end, who in TRANSITIONS])

    def test_rows(self) -> None:
        """No row stands there twice, and each names whose act changes the state."""
        rows = [row[:3] for row in TRANSITIONS]
        self.assertEqual(len(rows), len(set(rows)))
        acting = {who for *_, named in TRANSITIONS for who in re.findall(r"\w+", named)} - {"or"}
        self.assertEqual(acting, {"agent", "operator", "grant", "service", "daemon"})

    def test_events(self) -> None:
        """The documentation names each event of the table."""
        page = (_PAGE.parent / "audit.md").read_text("utf-8")
        self.assertEqual([event for _, event, *_ in TRANSITIONS if event and f"`{event}`" not in page], [])

    def test_refused(self) -> None:
        """A change that no row allows, or recorded by another event, cannot be built."""
        run, at = example_run("run-1", state=RunState.PENDING), utc(0)
        approved = evolve(example_event("approved"), type="approval.approved")
        self.assertIs(transition(run, RunState.APPROVED, at, approved).end, RunState.APPROVED)
        for end, event in ((RunState.EXECUTING, approved), (RunState.APPROVED, evolve(approved, type="run.approved"))):
            self.assertRaises(ValueError, transition, run, end, at, event)
        self.assertRaises(ValueError, transition, run, RunState.APPROVED, at)


class DigestTests(RunnerCase):
    """The digest of a plan that is worked out here, and of others that differ in one thing."""

    def worked_out(self) -> tuple[Run, Plan]:
        """A run, and what it would do."""
        run = self.submit()
        return run, self.runner.submission._planner.plan_run(run)

    def test_run(self) -> None:
        """Run, session, action, file and arguments are bound."""
        run, plan = self.worked_out()
        others = (
            plan.digest(evolve(run, id="another")),
            plan.digest(evolve(run, session_id="another")),
            evolve(plan, action=evolve(plan.action, name="another")).digest(run),
            evolve(plan, action=evolve(plan.action, digest="another")).digest(run),
            evolve(plan, arguments={**plan.arguments, "text": "another"}).digest(run),
            evolve(plan, steps=()).digest(run),
        )
        self.assertEqual(len({plan.digest(run), *others}), len(others) + 1)

    def test_step(self) -> None:
        """Of a step are bound its name, connector, operation, address and request."""
        run, plan = self.worked_out()
        (step,) = plan.steps
        others = (
            evolve(step, step=evolve(step.step, id="another")),
            evolve(step, step=evolve(step.step, operation="put")),
            evolve(step, description=evolve(step.description, name="local://another")),
            evolve(step, description=evolve(step.description, version="2.0.0")),
            evolve(step, description=evolve(step.description, content_hash="another")),
            evolve(step, base_url="https://another.invalid"),
            evolve(step, request=None),
        )
        digests = {evolve(plan, steps=(each,)).digest(run) for each in others}
        self.assertEqual(len({plan.digest(run), *digests}), len(others) + 1)


class ToldTests(RunnerCase):
    """What C{attempts} of the last event holds."""

    def attempts(self, run: Run) -> list[dict[str, Any]]:
        """As they are on record."""
        (newest,) = self.sync(self.store.audit.list(AuditQuery(run_id=run.id, limit=1))).items
        return cast("list[dict[str, Any]]", newest.event.payload["attempts"])

    def test_success(self) -> None:
        """An answer's status, digest and size are on record, not the answer; the planned request stands elsewhere."""
        self.connector.script.append(Outcome({"secret plan": 1}, status=201))
        run = self.submit("open")
        (told,) = self.attempts(run)
        text = compact({"secret plan": 1}).encode()
        self.assertEqual(told["output"], {"digest": digest_of_bytes(text), "bytes": len(text)})
        self.assertEqual((told["step"], told["attempt"], told["state"]), ("only", 1, "succeeded"))
        self.assertEqual((told["status"], told["sent"], "request" in told), (201, True, False))
        self.assertLessEqual(told["started_at"], told["ended_at"])

    def test_failures(self) -> None:
        """Each attempt that failed is on record with its fault."""
        lost = Outcome(fault=Fault("network_error", "refused", "external", True), sent=False)
        self.connector.script.append(lost)
        run = self.submit("open")
        self.clock.advance(1.0)
        first, second = self.attempts(run)
        self.assertEqual((first["state"], first["sent"], first["failure"]["class"]), ("failed", False, "network_error"))
        self.assertEqual((second["state"], second["attempt"]), ("succeeded", 2))
