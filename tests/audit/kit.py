"""A record on disk with checkpoints, and somebody who alters it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from attrs import evolve
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import GENESIS, Verification, payload_digest, seal
from aileron.audit.verify import BEFORE_ALL
from aileron.base.converter import to_json
from aileron.base.json import canonical, timestamp, utc
from aileron.model.audit import DAEMON, NO_CHECKPOINT, ChainLink, Checkpoint, Event, Verdict
from aileron.store.copy import open_copy
from aileron.testing import example_event, unopened_store

STAY = ("audit_events_stay", "audit_events_last", "audit_checkpoints_stay", "audit_checkpoints_last")


class Signer:
    """Somebody with a key."""

    def __init__(self, secret: bytes = b"s" * 32, vault: str = "vault-1") -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        self._vault = vault
        self.public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        self.previous = NO_CHECKPOINT

    def sign(self, sequence: int, head: str) -> Checkpoint:
        """The next checkpoint."""
        at = f"2026-01-01T00:00:{sequence % 60:02}.000000Z"
        unsigned = Checkpoint(self._vault, sequence, head, at, self.previous, self.public)
        self.previous = unsigned.digest
        return evolve(unsigned, signature=self._key.sign(canonical(unsigned.statement())).hex())


class RecordCase(SynchronousTestCase):
    """A database with some records, checkpoints about some of them, and no daemon."""

    def setUp(self) -> None:
        """One signer; no record yet."""
        self.signer = Signer()

    def write(self, count: int, checkpoints: Collection[int] = (), path: Path | None = None) -> Path:
        """A database with so many records, and checkpoints about these."""
        path = path or Path(self.mktemp())
        store = unopened_store(path)
        self._do(store.open())
        events = [example_event(f"x.{number}", f"run-{number % 3}", {"n": number}) for number in range(1, count + 1)]
        self._do(store.audit.append(*events))
        self._do(store.close())
        for sequence in sorted(checkpoints):
            self.endorse(path, sequence)
        return path

    def _do(self, coroutine: object) -> None:
        self.successResultOf(Deferred.fromCoroutine(coroutine))  # type: ignore[arg-type]

    def endorse(self, path: Path, sequence: int) -> Checkpoint:
        """Put a checkpoint about one record beside it."""
        with open_copy(path) as copy:
            head = copy.at(sequence)
        assert head is not None
        checkpoint = self.signer.sign(sequence, head)
        values = tuple(to_json(checkpoint).values())
        columns = "vault, seq, head, at, previous, key, signature"
        self.alter(path, f"INSERT INTO audit_checkpoints ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", *values)
        return checkpoint

    def alter(self, path: Path, statement: str, *values: object) -> None:
        """Change the database behind everybody's back."""
        with closing(sqlite3.connect(path)) as connection:
            for trigger in STAY:
                connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
            connection.execute("PRAGMA foreign_keys=OFF")
            connection.execute(statement, values)
            connection.commit()

    def forge(self, path: Path, number: int) -> None:
        """Put in a record that follows the one before it as it should."""
        with closing(sqlite3.connect(path)) as connection:
            row = connection.execute("SELECT hash FROM audit_events WHERE seq = ?", (number - 1,)).fetchone()
        before = GENESIS if row is None else row[0]
        event = Event(f"forged-{number}", "forged", utc(0), DAEMON)
        link = ChainLink(number, event, payload_digest("s", "{}"))
        actor, digest = event.actor, link.payload_digest
        self.alter(
            path,
            "INSERT INTO audit_events (seq, id, type, at, actor_type, actor_id, payload_digest, prev_hash, hash)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(number, event.id, event.type, timestamp(event.at), actor.type, actor.id, digest, before),
            seal(before, link),
        )
        self.alter(path, "INSERT INTO audit_payloads (seq, salt, payload) VALUES (?, 's', '{}')", number)

    def verify(
        self,
        path: Path,
        anchored: Sequence[Checkpoint] = (),
        keys: Collection[str] = (),
        sealed: Mapping[str, tuple[int, str]] | None = None,
    ) -> Verdict:
        """What a look at the database finds."""
        with open_copy(path) as copy:
            verification = Verification(copy.checkpoints(), anchored, sealed or {}, keys)
            for rows in copy.rows(BEFORE_ALL):
                verification.feed(rows)
            return verification.end()

    def broken(self, path: Path, kind: str, sequence: int) -> str:
        """Why; it must be of this kind, about this record."""
        found = self.verify(path).broken
        assert found is not None, "everything holds"
        self.assertEqual((found.kind, found.sequence), (kind, sequence), found.why)
        return found.why
