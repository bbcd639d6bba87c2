"""A start notices that the record, or the vault, was put back to what it was before."""

from __future__ import annotations

from aileron.model.errors import StoreUnavailable
from aileron.model.runs import Run, RunState
from aileron.model.trust import TrustKind
from aileron.model.vault import VaultState
from aileron.runner import remember_older

from .kit import OPERATOR, RunnerCase

_OLD_VAULT = "The vault is older than what was done with it."
_OLD_RECORD = "The record is not the one that the vault sealed."


class FreshnessCase(RunnerCase):
    """A home of which copies are made and put back."""

    def found(self) -> list[object]:
        """What was found of the home, at each start, oldest first."""
        return [event.payload["found"] for event in self.recorded("tamper.detected") if event.run_id is None]

    def done(self) -> Run:
        """A gated run that was carried out."""
        run = self.submit()
        self.approve(run)
        self.assertIs(self.state(run), RunState.COMPLETED)
        return run


class RecordTests(FreshnessCase):
    """The record that the vault sealed."""

    def test_awaiting(self) -> None:
        """What waits for the vault is asked about anew likewise."""
        self.done()
        copy = self.copied()
        waiting = self.approved_and_locked()
        later = self.copied()
        self.put_back(copy)
        self.put_back(later)
        self.unlock_anew()
        self.control.seal(10_000, "sha256:of another record")
        self.restart()
        self.assertIs(self.state(waiting), RunState.PENDING)

    def test_another(self) -> None:
        """A record that is as long but another, or that does not reach what the vault sealed, is found."""
        self.done()
        sequence, _ = self.control.sealed() or (0, "")
        self.control.seal(sequence, "sha256:another")
        self.next_life()
        self.assertEqual(self.found(), [[_OLD_RECORD]])
        self.sync(self.runner.stop(1.0))
        self.sync(self.store.close())
        self.database.unlink()
        self.store = self.open_store()
        self.restart()
        self.assertEqual(self.found(), [[_OLD_RECORD]])

    def test_compared_later(self) -> None:
        """While the vault is locked or away nothing can be compared; it is as soon as it is open, or back."""
        for state in (VaultState.LOCKED, VaultState.LOST):
            self.setUp()
            self.done()
            self.sync(self.runner.stop(1.0))
            self.control._sealed = (10_000, "sha256:more")
            self.unlock_anew(state)
            self.restart()
            self.assertEqual(self.found(), [])
            self.vault._state = VaultState.UNLOCKED
            if state is VaultState.LOCKED:
                self.restart()
            self.runner.check_changes()
            self.assertEqual(self.found(), [[_OLD_RECORD]])


class VaultTests(FreshnessCase):
    """The vault that the database remembers."""

    def test_put_back(self) -> None:
        """With an older vault all trust is void and every approved run asked about anew; it is told once."""
        self.done()
        run = self.held()
        self.sync(self.runner.stop(1.0))
        self.control.file_revision -= 1
        self.restart()
        self.assertEqual(self.found(), [[_OLD_VAULT]])
        self.assertEqual((self.trust.trusted(), self.runner.submission.offering().offers), ((), {}))
        self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.PENDING, 1))
        self.next_life()
        self.assertEqual(len(self.found()), 1)

    def test_written_meanwhile(self) -> None:
        """What a start writes to an older vault before it is looked at makes it no newer; the newest stays so."""
        for older, alarms in ((0, 0), (1, 1), (0, 1)):
            self.sync(self.runner.stop(1.0))
            self.control.file_revision -= older
            self.sync(remember_older(self.control, self.store.watermarks, self.refresh_vault))
            self.control.file_revision += 2
            self.restart()
            self.assertEqual(self.found(), [[_OLD_VAULT]] * alarms)

    def test_failed_start(self) -> None:
        """Nor does a start that failed before it could tell, and remembered nothing."""
        self.done()
        self.sync(self.runner.stop(1.0))
        self.control.file_revision -= 1
        self.sync(remember_older(self.control, self.store.watermarks, self.refresh_vault))
        self.control.file_revision += 2
        self.refuse()
        failing = self.build()
        self.failureResultOf(self.later(failing.start()), StoreUnavailable)
        self.relent()
        self.sync(failing.stop(1.0))
        self.restart()
        self.assertEqual(self.found(), [[_OLD_VAULT]])

    def test_newer_after_older(self) -> None:
        """After an older vault was met, the newer one, put back in turn, is the older: it knows less."""
        self.done()
        self.sync(self.runner.stop(1.0))
        sealed, revision = self.control.sealed(), self.control.file_revision
        self.control.file_revision = 1
        self.restart()
        self.sync(self.runner.stop(1.0))
        self.control._sealed, self.control.file_revision = sealed, revision + 100
        self.restart()
        self.assertEqual(self.found(), [[_OLD_VAULT]] * 2)

    def noted(self) -> str:
        """How far the vault has come, as it is remembered."""
        return self.sync(self.store.watermarks.all())["vault memory"].split()[0]

    def test_noted(self) -> None:
        """How far the vault has come is remembered soon after each write, and before trust is confirmed.

        What cannot be written now is written at a later look.
        """
        self.done()
        self.runner.check_changes()
        self.assertEqual(self.noted(), str(self.control.file_revision))
        self.control.file_revision = 70
        self.sync(self.runner.trust.distrust(TrustKind.ACTION, "open", OPERATOR))
        self.assertEqual(self.noted(), "70")
        self.control.file_revision = 71
        self.refuse()
        self.runner.check_changes()
        self.relent()
        self.flushLoggedErrors(StoreUnavailable)
        self.runner.check_changes()
        self.assertEqual(self.noted(), "71")

    def test_garbled(self) -> None:
        """What cannot be read of what was remembered is taken for the worst."""
        for number, garbled in enumerate(("a lot", "9" * 5000 + " 0", "0 " + "9" * 5000), 1):
            self.sync(self.store.watermarks.put("vault memory", garbled))
            self.restart()
            self.assertEqual(self.found(), [[_OLD_VAULT]] * number)

    def test_replaced(self) -> None:
        """Another vault is recorded, once, and alarms nobody; what was approved under the earlier one is asked anew.

        The earlier vault, where it comes back, is an older one.
        """
        run = self.held()
        self.control.vault_id, self.control.file_revision = "another", 1
        self.control.change_key()
        self.restart()
        self.next_life()
        replaced = self.recorded("vault.replaced")
        self.assertEqual([each.payload for each in replaced], [{"before": "memory", "now": "another"}])
        self.assertEqual((self.found(), self.state(run)), ([], RunState.PENDING))
        self.assertIn("earlier vault key", self.shown(run).stale or "")
        self.sync(self.runner.stop(1.0))
        self.control.vault_id, self.control.file_revision = "memory", 200
        self.restart()
        self.assertEqual(self.found(), [[_OLD_VAULT]])
