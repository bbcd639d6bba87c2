"""What is on record, as the machine reads it: by itself, not with the product's own eyes."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from attrs import frozen

STORY = """
    SELECT run_id, type, at, payload FROM audit_events JOIN audit_payloads USING (seq)
    WHERE run_id IS NOT NULL ORDER BY seq
"""
BEGUN_BY = """
    SELECT runs.id, runs.action, runs.session_id, runs.arguments, runs.parent_id, runs.received_at, (
        SELECT payload ->> 'grant' FROM audit_events AS used JOIN audit_payloads USING (seq)
        WHERE used.run_id = runs.id AND used.type = 'grant.used' ORDER BY used.seq DESC LIMIT 1)
    FROM runs JOIN audit_events ON audit_events.run_id = runs.id
    WHERE runs.effect_key = ? AND audit_events.type = 'execution.started' ORDER BY seq DESC LIMIT 1
"""
ENDED = {
    "completed": {"execution.succeeded"},
    "failed": {"execution.failed"},
    "unknown": {"execution.unknown"},
    "denied": {"approval.denied"},
    "cancelled": {"run.cancelled"},
    "expired": {"approval.expired"},
}
"""By the state in which a run ended, what the record must tell of that."""

FOUND_OUT = {"run.settled", "execution.reconciled", "execution.late_answer"}
"""What it may tell instead where it was in doubt before."""


@frozen
class Told:
    """An event of a run."""

    run_id: str
    type: str
    at: float
    payload: Any

    @classmethod
    def of(cls, run_id: str, type_: str, at: str, payload: str) -> Told:
        """Of a row."""
        return cls(run_id, type_, seconds(at), json.loads(payload))


@frozen
class Begun:
    """A run that began, as its row stands when something of it is sent, at a moment.

    :ivar grant_id: of the grant that the record says was used for it.
    """

    at: float
    run_id: str
    action: str
    session_id: str | None
    text: str
    parent_id: str | None
    received_at: float
    grant_id: str | None

    @classmethod
    def of(cls, at: float, *row: Any) -> Begun:
        """Of a row."""
        run_id, action, session_id, arguments, parent_id, received_at, grant_id = row
        text = json.loads(arguments)["text"]
        return cls(at, run_id, action, session_id, text, parent_id, seconds(received_at), grant_id)


def seconds(at: str) -> float:
    """A moment as it is written, by the clock."""
    return datetime.fromisoformat(at).timestamp()
