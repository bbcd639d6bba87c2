"""A start notices that the record, or the vault, was put back to what it was before."""

from __future__ import annotations

from aileron.errors import StoreUnavailable
from aileron.runner import remember_older
from aileron.values import AuditQuery, Record, Run, RunState, TrustKind, VaultState

from .kit import OPERATOR, RunnerCase

_OLD_VAULT = "The vault is older than what was done with it."
_OLD_RECORD = "The record is not the one that the vault sealed."


class FreshnessCase(RunnerCase):
    """A home of which copies are made and put back."""

    def alarms(self) -> list[Record]:
        """What was found of the home, oldest first."""
        found = self.sync(self.store.audit.list(AuditQuery(type="tamper.detected"))).items
        return [record for record in reversed(found) if record.event.run_id is None]

    def found(self) -> list[object]:
        """What was found, of each start."""
        return [record.event.payload["found"] for record in self.alarms()]

    def done(self) -> Run:
        """A gated run that was carried out."""
        run = self.submit()
        self.approve(run)
        self.assertIs(self.state(run), RunState.COMPLETED)
        return run


class RecordTests(FreshnessCase):
    """The record that the vault sealed."""

    def test_put_back(self) -> None:
        """With an older database every approved run is asked about anew; it is told once, and trust stays."""
        run = self.held()
        copy = self.copied()
        self.restart()
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.put_back(copy)
        self.restart()
        self.assertEqual(self.found(), [[_OLD_RECORD]])
        self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.PENDING, 1))
        self.assertEqual(self.shown(run).stale, _OLD_RECORD)
        self.assertEqual(set(self.runner.submission.offering().offers), {"gated", "open"})
        self.next_life()
        self.assertEqual(len(self.alarms()), 1)

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

    def test_altered(self) -> None:
        """A record that is as long but another is found."""
        self.done()
        sequence, _ = self.control.sealed() or (0, "")
        self.control.seal(sequence, "sha256:another")
        self.next_life()
        self.assertEqual(self.found(), [[_OLD_RECORD]])

    def test_new_database(self) -> None:
        """A database that was deleted does not reach what the vault sealed."""
        self.done()
        self.sync(self.runner.stop(1.0))
        self.sync(self.store.close())
        self.database.unlink()
        self.store = self.open_store()
        self.restart()
        self.assertEqual(self.found(), [[_OLD_RECORD]])

    def test_locked(self) -> None:
        """While locked nothing can be compared; the next life with the vault open does it."""
        self.done()
        self.sync(self.runner.stop(1.0))
        self.control._sealed = (10_000, "sha256:more")
        self.unlock_anew(VaultState.LOCKED)
        self.restart()
        self.assertEqual(self.alarms(), [])
        self.unlock_anew()
        self.restart()
        self.assertEqual(self.found(), [[_OLD_RECORD]])

    def test_away_at_the_start(self) -> None:
        """Where the vault's file was away at the start it is compared when it is back, in the same life."""
        self.done()
        self.sync(self.runner.stop(1.0))
        self.control._sealed = (10_000, "sha256:more")
        self.vault._state = VaultState.LOST
        self.restart()
        self.assertEqual(self.alarms(), [])
        self.vault._state = VaultState.UNLOCKED
        self.runner.look()
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
        self.assertEqual(len(self.alarms()), 1)

    def test_written_meanwhile(self) -> None:
        """What a start writes to an older vault before it is looked at makes it no newer; the newest stays so."""
        for older, alarms in ((0, 0), (1, 1), (0, 1)):
            self.sync(self.runner.stop(1.0))
            self.control.file_revision -= older
            self.sync(remember_older(self.control, self.store.watermarks))
            self.control.file_revision += 2
            self.restart()
            self.assertEqual(self.found(), [[_OLD_VAULT]] * alarms)

    def test_failed_start(self) -> None:
        """Nor does a start that failed before it could tell, and remembered nothing."""
        self.done()
        self.sync(self.runner.stop(1.0))
        self.control.file_revision -= 1
        self.sync(remember_older(self.control, self.store.watermarks))
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

    def test_noted_while_running(self) -> None:
        """How far the vault has come is remembered soon after each of its writes, not only at the end of a life."""
        self.done()
        self.runner.look()
        watermarks = self.sync(self.store.watermarks.all())
        self.assertEqual(watermarks["vault memory"].split()[0], str(self.control.file_revision))

    def test_noted_after_trust(self) -> None:
        """It is remembered before the operator is told that something is trusted."""
        self.control.file_revision = 7
        self.sync(self.runner.trust.distrust(TrustKind.ACTION, "open", OPERATOR))
        self.assertEqual(self.sync(self.store.watermarks.all())["vault memory"].split()[0], "7")

    def test_noted_when_it_can_be(self) -> None:
        """What cannot be written now is written at a later look."""
        self.control.file_revision = 7
        self.refuse()
        self.runner.look()
        self.relent()
        self.flushLoggedErrors(StoreUnavailable)
        self.runner.look()
        self.assertEqual(self.sync(self.store.watermarks.all())["vault memory"].split()[0], "7")

    def test_garbled(self) -> None:
        """What cannot be read of what was remembered is taken for the worst."""
        for number, garbled in enumerate(("a lot", "9" * 5000 + " 0", "0 " + "9" * 5000), 1):
            self.sync(self.store.watermarks.put("vault memory", garbled))
            self.restart()
            self.assertEqual(self.found(), [[_OLD_VAULT]] * number)

    def test_replaced(self) -> None:
        """Another vault is recorded, once, and alarms nobody; what was approved under the earlier one is asked anew."""
        run = self.held()
        self.control.vault_id, self.control.file_revision = "another", 1
        self.control.change_key()
        self.restart()
        self.next_life()
        replaced = self.sync(self.store.audit.list(AuditQuery(type="vault.replaced"))).items
        self.assertEqual([each.event.payload for each in replaced], [{"before": "memory", "now": "another"}])
        self.assertEqual((self.alarms(), self.state(run)), ([], RunState.PENDING))
        self.assertIn("earlier key", self.shown(run).stale or "")

    def test_returned(self) -> None:
        """A vault that was replaced and comes back is an older one."""
        self.sync(self.runner.stop(1.0))
        self.control.vault_id = "another"
        self.restart()
        self.sync(self.runner.stop(1.0))
        self.control.vault_id = "memory"
        self.control.file_revision += 100
        self.restart()
        self.assertEqual(self.found(), [[_OLD_VAULT]])
