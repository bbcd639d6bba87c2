"""An approved run waits for a credential that only a person can renew."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from aileron.model.connectors import CredentialNeed, Outcome
from aileron.model.errors import CredentialNeedsYou, NetworkError
from aileron.model.runs import Run, RunState
from aileron.model.vault import NewBinding, Scope
from aileron.testing import ScriptedConnector, scripted_description
from tests.runner.kit import OPERATOR, RunnerCase

NEED = CredentialNeed("api_key", "Authorization", "Bearer {key}")
NAME = "api_key/scripted/me"
WHY = "The authorization server refused to renew it (invalid_grant)."


class AwaitingCredentialCase(RunnerCase):
    """A connector whose credential needs a person."""

    def setUp(self) -> None:
        super().setUp()
        description = scripted_description(credential=NEED)
        self.connector = ScriptedConnector(description, self.clock)
        self.connectors._connectors[description.name] = self.connector
        self.believe_connectors()
        scope = Scope(description.hosts, str(description.base_url), NEED.header, NEED.format)
        self.bindings.add(NewBinding("api_key", "scripted", "me", description.name, b"secret", scope=scope))
        self.bindings.needing[NAME] = WHY
        self.runner.check_changes()

    def waiting(self) -> Run:
        """A run that waits for it."""
        run = self.submit()
        self.approve(run)
        self.assertIs(self.state(run), RunState.AWAITING_CREDENTIAL)
        return run

    def renew(self) -> None:
        """Give the binding another secret, as the operator does."""
        self.sync(self.bindings.replace(NAME, b"another"))


class AwaitingCredentialTests(AwaitingCredentialCase):
    """Gated actions."""

    def test_waits(self) -> None:
        """It waits with nothing sent, says why on record, and looks for it do not ask or record anything more."""
        run = self.waiting()
        (event,) = self.recorded("run.awaiting_credential", run)
        self.assertIn("needs your attention", str(event.payload["reason"]))
        for _ in range(3):
            self.runner.check_changes()
        self.assertEqual(self.events(run)[-1], "run.awaiting_credential")
        self.assertEqual((len(self.recorded("run.awaiting_credential", run)), self.connector.sendings), (1, []))

    def test_goes_on(self) -> None:
        """Once the credential was replaced it goes on by itself, with the decision that it had."""
        run = self.waiting()
        self.renew()
        self.runner.check_changes()
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual([each.secret for each in self.connector.sendings], [b"another"])
        told = self.events(run)
        self.assertEqual(told[told.index("run.awaiting_credential") + 1 :][0], "run.resumed")

    def test_replaced_meanwhile(self) -> None:
        """What is replaced just before the run stands there is noticed at the next look."""
        renewing: Deferred[None] = Deferred()
        patch = self.patch(type(self.runner.submission._executor), "make_ready", lambda executor, plan, owner: renewing)
        run = self.submit()
        self.approve(run)
        self.renew()
        self.runner.check_changes()
        renewing.errback(CredentialNeedsYou("It needs your attention."))
        self.assertIs(self.state(run), RunState.AWAITING_CREDENTIAL)
        patch.restore()
        self.runner.check_changes()
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_another_binding(self) -> None:
        """A credential that was revoked is not the one that was approved: the run is asked anew."""
        run = self.waiting()
        self.sync(self.bindings.revoke(NAME))
        self.runner.check_changes()
        self.assertIs(self.state(run), RunState.PENDING)
        self.assertEqual(self.connector.sendings, [])

    def test_withdrawn(self) -> None:
        """It can be taken back, and stays so."""
        run = self.waiting()
        self.sync(self.runner.submission.withdraw(run.id, OPERATOR, "no"))
        self.renew()
        self.runner.check_changes()
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.CANCELLED, []))

    def test_another_life(self) -> None:
        """It waits through a restart, and goes on after that."""
        run = self.waiting()
        self.next_life()
        self.assertIs(self.state(run), RunState.AWAITING_CREDENTIAL)
        self.renew()
        self.runner.check_changes()
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_locked_meanwhile(self) -> None:
        """A vault that was locked meanwhile changes nothing: it goes on when both are there."""
        run = self.waiting()
        self.vault.lock()
        self.next_life()
        self.assertIs(self.state(run), RunState.AWAITING_CREDENTIAL)
        self.unlock_anew()
        self.bindings.needing.clear()
        self.restart()
        self.runner.check_changes()
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_after_the_vault(self) -> None:
        """What waited for the vault waits for the credential next."""
        run = self.approved_and_locked()
        self.unlock_anew()
        self.restart()
        self.assertIs(self.state(run), RunState.AWAITING_CREDENTIAL)

    def test_paused(self) -> None:
        """What waits for a credential when everything is resumed is asked anew, as all that had not begun."""
        run = self.waiting()
        self.sync(self.runner.limits.pause(None, None, OPERATOR))
        self.renew()
        self.runner.check_changes()
        self.assertIs(self.state(run), RunState.AWAITING_CREDENTIAL)
        self.sync(self.runner.limits.resume(None, OPERATOR))
        self.assertIs(self.state(run), RunState.PENDING)

    def test_too_old(self) -> None:
        """A decision that was too long ago is asked anew, and not carried out."""
        run = self.waiting()
        self.clock.advance(25 * 3600)
        self.renew()
        self.runner.check_changes()
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.PENDING, []))

    def test_unsound(self) -> None:
        """For a decision that is none no credential is opened, let alone renewed."""
        run = self.waiting()
        self.sql("UPDATE approvals SET decision_mark = NULL WHERE run_id = ?", run.id)
        self.bindings.needing.clear()
        self.renew()
        self.runner.check_changes()
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.PENDING, []))

    def test_ungated(self) -> None:
        """An action that needs no approval does not wait: its caller is told at once, and nothing was sent."""
        run = self.submit("open")
        self.assertIs(self.state(run), RunState.FAILED)
        self.assertEqual((self.fault(run).kind, self.connector.sendings), ("binding_failed", []))

    def test_later(self) -> None:
        """A credential that ends after the run began is an outcome."""
        self.bindings.needing.clear()
        self.connector.script.append(CredentialNeedsYou("It needs your attention."))
        run = self.submit()
        self.approve(run)
        self.assertIs(self.state(run), RunState.FAILED)


class TransientTests(AwaitingCredentialCase):
    """A renewal that fails for now."""

    def test_begins(self) -> None:
        """The run begins, and its attempts are repeated as after any failure before something was sent."""
        self.bindings.needing.clear()
        self.connector.script += [NetworkError("The token endpoint is busy."), Outcome(output={"done": True})]
        run = self.submit()
        self.approve(run)
        self.assertIs(self.state(run), RunState.EXECUTING)
        self.clock.advance(1.0)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_raised_late(self) -> None:
        """So it is where that is found out while the attempt is under way."""
        self.bindings.needing.clear()
        renewing = self.unanswered()
        run = self.submit()
        self.approve(run)
        renewing.errback(NetworkError("The token endpoint is busy."))
        self.clock.advance(1.0)
        self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.COMPLETED, 2))

    def test_stopped(self) -> None:
        """A daemon that stops while a credential is renewed leaves the run approved."""
        self.bindings.needing.clear()
        self.patch(type(self.runner.submission._executor), "make_ready", lambda executor, plan, owner: Deferred())
        run = self.submit()
        self.approve(run)
        self.stop_late(1.0)
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.APPROVED, []))
