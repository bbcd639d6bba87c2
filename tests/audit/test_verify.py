"""Whatever is done to a record is found, and the first record that it was done to is named."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from shutil import copyfile

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import GENESIS, PRUNED, Verification, fingerprint, payload_digest, seal
from aileron.audit._chain import ChainVerifier
from aileron.base.json import compact, timestamp, utc
from aileron.model.audit import DAEMON, Actor, ChainLink, Event, Row
from aileron.store.copy import open_copy
from aileron.testing import example_event, unopened_store
from tests.audit.kit import RecordCase, Signer

COUNT = 6
COLUMNS = ("id", "type", "actor_id", "run_id", "session_id", "action", "connector", "failure_class")
TEXTS = st.text(max_size=8, alphabet=st.characters(codec="utf-8"))
MAYBE = st.none() | TEXTS


class FormTests(SynchronousTestCase):
    """The fast way along the chain."""

    @settings(deadline=None, max_examples=60)
    @given(TEXTS, TEXTS, TEXTS, st.lists(MAYBE, min_size=5, max_size=5), st.integers(0, 2**31))
    def test_same_form(self, id_: str, type_: str, actor: str, about: list[str | None], seconds: int) -> None:
        """It hashes what was sealed, whatever the texts are."""
        event = Event(id_, type_, utc(seconds), Actor("agent", actor), {"a": id_}, *about)
        text = compact(event.payload)
        link = ChainLink(1, event, payload_digest("salt", text))
        row: Row = (1, id_, type_, timestamp(event.at), "agent", actor, *about, link.payload_digest)
        self.assertEqual(ChainVerifier().follow([(*row, GENESIS, seal(GENESIS, link), "salt", text)]), 1)

    def test_no_quote_moves_a_border(self) -> None:
        """Text that was moved from one column to the next has another hash."""
        event = Event("i", "t", utc(0), DAEMON, action='a","actor_id":"x')
        link = ChainLink(1, event, payload_digest("s", "{}"))
        moved: Row = (1, "i", "t", timestamp(event.at), "service", "aileron", None, None, "a", None, None)
        self.assertEqual(
            ChainVerifier().follow([(*moved, link.payload_digest, GENESIS, seal(GENESIS, link), "s", "{}")]), 0
        )

    def test_excuse_that_is_no_json(self) -> None:
        """Contents that say what was deleted, and are no JSON, excuse nothing; the record itself holds."""
        for text in ("no JSON", "[" * 100_000, "[1]"):
            event = Event("i", PRUNED, utc(0), DAEMON)
            link = ChainLink(1, event, payload_digest("s", text))
            row: Row = (1, "i", PRUNED, timestamp(event.at), "service", "aileron", None, None, None, None, None)
            chain = ChainVerifier()
            self.assertEqual(chain.follow([(*row, link.payload_digest, GENESIS, seal(GENESIS, link), "s", text)]), 1)
            self.assertEqual(chain.excused, 0)


class TamperTests(RecordCase):
    """Each kind of damage at each place."""

    def setUp(self) -> None:
        """A record whose fourth has a checkpoint."""
        super().setUp()
        self.original = self.write(COUNT, (4,))

    def fresh(self) -> Path:
        """A copy to spoil."""
        path = Path(self.mktemp())
        copyfile(self.original, path)
        return path

    def test_sound(self) -> None:
        """What nobody touched holds, and it is told how far the checkpoints answer for it."""
        found = self.verify(self.original)
        self.assertEqual((found.sound, found.last, found.checkpoints, found.covered), (True, COUNT, 1, 4))
        self.assertEqual(found.keys, (self.signer.public,))

    def test_altered(self) -> None:
        """A changed column of any record, its contents or its salt is found at that record."""
        columns = (*COLUMNS, "at", "payload_digest", "hash", "prev_hash")
        places = [("audit_events", each) for each in columns] + [
            ("audit_payloads", each) for each in ("payload", "salt")
        ]
        for number in range(1, COUNT + 1):
            for table, column in places:
                path = self.fresh()
                self.alter(path, f"UPDATE {table} SET {column} = 'forged' WHERE seq = ?", number)
                why = self.broken(path, "altered", number)
                self.assertEqual(table == "audit_payloads", "contents" in why, why)

    def test_removed(self) -> None:
        """A record that is missing in the middle is named, also where its followers were moved up; so are contents."""
        for number in range(1, COUNT):
            path = self.fresh()
            self.alter(path, "DELETE FROM audit_payloads WHERE seq = ?", number)
            self.broken(path, "removed", number)
            self.alter(path, "DELETE FROM audit_events WHERE seq = ?", number)
            self.broken(path, "removed", number)
            for table in ("audit_events", "audit_payloads"):
                for later in range(number + 1, COUNT + 1):
                    self.alter(path, f"UPDATE {table} SET seq = ? WHERE seq = ?", later - 1, later)
            self.broken(path, "removed", number)

    def test_reordered(self) -> None:
        """Two neighbours that changed places are found at the first."""
        for number in range(1, COUNT):
            path = self.fresh()
            for table in ("audit_events", "audit_payloads"):
                for old, new in ((number, 99), (number + 1, number), (99, number + 1)):
                    self.alter(path, f"UPDATE {table} SET seq = ? WHERE seq = ?", new, old)
            self.broken(path, "reordered", number)

    def test_inserted(self) -> None:
        """A record that was put in, sealed as it should be, is found by those that it pushed on."""
        for number in range(1, COUNT + 1):
            path = self.fresh()
            for table in ("audit_events", "audit_payloads"):
                for later in range(COUNT, number - 1, -1):
                    self.alter(path, f"UPDATE {table} SET seq = ? WHERE seq = ?", later + 1, later)
            self.forge(path, number)
            self.broken(path, "inserted", number)

    def test_forged_anew(self) -> None:
        """One that was replaced, its hash made anew, is found by the next, which was sealed to another."""
        for number in range(1, COUNT):
            path = self.fresh()
            for table in ("audit_payloads", "audit_events"):
                self.alter(path, f"DELETE FROM {table} WHERE seq = ?", number)
            self.forge(path, number)
            self.broken(path, "altered", number)

    def test_rewritten(self) -> None:
        """A record that was sealed anew from somewhere to its end is found by the checkpoint."""
        for number in range(1, 5):
            path = self.fresh()
            for table in ("audit_payloads", "audit_events"):
                self.alter(path, f"DELETE FROM {table} WHERE seq >= ?", number)
            for each in range(number, COUNT + 1):
                self.forge(path, each)
            self.broken(path, "rewritten", 1)

    def test_truncated(self) -> None:
        """A record that ends before what a checkpoint tells of is found; behind the last one nobody can tell."""
        for number in range(1, COUNT + 1):
            path = self.fresh()
            for table in ("audit_payloads", "audit_events"):
                self.alter(path, f"DELETE FROM {table} WHERE seq >= ?", number)
            if number <= 4:
                self.broken(path, "truncated", number)
            else:
                self.assertTrue(self.verify(path).sound)

    def test_no_text(self) -> None:
        """A column that holds what no record holds does not stop the look."""
        path = self.fresh()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA writable_schema=ON")
            connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name LIKE 'audit%'")
            connection.commit()
        self.alter(path, "UPDATE audit_events SET type = x'ff' WHERE seq = 3")
        self.broken(path, "altered", 3)


class CheckpointTests(RecordCase):
    """What is said of the checkpoints themselves."""

    def test_altered(self) -> None:
        """A checkpoint of which anything was changed is found."""
        for column, value in (("head", "x"), ("seq", 3), ("at", "x"), ("vault", "x"), ("previous", "x")):
            path = self.write(COUNT, (2, 4))
            self.alter(path, f"UPDATE audit_checkpoints SET {column} = ? WHERE number = 1", value)
            self.assertEqual(self.verify(path).broken.kind, "checkpoint")  # type: ignore[union-attr]
            self.signer = Signer()

    def test_removed(self) -> None:
        """One that is missing before another is found."""
        path = self.write(COUNT, (2, 4, 5))
        for number in (1, 2):
            spoilt = Path(self.mktemp())
            copyfile(path, spoilt)
            self.alter(spoilt, "DELETE FROM audit_checkpoints WHERE number = ?", number)
            self.broken(spoilt, "checkpoint", (4, 5)[number - 1])

    def test_another_key(self) -> None:
        """A record that somebody signed with his own key is sound by itself, and not by the key that one noted."""
        path = self.write(COUNT, (4,))
        self.assertTrue(self.verify(path, keys=[self.signer.public]).sound)
        self.assertTrue(self.verify(path, keys=[fingerprint(self.signer.public)]).compared)
        found = self.verify(path, keys=[Signer(b"x" * 32).public])
        self.assertFalse(found.sound)

    def test_anchor(self) -> None:
        """An anchor answers for what it was told, also where record and checkpoints were put back together.

        So does a vault for what it sealed.  A line of the anchor that nobody signed is no evidence.
        """
        path = self.write(COUNT, (2,))
        with_more = Path(self.mktemp())
        copyfile(path, with_more)
        kept = [self.endorse(with_more, 5)]
        self.assertEqual(self.verify(path, kept).covered, 5)
        self.alter(path, "DELETE FROM audit_payloads WHERE seq > 3")
        self.alter(path, "DELETE FROM audit_events WHERE seq > 3")
        self.assertTrue(self.verify(path).sound)
        forged = [evolve(kept[0], head="sha256:6")]
        for verdict, kind, sequence in (
            (self.verify(path, kept), "truncated", 4),
            (self.verify(path, sealed={"the vault": (9, "sha256:9")}), "truncated", 4),
            (self.verify(path, forged), "checkpoint", 5),
        ):
            assert verdict.broken is not None
            self.assertEqual((verdict.broken.kind, verdict.broken.sequence), (kind, sequence))


class ContentsTests(RecordCase):
    """What a record is excused for that has no contents."""

    def pruned(self, said: object) -> Path:
        """Three records, and a fourth that says up to where contents were deleted."""
        path = Path(self.mktemp())
        store = unopened_store(path)
        self._do(store.open())
        events = [example_event(f"x.{number}", "run", {"n": number}) for number in (1, 2, 3)]
        self._do(store.audit.append(*events, example_event(PRUNED, "run", {"up_to": said})))  # type: ignore[dict-item]
        self._do(store.close())
        return path

    def test_excused(self) -> None:
        """What the record says was deleted may be gone, and no more than that."""
        path = self.pruned(2)
        self.alter(path, "DELETE FROM audit_payloads WHERE seq <= 2")
        self.assertEqual((self.verify(path).sound, self.verify(path).pruned), (True, 2))
        self.alter(path, "DELETE FROM audit_payloads WHERE seq = 3")
        self.broken(path, "removed", 3)

    def test_forged_where_they_were_deleted(self) -> None:
        """Contents without their salt are no deleted ones: whoever puts them there is found."""
        path = self.pruned(2)
        self.alter(path, "DELETE FROM audit_payloads WHERE seq <= 2")
        self.alter(path, "DROP TABLE IF EXISTS kept")
        self.alter(path, "ALTER TABLE audit_payloads RENAME TO kept")
        self.alter(path, "CREATE TABLE audit_payloads (seq INTEGER PRIMARY KEY, salt TEXT, payload TEXT)")
        self.alter(path, "INSERT INTO audit_payloads SELECT * FROM kept")
        self.alter(path, "INSERT INTO audit_payloads VALUES (2, NULL, '{}')")
        self.assertIn("contents", self.broken(path, "altered", 2))

    def test_not_beforehand(self) -> None:
        """No record excuses what comes after it."""
        path = self.pruned(1000)
        self.alter(path, "DELETE FROM audit_payloads WHERE seq = 2")
        self.broken(path, "removed", 2)


class BordersTests(RecordCase):
    """What lies before the first record, and where a part begins."""

    def test_before_the_first(self) -> None:
        """A row below the first number is no record, and is found."""
        for number in (0, -1, -(2**63)):
            path = self.write(COUNT, (4,))
            self.signer = Signer()
            columns = "id, type, at, actor_type, actor_id, payload_digest, prev_hash, hash"
            copied = (
                f"INSERT INTO audit_events (seq, {columns}) SELECT ?, 'x' || {columns} FROM audit_events WHERE seq = 1"
            )
            self.alter(path, copied, number)
            self.assertIn(f"number {number}.", self.broken(path, "inserted", 1))

    def test_part_of_another(self) -> None:
        """A part that says that it follows another record than an anchor tells of does not hold."""
        path = self.write(COUNT, (2, 4))
        with open_copy(path) as copy:
            fourth = copy.checkpoints()[1]
        for previous, sound in ((fourth.head, True), ("sha256:other", False)):
            self.assertEqual(Verification((), (fourth,), after=4, previous=previous).end().sound, sound)

    def test_covered_from_here(self) -> None:
        """A checkpoint of what comes before a part does not answer for any of it."""
        path = self.write(COUNT, (2,))
        with open_copy(path) as copy:
            verification = Verification((), copy.checkpoints(), after=4, previous=copy.at(4) or "")
            for rows in copy.rows(4):
                verification.feed(rows)
        self.assertEqual(verification.end().covered, 0)
