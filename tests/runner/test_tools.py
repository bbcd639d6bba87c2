"""Only the requests of agents' own tools use the action of a service; their reads are no runs."""

from __future__ import annotations

from attrs import evolve

from aileron.model.actions import Offering
from aileron.model.connectors import Outcome
from aileron.model.errors import CapabilityDenied, Forbidden, NotFound, Paused, VaultLocked
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.runs import Call, RunState
from aileron.model.tool_claims import NewClaim
from aileron.model.vault import VaultState

from .kit import OPERATOR, step
from .tools import ACTION, MANIFEST, ToolsCase


class ToolsOnlyTests(ToolsCase):
    """Who may submit the action."""

    def test_of_tool(self) -> None:
        """A tool's request waits for approval, and is sent once it is approved."""
        call = evolve(self.call(ACTION, self.inputs()), claim=NewClaim("form", 1))
        run = self.sync(self.runner.submission.submit(call))
        self.assertIs(run.state, RunState.PENDING)
        self.assertEqual([], self.service.sendings)
        self.approve(run)
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(1, len(self.service.sendings))

    def test_other_calls(self) -> None:
        """Calls of the agent and of the operator are refused, and nothing is stored."""
        for session in ("session-1", None):
            self.fails(self.runner.submission.submit(self.call(ACTION, self.inputs(), session=session)), Forbidden)
        self.assertEqual(0, self.sync(self.runner.submission.count(RunQuery())))

    def test_not_offered(self) -> None:
        """No session is offered the action; the operator sees it."""
        offering: Offering = self.runner.submission.offering()
        self.assertTrue(offering.offers[ACTION].tools_only)
        narrowed = self.runner.submission.filters.narrow(self.session("session-1"), offering)
        self.assertEqual({"gated", "open"}, set(narrowed.offers))

    def test_ungated(self) -> None:
        """An action that asks nobody cannot forward."""
        self.write(ACTION, MANIFEST.replace("required = true", "required = false"))
        self.runner.check_changes()
        call = evolve(self.call(ACTION, self.inputs()), claim=NewClaim("form", 1))
        self.fails(self.runner.submission.submit(call), CapabilityDenied)
        self.assertEqual([], self.service.sendings)

    def test_read_in_an_action(self) -> None:
        """No action sends the reads of tools without approval."""
        text = MANIFEST.replace('"forward"', '"forward_read"').replace("required = true", "required = false")
        self.write(ACTION, text)
        self.runner.check_changes()
        self.fails(self.runner.submission.submit(Call(ACTION, self.inputs(), OPERATOR)), Forbidden)
        call = evolve(self.call(ACTION, self.inputs()), claim=NewClaim("form", 1))
        self.fails(self.runner.submission.submit(call), CapabilityDenied)


class ToolReadsTests(ToolsCase):
    """Reads, which are sent at once."""

    def read(self, action: str = ACTION) -> Outcome:
        """Read for a session."""
        outcome = self.sync(self.runner.tool_reads.read(self.session("session-1"), action, self.inputs()))
        assert isinstance(outcome, Outcome)
        return outcome

    def refused(self, kind: type[Exception], action: str = ACTION) -> None:
        """Check that a read is refused, and nothing is sent."""
        session = self.session("session-1")
        self.fails(self.runner.tool_reads.read(session, action, self.inputs()), kind)
        self.assertEqual([], self.service.sendings + self.connector.sendings)

    def test_read(self) -> None:
        """A read is sent once, and is no run."""
        self.service.script.append(Outcome(output={"status": 200}, status=200))
        self.assertEqual({"status": 200}, self.read().output)
        self.assertEqual(["read"], [each.method for each in self.service.sendings])
        self.assertEqual(0, self.sync(self.runner.submission.count(RunQuery())))

    def test_echo(self) -> None:
        """An answer that held the credential is recorded."""
        self.service.script.append(Outcome(output={}, status=200, notes={"echoed": ["plain"]}))
        self.read()
        (found,) = self.sync(self.store.audit.list(AuditQuery(type="secret.echoed"))).items
        self.assertEqual(("session-1", None), (found.event.session_id, found.event.run_id))

    def test_paused(self) -> None:
        """Nothing is read while the session is paused, or everything."""
        self.session("session-1")
        for paused in ("session-1", None):
            self.sync(self.runner.limits.pause(paused, "wait", OPERATOR))
            self.refused(Paused)
            self.sync(self.runner.limits.resume(paused, OPERATOR))

    def test_locked(self) -> None:
        """Nothing is read while the vault is locked."""
        self.session("session-1")
        self.runner.submission.offering()
        self.vault.lock()
        self.assertIs(self.vault.state(), VaultState.LOCKED)
        self.refused(VaultLocked)

    def test_other_action(self) -> None:
        """Other actions, and those that are not offered, read nothing."""
        self.refused(Forbidden, "gated")
        self.refused(NotFound, "unknown")
        self.offer("two", step("post", "a"), step("post", "b"))
        self.refused(Forbidden, "two")

    def test_profile(self) -> None:
        """A session whose profile leaves the action out reads nothing by it, and its tools write nothing."""
        session = evolve(self.session("session-1"), profile="small")
        self.fails(self.runner.tool_reads.read(session, ACTION, self.inputs()), Forbidden)
        call = evolve(self.call(ACTION, self.inputs()), session=session, claim=NewClaim("form", 1))
        self.fails(self.runner.submission.submit(call), Forbidden)
        self.assertEqual([], self.service.sendings)
