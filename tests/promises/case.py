"""A home, what an intruder can do to it, and what the service has seen."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from attrs import evolve

from aileron.audit import payload_digest
from aileron.base.json import compact
from aileron.model.audit import Record
from aileron.model.connectors import Outcome
from aileron.model.faults import Fault
from aileron.model.queries import AuditQuery
from aileron.model.runs import Run
from aileron.testing import check_chain
from tests.matrix.crash.points import Watched
from tests.runner.kit import OPERATOR, RunnerCase

__all__ = ["NEVER_SENT", "NO_ANSWER", "OPERATOR", "REFUSED", "Killed", "PromiseCase"]

_BUSY = Fault("external_api_error", "Reset.", "external", retriable=True)

NO_ANSWER = Outcome(fault=_BUSY, sent=True, classified=False)
"""It was sent, and nobody knows what came of it."""

REFUSED = Outcome(fault=evolve(_BUSY, retriable=False), sent=True, classified=True)
"""The service said, as its connector declares, that nothing happened."""

NEVER_SENT = Outcome(fault=evolve(_BUSY, kind="network_error"), sent=False, classified=False)
"""Not a byte left."""


class Killed(BaseException):
    """Stands for the end of the process."""


class PromiseCase(RunnerCase):
    """What a promise is held against."""

    @property
    def sent(self) -> int:
        """How many requests the service has seen."""
        return len(self.connector.sendings)

    def hide(self, types: str) -> None:
        """Take events off the record of their runs, by a pattern of their types."""
        self.sql("DROP TRIGGER IF EXISTS audit_events_stay")
        self.sql("UPDATE audit_events SET run_id = NULL WHERE type LIKE ?", types)

    def forge_record(self, run: Run, digest: str) -> None:
        """Let the newest event of a run tell that a digest of it was approved, its own digest made to fit."""
        self.sql("DROP TRIGGER IF EXISTS audit_events_stay")
        with sqlite3.connect(self.database) as database:
            (sequence,) = database.execute("SELECT max(seq) FROM audit_events WHERE run_id = ?", (run.id,)).fetchone()
            found = database.execute("SELECT salt, payload FROM audit_payloads WHERE seq = ?", (sequence,))
            salt, payload = found.fetchone()
            told = compact({**json.loads(payload), "digest": digest})
            database.execute("UPDATE audit_payloads SET payload = ? WHERE seq = ?", (told, sequence))
            database.execute(
                "UPDATE audit_events SET type = 'approval.approved', payload_digest = ? WHERE seq = ?",
                (payload_digest(salt, told), sequence),
            )
        database.close()

    def die_at(self, point: str) -> None:
        """Have this life end when it comes there."""
        self.runner = self.build(_killer(point))
        self.sync(self.runner.start())

    def when(self, point: str, act: Callable[[], object]) -> None:
        """Have something happen each time that a life which begins from now on comes to a point of its writes."""

        def reached(where: str) -> None:
            if where == point:
                act()

        watched: Any = Watched(self.store.runs, "runs", ("receive", "apply"), reached)
        self.store = evolve(self.store, runs=watched)

    def records(self) -> tuple[Record, ...]:
        """The record, oldest first."""
        return tuple(reversed(self.sync(self.store.audit.list(AuditQuery(limit=1000))).items))

    def assert_sound(self) -> None:
        """Assert that the record holds."""
        self.assertIsNone(check_chain(self.records()))


def _killer(point: str) -> Callable[[str], None]:
    def probe(reached: str) -> None:
        if reached == point:
            raise Killed

    return probe
