"""Who answers for the record: through lives in which the vault is open, locked, or opened after an intruder came by."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

from aileron.audit import GENESIS, CheckpointSigner, CommitObserver, KeyFile, fingerprint, payload_digest, seal
from aileron.errors import StoreUnavailable
from aileron.store import Store
from aileron.testing import example_event, example_run, example_signer, example_transition, unopened_store
from aileron.values import DAEMON, Actor, AuditQuery, ChainLink, Event, RunState
from aileron.vault import Vault
from tests.audit.kit import RecordCase
from tests.vault.case import VaultCase

T = TypeVar("T")
PERSON = Actor("human", "operator-1")


class _CrashError(Exception):
    """The process ends here."""


class LifeCase(VaultCase, RecordCase):
    """One home, and lives of the daemon in it."""

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
        self.store = unopened_store(self.database, self.clock, observer=self.observer)
        self.addCleanup(lambda store: self.do(store.close()), self.store)
        self.do(self.store.open())
        keys, control = self.vault.record_keys, self.vault
        self.checkpoint_signer = example_signer(self.store, keys, control, self.clock, self.observer)
        self.do(self.checkpoint_signer.open(unlocked))
        if whole:
            self.checkpoint_signer.vouch()
            self.do(self.checkpoint_signer.tell_unlocked())
        return self.checkpoint_signer

    def happen(self, *types: str, actor: Actor = DAEMON) -> None:
        """Put events on record."""
        assert self.store is not None
        self.do(self.store.audit.append(*(example_event(type_, actor=actor) for type_ in types)))

    def lock(self) -> None:
        """As the route does."""
        self.do(self.checkpoint_signer.tell_locked())
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
        """What was put in is noticed with the next record, and told once."""
        signer = self.begin(unlocked=True)
        self.happen("a")
        self.put_in()
        self.happen("b", "c")
        self.assertIsNotNone(signer.sign_if_due())
        self.happen("d")
        signer.sign_if_due()
        (found,) = self.told()
        self.assertIn("another program wrote to the record", found)

    def test_taken_away(self) -> None:
        """So is what was taken from its end."""
        signer = self.begin(unlocked=True)
        self.happen("a")
        self.alter(self.database, "DELETE FROM audit_payloads WHERE seq = ?", self.last())
        self.alter(self.database, "DELETE FROM audit_events WHERE seq = ?", self.last())
        self.happen("b")
        signer.sign_if_due()
        self.assertEqual(len(self.told()), 1)

    def test_at_the_end(self) -> None:
        """What nobody was told of yet is told before the daemon ends."""
        signer = self.begin(unlocked=True)
        self.put_in()
        self.happen("b")
        self.do(signer.close())
        self.assertEqual(len(self.told()), 1)

    def cut(self) -> int:
        """Take the newest record away; its number."""
        last = self.last()
        self.alter(self.database, "DELETE FROM audit_macs WHERE seq = ?", last)
        self.alter(self.database, "DELETE FROM audit_payloads WHERE seq = ?", last)
        self.alter(self.database, "DELETE FROM audit_events WHERE seq = ?", last)
        return last

    def test_cut_shows(self) -> None:
        """A look that the daemon takes itself finds what was cut off, before it writes again, signed or not."""
        signer = self.begin(unlocked=True)
        self.happen("a", "b")
        self.assertTrue(self.do(signer.verify()).sound)
        last = self.cut()
        broken = self.do(signer.verify()).broken
        assert broken is not None
        self.assertEqual((broken.kind, broken.sequence), ("truncated", last))
        self.assertIn("this daemon", broken.why)

    def test_rewritten_shows(self) -> None:
        """So it finds another record in the place of its newest one, as sound as any."""
        signer = self.begin(unlocked=True)
        self.happen("a", "b")
        self.cut()
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

    def test_head(self) -> None:
        """What the daemon knows as its newest record is the newest one, and none where there is none."""
        signer = self.begin(unlocked=False)
        self.assertIsNone(signer.head)
        self.happen("a", "b")
        assert self.store is not None
        self.assertEqual(signer.head, self.do(self.store.audit.head()))
        self.put_in()
        self.assertEqual((signer.head or (0, ""))[0], 2)

    def test_not_signed(self) -> None:
        """What another put behind the last record is not signed with it."""
        signer = self.begin(unlocked=True)
        self.happen("a")
        own = self.last()
        self.put_in()
        self.do(signer.checkpoint())
        self.assertEqual(signer.latest.sequence if signer.latest else 0, own)

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
        self.do(signer.tell_locked())
        self.do(signer.tell_locked())
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

    def test_stop(self) -> None:
        """A planned stop signs what was last."""
        signer = self.begin(unlocked=True)
        self.happen("execution.succeeded")
        self.do(signer.close())
        self.assertEqual(self.checkpoints(), [1, 2])

    def test_failed_start(self) -> None:
        """A life that fails before it has begun signs and seals nothing: it may not have looked at what lies there."""
        self.begin(unlocked=True)
        self.happen("execution.succeeded")
        signer = self.begin(unlocked=True, whole=False)
        sealed = self.vault.sealed()
        self.do(signer.close())
        self.assertEqual((self.checkpoints(), self.vault.sealed()), ([1], sealed))

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

    def test_nothing_new(self) -> None:
        """Where nothing happened nothing is signed again."""
        signer = self.begin(unlocked=True)
        self.do(signer.checkpoint())
        self.clock.advance(3600)
        signer.sign_if_due()
        self.assertEqual(self.checkpoints(), [1])

    def test_locked(self) -> None:
        """A life that begins locked signs nothing."""
        self.begin(unlocked=True)
        signer = self.begin(unlocked=False)
        self.happen("approval.requested", actor=PERSON)
        self.clock.advance(3600)
        self.assertIsNone(signer.sign_if_due())
        self.assertEqual(self.checkpoints(), [1])


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

    def test_inserted(self) -> None:
        """A record that was put in at the end, without its key, is found."""
        number = self.last() + 1
        self.while_nobody_runs()
        self.forge(number)
        self.begin(unlocked=True)
        self.assertIn(f"Record {number} was put in", self.told()[0])

    def test_cut_off(self) -> None:
        """Records that were cut off at the end are missed: their keys were used, and are gone."""
        self.while_nobody_runs()
        last = self.last_of_file()
        for table in ("audit_macs", "audit_payloads", "audit_events"):
            self.alter(self.database, f"DELETE FROM {table} WHERE seq = ?", last)
        self.begin(unlocked=True)
        self.assertIn("1 records that were written last", self.told()[0])

    def test_macs_removed(self) -> None:
        """To take the MACs away is no way out."""
        self.while_nobody_runs()
        self.alter(self.database, "DELETE FROM audit_macs")
        self.begin(unlocked=True)
        self.assertEqual(len(self.told()), 1)

    def test_key_gone(self) -> None:
        """Nor is it to take the key away, or to write another."""
        for spoilt in (None, b"x" * 512):
            self.setUp()
            self.while_nobody_runs()
            self.key_path.unlink()
            if spoilt is not None:
                self.key_path.write_bytes(spoilt)
            self.begin(unlocked=True)
            self.assertIn("is gone, or another's", self.told()[0])

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

    def test_earlier_period(self) -> None:
        """The key of a locked period that is over does not stand in for that of the next."""
        earlier = self.key_path.read_bytes()
        self.begin(unlocked=True)
        self.lock()
        self.happen("later")
        self.while_nobody_runs()
        self.key_path.write_bytes(earlier)
        self.begin(unlocked=True)
        self.assertIn("is gone, or another's", self.told()[0])

    def test_key_that_was_put_aside(self) -> None:
        """The key that lies ready while the vault is open does not stand in for that which the lock drew."""
        self.begin(unlocked=True)
        aside = self.key_path.read_bytes()
        self.lock()
        self.happen("lost")
        self.while_nobody_runs()
        last = self.last_of_file()
        for table in ("audit_macs", "audit_payloads", "audit_events"):
            self.alter(self.database, f"DELETE FROM {table} WHERE seq = ?", last)
        self.key_path.write_bytes(aside)
        self.begin(unlocked=True)
        self.assertIn("is gone, or another's", self.told()[0])

    def test_told_once(self) -> None:
        """What was found is told once; the next unlock begins with what is there."""
        self.while_nobody_runs()
        self.key_path.unlink()
        self.begin(unlocked=True)
        self.begin(unlocked=True)
        self.assertEqual(len(self.told()), 1)

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

    def test_no_first_key(self) -> None:
        """The key that lies there is not the one that the locked period began with."""
        state = KeyFile(self.key_path).load()
        assert state is not None
        (period,) = self.unlocked().record_keys.locked_periods()
        self.assertNotEqual(state.key, period.key)
        self.assertEqual(state.index, 4)

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
            self.forge(each)

    def forge(self, number: int) -> None:
        """Put in a record that follows the one before it as it should."""
        found = self.verify(self.database)
        before = GENESIS if number == 1 else found.head
        event: Event = example_event(f"forged-{number}")
        link = ChainLink(number, event, payload_digest("s", "{}"))
        actor, at = event.actor, "2026-01-01T00:00:00.000000Z"
        row = (number, event.id, event.type, at, actor.type, actor.id, link.payload_digest, before)
        names = "seq, id, type, at, actor_type, actor_id, payload_digest, prev_hash, hash"
        sealed = seal(before, ChainLink(number, _plain(event), link.payload_digest))
        values = ", ".join("?" * 9)
        self.alter(self.database, f"INSERT INTO audit_events ({names}) VALUES ({values})", *row, sealed)
        self.alter(self.database, "INSERT INTO audit_payloads (seq, salt, payload) VALUES (?, 's', '{}')", number)


def _plain(event: Event) -> Event:
    return Event(event.id, event.type, datetime(2026, 1, 1, tzinfo=UTC), event.actor)
