"""A home that can be killed at any piece of work of its database, and written into from outside."""

from __future__ import annotations

import sqlite3

from twisted.internet.defer import Deferred

from aileron.errors import ExternalApiError, NetworkError
from aileron.values import Outcome, Run, VaultState
from tests.runner.kit import RunnerCase, manifest, step

_ASKED_AGAIN = 'cool_down = "0s"'
_EXPIRES = f'{_ASKED_AGAIN}\nexpires_after = "1h"'
FILES: dict[str, tuple[str | None, ...]] = {
    "gated": (
        manifest("gated", step("post"), expires=_ASKED_AGAIN),
        manifest("gated", step("post"), expires=_ASKED_AGAIN, body="Other."),
        None,
    ),
    "timed": (manifest("timed", step("post"), expires=_EXPIRES), manifest("timed", step("put"), expires=_EXPIRES)),
    "open": (manifest("open", step("post"), gated=False), manifest("open", step("put"), gated=False)),
    "steps": (manifest("steps", step("put", "one"), step("post", "two"), expires=_ASKED_AGAIN),),
}
ANSWERS = {
    "done": Outcome({"done": True}),
    "refused": Outcome(fault=ExternalApiError("No.").fault(), sent=True, classified=True),
    "silent": Outcome(fault=ExternalApiError("Reset.").fault(), sent=True, classified=False),
    "unreached": Outcome(fault=NetworkError("Nobody there.").fault(), sent=False, classified=False),
}
FORGED = {
    "approved": "UPDATE runs SET state = 'approved' WHERE id = :run",
    "waiting": "UPDATE runs SET state = 'awaiting_vault' WHERE id = :run",
    "pending": "UPDATE runs SET state = 'pending_approval' WHERE id = :run",
    "gated": "UPDATE runs SET gated = 1 - gated WHERE id = :run",
    "arguments": """UPDATE runs SET arguments = '{"text":"forged"}' WHERE id = :run""",
    "digest": "UPDATE approvals SET digest = 'sha256:00' WHERE run_id = :run",
    "yes": "UPDATE approvals SET approved = 1, decided_at = requested_at, decided_by = 'me' WHERE run_id = :run",
    "mark": """UPDATE approvals SET (approved, decided_at, decided_by, not_after, decision_mark) = (
        SELECT approved, decided_at, decided_by, not_after, decision_mark FROM approvals AS other
        WHERE other.run_id = :other) WHERE run_id = :run AND EXISTS (SELECT 1 FROM approvals WHERE run_id = :other)""",
}
_STORY = """
    SELECT run_id, type FROM audit_events WHERE run_id IS NOT NULL AND type IN (
        'approval.approved', 'approval.denied', 'approval.stale', 'tamper.detected', 'run.cancelled',
        'execution.started')
    ORDER BY seq
"""
MOST_AT_ONCE = 40


class Home(RunnerCase):
    """A home that can be killed at any piece of work of its database."""

    def setUp(self) -> None:
        """Every action, as it first is."""
        super().setUp()
        for name, texts in FILES.items():
            self.put(name, texts[0])
        self.runner.look()
        self.other: sqlite3.Connection | None = None
        self.prepared: list[Deferred[Outcome]] = []  # what the script holds, in the order in which sendings take it
        self.unanswered: list[tuple[int, Deferred[Outcome]]] = []
        self.waiters: list[tuple[str, Deferred[Run]]] = []
        self.session("session-1")

    def put(self, name: str, text: str | None, *, trusted: bool = True) -> None:
        """Write an action file, or remove it."""
        if text is None:
            (self.directory / f"{name}.md").unlink(missing_ok=True)
        else:
            self.write(name, text, trusted=trusted)

    def forge(self, how: str, run_id: str, other: str) -> None:
        """Write into the database as another program would."""
        with sqlite3.connect(self.database) as database:
            database.execute(FORGED[how], {"run": run_id, "other": other})
        database.close()

    def story(self) -> list[tuple[str, str]]:
        """What is on record of decisions and of what began, in order: the run and the event's type."""
        database = sqlite3.connect(self.database)
        try:
            return database.execute(_STORY).fetchall()
        finally:
            database.close()

    def refuse(self) -> None:
        """Let no commit pass."""
        if self.other is None:
            self.other = sqlite3.connect(self.database, isolation_level=None)
            self.other.execute("BEGIN IMMEDIATE")

    def relent(self) -> None:
        """Let them pass again."""
        self.control.full = False
        if self.other is not None:
            self.other.execute("ROLLBACK")
            self.other.close()
            self.other = None

    def kill(self, state: VaultState) -> None:
        """End this life with nothing of it going on, and begin another, whose vault is in C{state}."""
        for call in list(self.clock.getDelayedCalls()):  # it is the clock's own list
            call.cancel()
        self.pool.todo.clear()
        self.pool.release()
        self.relent()
        self.unanswered, self.waiters, self.prepared, self.connector.script[:] = [], [], [], []
        self.refill()
        self.unlock_anew(state)
        self.store = self.open_store()
        self.restart()

    def refill(self) -> None:
        """Have every sending wait for its answer."""
        while len(self.prepared) < MOST_AT_ONCE:
            self.prepared.append(Deferred())
            self.connector.script.append(self.prepared[-1])

    def runTest(self) -> None:
        """Not a test by itself."""
