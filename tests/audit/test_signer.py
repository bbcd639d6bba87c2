"""Who answers for the record: through lives in which the vault is open, locked, or opened after an intruder came by."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.audit import CheckpointSigner, CommitObserver, KeyFile, fingerprint
from aileron.model.audit import DAEMON, Actor, Checkpoint
from aileron.model.errors import StoreUnavailable
from aileron.model.queries import AuditQuery
from aileron.model.runs import RunState
from aileron.store import Store
from aileron.testing import example_event, example_run, example_signer, example_transition, unopened_store
from aileron.vault import Vault
from tests.audit.kit import RecordCase
from tests.vault.case import VaultCase

T = TypeVar("T")
PERSON = Actor("human", "operator-1")


class LifeCase(VaultCase, RecordCase):
    """One home, and lives of the daemon in it."""

    shared = False

    def setUp(self) -> None:
        """No life yet."""
        VaultCase.setUp(self)
        RecordCase.setUp(self)
        self.database, self.key_path = Path(self.mktemp()), Path(self.mktemp())
        self.store: Store | None = None

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What it came to."""
        return self.successResultOf(Deferred.fromCoroutine(coroutine))

    def begin(self, unlocked: bool, *, whole: bool = True) -> CheckpointSigner:
        """Another life begins, whether or not the last one ended as planned.

        :param whole: whether it comes as far as to vouch for what it found, and to say that it has begun.
        """
        if self.store is not None:
            self.do(self.store.close())
        self.vault: Vault = self.unlocked() if unlocked else self.locked()
        self.observer = CommitObserver(KeyFile(self.key_path))
        self.observer.shared = self.shared
        self.store = unopened_store(self.database, self.clock, observer=self.observer)
        self.addCleanup(lambda store: self.do(store.close()), self.store)
        self.do(self.store.open())
        keys, control = self.vault.record_keys, self.vault
        self.checkpoint_signer = example_signer(self.store, keys, control, self.clock, self.observer)
        self.do(self.checkpoint_signer.open(unlocked))
        if whole:
            self.checkpoint_signer.vouch()
            self.do(self.checkpoint_signer.record_unlock())
        return self.checkpoint_signer

    def happen(self, *types: str, actor: Actor = DAEMON) -> None:
        """Put events on record."""
        assert self.store is not None
        self.do(self.store.audit.append(*(example_event(type_, actor=actor) for type_ in types)))

    def lock(self) -> None:
        """As the route does."""
        self.do(self.checkpoint_signer.record_lock())
        self.vault.lock()

    def types(self) -> list[str]:
        """Of all events, oldest first."""
        assert self.store is not None
        page = self.do(self.store.audit.list(AuditQuery(limit=1000)))
        return [record.event.type for record in reversed(page.items)]

    def told(self) -> list[str]:
        """What was found."""
        assert self.store is not None
        page = self.do(self.store.audit.list(AuditQuery(type="tamper.detected")))
        return [str(record.event.payload["found"]) for record in page.items]

    def last(self) -> int:
        """The sequence of the newest record."""
        assert self.store is not None
        head = self.do(self.store.audit.head())
        return 0 if head is None else head[0]

    def while_nobody_runs(self) -> None:
        """The daemon is killed."""
        assert self.store is not None
        self.do(self.store.close())


class OtherWriterTests(LifeCase):
    """Somebody writes to the record while the daemon runs."""

    def put_in(self) -> None:
        """Put a record behind the last one, as sound as any."""
        other = unopened_store(self.database)
        self.do(other.open())
        self.do(other.audit.append(example_event("approval.approved", actor=PERSON)))
        self.do(other.close())

    def test_told(self) -> None:
        """What was put in, or taken from the end, is noticed with the next record, told once, and not signed.

        What nobody was told of yet is told before the daemon ends.
        """
        for change in (self.put_in, self.cut):
            for ends in (True, False):
                signer = self.begin(unlocked=True)
                before = len(self.told())
                self.happen("a")
                own = self.last()
                change()
                self.do(signer.checkpoint())
                self.assertLessEqual(signer.latest.sequence if signer.latest else 0, own)
                self.happen("b", "c")
                if ends:
                    self.do(signer.close())
                else:
                    self.assertIsNotNone(signer.sign_if_due())
                    self.happen("d")
                    signer.sign_if_due()
                self.assertEqual(len(self.told()), before + 1)
                self.assertIn("another program wrote to the record", self.told()[0])

    def cut(self) -> int:
        """Take the newest record away; its number."""
        last = self.last()
        self.alter(self.database, "DELETE FROM audit_macs WHERE seq = ?", last)
        self.alter(self.database, "DELETE FROM audit_payloads WHERE seq = ?", last)
        self.alter(self.database, "DELETE FROM audit_events WHERE seq = ?", last)
        return last

    def test_cut_shows(self) -> None:
        """A look that the daemon takes itself finds what was cut off, before it writes again, signed or not.

        So it finds another record in the place of its newest one, as sound as any.
        """
        signer = self.begin(unlocked=True)
        self.assertEqual(signer.head, self.do(self.checkpoint_signer._audit.head()))
        self.happen("a", "b")
        self.assertTrue(self.do(signer.verify()).sound)
        last = self.cut()
        broken = self.do(signer.verify()).broken
        assert broken is not None
        self.assertEqual((broken.kind, broken.sequence), ("truncated", last))
        self.assertIn("this daemon", broken.why)
        self.put_in()
        broken = self.do(signer.verify()).broken
        assert broken is not None
        self.assertEqual(broken.kind, "rewritten")

    def test_cut_before_it_wrote(self) -> None:
        """A life knows where it found the record: what is cut off before it has written anything shows as well."""
        self.begin(unlocked=True)
        self.happen("a")
        signer = self.begin(unlocked=False)
        self.assertEqual(signer.head, self.do(self.checkpoint_signer._audit.head()))
        last = self.cut()
        broken = self.do(signer.verify()).broken
        assert broken is not None
        self.assertEqual((broken.kind, broken.sequence), ("truncated", last))
        self.happen("b")
        signer.sign_if_due()
        self.assertEqual(len(self.told()), 1)

    def test_alone(self) -> None:
        """Whatever is refused, undone and written again: where nobody else writes nothing is told."""
        signer = self.begin(unlocked=True)
        assert self.store is not None
        for _ in range(3):
            wrong = example_transition(example_run("nobody"), RunState.APPROVED)
            refused = Deferred.fromCoroutine(self.store.runs.apply(wrong))
            written = Deferred.fromCoroutine(self.store.audit.append(example_event("a"), example_event("b")))
            self.failureResultOf(refused)
            self.successResultOf(written)
            signer.sign_if_due()
        self.assertEqual((self.told(), self.observer.foreign_writes), ([], False))
        self.assertEqual(self.observer.end, self.do(self.store.audit.head()))


class SharedTests(LifeCase):
    """Several daemons write to one record."""

    shared = True

    def add_elsewhere(self, count: int = 1) -> None:
        """Have another daemon append records."""
        other = unopened_store(self.database)
        self.do(other.open())
        for _ in range(count):
            self.do(other.audit.append(example_event("approval.approved", actor=PERSON)))
        self.do(other.close())

    def newest(self) -> Checkpoint:
        assert self.store is not None
        found = self.do(self.store.archive.latest_checkpoint())
        assert found is not None
        return found

    def test_followed(self) -> None:
        """What other daemons wrote is verified and signed with one's own, and is no sign of tampering."""
        signer = self.begin(unlocked=True)
        self.happen("a")
        self.add_elsewhere(3)
        self.happen("b")
        self.add_elsewhere()
        self.do(signer.checkpoint())
        self.assertEqual((self.newest().sequence, self.told()), (self.last(), []))
        self.assertTrue(self.do(signer.verify()).sound)

    def test_broken(self) -> None:
        """A record that does not follow the one before is told once, and nothing is signed over it."""
        signer = self.begin(unlocked=True)
        self.add_elsewhere(3)
        signed = self.newest().sequence
        self.alter(self.database, "UPDATE audit_events SET type = 'x' WHERE seq = ?", self.last() - 1)
        for _ in range(2):
            self.failureResultOf(Deferred.fromCoroutine(signer.checkpoint()), StoreUnavailable)
        self.assertEqual((len(self.told()), self.newest().sequence), (1, signed))

    def test_replaced(self) -> None:
        """So is a record that this daemon knew and that is another one now."""
        signer = self.begin(unlocked=True)
        last = self.last()
        self.add_elsewhere()
        self.alter(self.database, "UPDATE audit_events SET hash = 'x' WHERE seq = ?", last)
        self.failureResultOf(Deferred.fromCoroutine(signer.checkpoint()), StoreUnavailable)
        self.assertIn("is not in the log", self.told()[0])

    def test_signed_elsewhere(self) -> None:
        """A checkpoint follows the newest one, of whichever daemon; one that another has just signed is left to it."""
        signer = self.begin(unlocked=True)
        self.happen("a")
        assert self.store is not None
        keys, latest = self.vault.record_keys, self.newest()
        head = self.do(self.store.audit.head())
        assert head is not None
        unsigned = Checkpoint(latest.vault, *head, "2026-01-01T00:00:00.000000Z", latest.digest, keys.make_key())
        elsewhere = evolve(unsigned, signature=keys.endorse(unsigned.statement()))
        self.assertTrue(self.do(self.store.archive.follow_checkpoint(elsewhere)))
        self.do(signer.checkpoint())
        self.assertEqual(self.newest(), elsewhere)
        self.happen("b")
        self.do(signer.checkpoint())
        self.assertEqual((self.newest().sequence, self.newest().previous), (self.last(), elsewhere.digest))
        self.assertTrue(self.do(signer.verify()).sound)

    def test_at_once(self) -> None:
        """If another daemon signs while this one does, this one follows that checkpoint."""
        signer = self.begin(unlocked=True)
        self.happen("a")
        assert self.store is not None
        archive, keys, latest = self.store.archive, self.vault.record_keys, self.newest()
        head = self.do(self.store.audit.head())
        assert head is not None
        unsigned = Checkpoint(latest.vault, *head, "2026-01-01T00:00:00.000000Z", latest.digest, keys.make_key())
        first = [evolve(unsigned, signature=keys.endorse(unsigned.statement()))]

        class Overtaken:
            def __getattr__(_, name: str) -> Any:
                return getattr(archive, name)

            async def follow_checkpoint(_, checkpoint: Checkpoint) -> bool:
                if first:
                    await archive.follow_checkpoint(first.pop())
                    self.happen("b")
                return await archive.follow_checkpoint(checkpoint)

        self.patch(signer, "_archive", Overtaken())
        self.do(signer.checkpoint())
        self.assertEqual(self.newest().sequence, self.last())
        self.assertTrue(self.do(signer.verify()).sound)

    def test_locked(self) -> None:
        """A daemon that is locked makes no MACs, as others write between its records, and signs nothing."""
        signer = self.begin(unlocked=True)
        self.lock()
        self.happen("a")
        self.assertEqual((self.observer.locked, self.vault.record_keys.public_key() is None), (False, False))
        self.assertIsNone(signer.sign_if_due())

    def test_alone_before(self) -> None:
        """The locked period of a daemon that was alone before is verified by the first of several."""
        self.shared = False
        self.begin(unlocked=True)
        self.lock()
        self.happen("a", "b")
        last = self.last()
        self.while_nobody_runs()
        self.alter(self.database, "DELETE FROM audit_macs WHERE seq = ?", last - 1)
        self.shared = True
        self.begin(unlocked=True)
        self.assertEqual(len(self.told()), 1)
        self.begin(unlocked=True)
        self.assertEqual((len(self.told()), self.vault.record_keys.locked_periods()), (1, ()))


class CheckpointTests(LifeCase):
    """When something is signed."""

    def checkpoints(self) -> list[int]:
        """What was signed so far."""
        assert self.store is not None
        return [each.sequence for each in self.do(self.store.archive.checkpoints())]

    def test_unlock_and_lock(self) -> None:
        """An unlock and a lock are signed, and sealed into the vault; the record verifies by the vault's key."""
        signer = self.begin(unlocked=True)
        self.assertEqual((self.types(), self.checkpoints()), (["vault.unlocked"], [1]))
        self.assertEqual(self.vault.sealed(), self.do(self.store.audit.head()))  # type: ignore[union-attr]
        self.do(signer.record_lock())
        self.do(signer.record_lock())
        self.assertEqual((self.types()[1:], self.checkpoints()), (["vault.locked"], [1, 2]))
        self.while_nobody_runs()
        key = signer.fingerprint
        assert key is not None
        found = self.verify(self.database, keys=[key])
        self.assertEqual((found.sound, found.covered), (True, 2))
        self.assertEqual(key, fingerprint(found.keys[0]))

    def test_decisions(self) -> None:
        """What a person did is signed at the next look, at most once a second; what an agent did waits for the hour."""
        signer = self.begin(unlocked=True)
        self.happen("execution.succeeded")
        self.assertIsNone(signer.sign_if_due())
        self.happen("approval.approved", actor=PERSON)
        self.happen("approval.denied", actor=PERSON)
        self.assertIsNotNone(signer.sign_if_due())
        self.assertIsNone(signer.sign_if_due())
        self.assertEqual(self.checkpoints(), [1, 4])
        self.happen("execution.succeeded")
        self.clock.advance(3600)
        self.assertIsNotNone(signer.sign_if_due())
        self.assertEqual(self.checkpoints(), [1, 4, 5])

    def test_end(self) -> None:
        """A planned stop signs what was last, and nothing twice; a life that failed before it had begun signs nothing.

        Nor does one that begins locked.
        """
        signer = self.begin(unlocked=True)
        self.happen("execution.succeeded")
        self.do(signer.close())
        self.clock.advance(3600)
        signer.sign_if_due()
        self.assertEqual(self.checkpoints(), [1, 2])
        signer = self.begin(unlocked=True, whole=False)
        sealed = self.vault.sealed()
        self.do(signer.close())
        self.assertEqual((self.checkpoints(), self.vault.sealed()), ([1, 2], sealed))
        signer = self.begin(unlocked=False)
        self.happen("approval.requested", actor=PERSON)
        self.clock.advance(3600)
        self.assertIsNone(signer.sign_if_due())
        self.assertEqual(self.checkpoints(), [1, 2])

    def test_sealed_further(self) -> None:
        """What was sealed further meanwhile, when a grant was used, stays sealed."""
        signer = self.begin(unlocked=True)
        self.happen("execution.succeeded")
        self.vault.seal(100, "later")
        self.do(signer.checkpoint())
        self.assertEqual((self.checkpoints(), self.vault.sealed()), ([1, 2], (100, "later")))

    def test_not_left_out(self) -> None:
        """A decision that could not be signed is, as soon as it can be."""
        signer = self.begin(unlocked=True)
        self.happen("approval.approved", actor=PERSON)
        fsync = os.fsync
        self.fill_disk()
        self.successResultOf(signer.sign_if_due())  # type: ignore[arg-type]
        self.assertNotEqual(self.vault.sealed(), self.do(self.store.audit.head()))  # type: ignore[union-attr]
        self.patch(os, "fsync", fsync)
        self.assertIsNone(signer.sign_if_due())
        self.clock.advance(10)
        self.successResultOf(signer.sign_if_due())  # type: ignore[arg-type]
        self.assertEqual(self.vault.sealed(), self.do(self.store.audit.head()))  # type: ignore[union-attr]


class StretchTests(LifeCase):
    """What is written while the vault is locked, looked at when it is opened."""

    def setUp(self) -> None:
        """A life with an open vault that is locked, and three things that happen then."""
        super().setUp()
        self.begin(unlocked=True)
        self.happen("before")
        self.lock()
        self.happen("one", "two")
        self.happen("three")

    def test_sound(self) -> None:
        """What nobody touched is told to be sound, across lives and crashes."""
        self.begin(unlocked=False)
        self.happen("four")
        self.begin(unlocked=False)
        self.happen("five")
        self.begin(unlocked=True)
        self.assertEqual(self.told(), [])
        self.happen("unlocked")
        self.begin(unlocked=False)  # it was killed: the period that was put aside begins
        self.happen("six")
        self.begin(unlocked=True)
        self.assertEqual(self.told(), [])

    def test_signed_by_nobody(self) -> None:
        """Every record from the lock on has a MAC, and no other one."""
        assert self.store is not None
        macs = self.do(self.store.archive.macs(0, 100))
        types = self.types()
        self.assertEqual([types[each.sequence - 1] for each in macs if each.mac], types[2:])
        self.assertEqual(types[2], "vault.locked")

    def test_altered(self) -> None:
        """A record that was altered and sealed anew to the end, by who read the evolved key, is found, and named."""
        for number in range(3, self.last() + 1):
            with self.subTest(number=number):
                self.setUp()
                self.while_nobody_runs()
                self.rewrite_from(number)
                self.assertTrue(self.verify(self.database).sound)
                self.begin(unlocked=True)
                (found,) = self.told()
                self.assertIn(f"Record {number} was altered", found)
                self.assertEqual(self.checkpoint_signer.tampered, 1)

    def test_old_key(self) -> None:
        """A key that was copied earlier, put back with the records cut to it, opens the future only, not what was lost.

        Who had that copy could have forged what came after it; so much is true of any key.
        """
        earlier = self.key_path.read_bytes()
        self.happen("four")
        self.while_nobody_runs()
        self.key_path.write_bytes(earlier)
        self.begin(unlocked=True)
        self.assertEqual(self.told(), [])

    def test_damage(self) -> None:
        """What was put in or cut off, and MACs or a key that are gone or another's, are found, and told once."""
        for damage, words in (
            (lambda: self.forge(self.database, self.last_of_file() + 1), "was put in"),
            (self.cut_file, "1 records that were written last"),
            (lambda: self.alter(self.database, "DELETE FROM audit_macs"), ""),
            (self.key_path.unlink, "is gone, or another's"),
            (lambda: self.key_path.write_bytes(b"x" * 512), "is gone, or another's"),
        ):
            before = len(self.told())
            self.while_nobody_runs()
            damage()
            self.begin(unlocked=True)
            self.begin(unlocked=True)
            self.assertEqual(len(self.told()), before + 1)
            self.assertIn(words, self.told()[0])
            self.lock()
            self.happen("later", "and later")

    def test_another_key(self) -> None:
        """Neither the key of an earlier locked period, nor that which lay ready, stands in for what the lock drew."""
        earlier = self.key_path.read_bytes()
        state = KeyFile(self.key_path).load()
        assert state is not None
        (period,) = self.unlocked().record_keys.locked_periods()
        self.assertNotEqual(state.key, period.key)
        self.assertEqual(state.index, 4)
        self.begin(unlocked=True)
        aside = self.key_path.read_bytes()
        for key in (earlier, aside):
            self.lock()
            self.happen("lost")
            self.while_nobody_runs()
            self.cut_file()
            self.key_path.write_bytes(key)
            self.begin(unlocked=True)
            self.assertIn("is gone, or another's", self.told()[0])

    def test_crash_before_the_key(self) -> None:
        """A crash between the commit and the key's file leaves the file behind; the next life catches up."""
        earlier = self.key_path.read_bytes()
        self.happen("four", "five")
        self.key_path.write_bytes(earlier)
        self.begin(unlocked=False)
        self.happen("six")
        self.begin(unlocked=True)
        self.assertEqual(self.told(), [])

    def test_crash_while_handing_over(self) -> None:
        """Wherever an unlock ends between its writes, once or twice, the next one finds nothing that is not there."""
        for again in (1, 2):
            for survived in range(8):
                with self.subTest(survived=survived, again=again):
                    self.setUp()
                    for _ in range(again):
                        self.crash_at_unlock(survived)
                    self.begin(unlocked=True)
                    self.assertEqual(self.told(), [])
                    self.while_nobody_runs()
                    self.assertTrue(self.verify(self.database).sound)

    def crash_at_unlock(self, survived: int) -> None:
        """A life that ends after so many durable writes of its own."""
        left, fsync = [survived], os.fsync

        def sync(descriptor: int) -> None:
            if not left[0]:
                raise OSError("crash")
            left[0] -= 1
            fsync(descriptor)

        self.patch(os, "fsync", sync)
        try:
            self.begin(unlocked=True)
        except (OSError, StoreUnavailable, self.failureException):
            left[0] = 1000
        left[0] = 1000

    def last_of_file(self) -> int:
        """The sequence of the newest record, without a daemon."""
        return self.verify(self.database).last

    def rewrite_from(self, number: int) -> None:
        """Alter one record behind the last checkpoint, and seal all that follow it anew."""
        self.alter(self.database, "DELETE FROM audit_checkpoints WHERE seq >= ?", number)
        last = self.last_of_file()
        for table in ("audit_payloads", "audit_events"):
            self.alter(self.database, f"DELETE FROM {table} WHERE seq >= ?", number)
        for each in range(number, last + 1):
            self.forge(self.database, each)

    def cut_file(self) -> None:
        """Take the newest record away."""
        last = self.last_of_file()
        for table in ("audit_macs", "audit_payloads", "audit_events"):
            self.alter(self.database, f"DELETE FROM {table} WHERE seq = ?", last)
