"""A home that can be killed at any piece of work of its database, and written into from outside."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.base.json import digest
from aileron.model.runs import Run
from aileron.model.trust import TrustKind
from aileron.model.vault import VaultState
from tests.runner.kit import RunnerCase, manifest, step

from .record import BEGUN_BY, STORY, Begun, Told
from .world import OPERATIONS, Service, World

_ASKED_AGAIN = 'cool_down = "0s"'
_EXPIRES = f'{_ASKED_AGAIN}\nexpires_after = "1h"'
UNDO_SECONDS, COOL_DOWN_SECONDS = 60.0, 3600.0
MOST_AN_HOUR, MOST_OF_ONE_TEXT = 3, 2
_LIMITS = (
    f"[limits]\nper_hour = {MOST_AN_HOUR}\n[limits.per_argument.text]\nper_hour = {MOST_OF_ONE_TEXT}\n\n[[execute]]"
)
FILES: dict[str, tuple[str | None, ...]] = {
    "gated": (
        manifest("gated", step("post"), expires=_ASKED_AGAIN),
        manifest("gated", step("post"), expires=_ASKED_AGAIN, body="Other."),
        None,
    ),
    "timed": (manifest("timed", step("post"), expires=_EXPIRES), manifest("timed", step("put"), expires=_EXPIRES)),
    "open": (manifest("open", step("post"), gated=False), manifest("open", step("put"), gated=False)),
    "steps": (manifest("steps", step("put", "one"), step("post", "two"), expires=_ASKED_AGAIN),),
    "undone": (manifest("undone", step("post"), expires=f"{_ASKED_AGAIN}\nundo_seconds = {UNDO_SECONDS:g}"),),
    "sticky": (manifest("sticky", step("post"), expires=f'cool_down = "{COOL_DOWN_SECONDS:g}s"'),),
    "found": (manifest("found", step("send"), gated=False),),
    "limited": (manifest("limited", step("post"), gated=False).replace("[[execute]]", _LIMITS),),
}
UNGATED = frozenset({"open", "found", "limited"})
SESSIONS = ("session-1", "session-2")
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


class Home(RunnerCase):
    """A home that can be killed at any piece of work of its database."""

    def setUp(self) -> None:
        """Every action, as it first is."""
        super().setUp()
        self.world = World(self.began_it)
        self.service = Service(clock=self.clock, world=self.world)
        self.service.shows = dict.fromkeys(OPERATIONS, lambda: self.world.arrive(self.service.sendings[-1]))
        self.connector = self.service
        self.connectors.add(self.service)
        for name, texts in FILES.items():
            self.put(name, texts[0])
        self.runner.check_changes()
        self.waiters: list[tuple[str, Deferred[Run]]] = []
        for session in SESSIONS:
            self.session(session)

    def put(self, name: str, text: str | None, *, trusted: bool = True) -> None:
        """Write an action file, or remove it."""
        if text is None:
            (self.directory / f"{name}.md").unlink(missing_ok=True)
        else:
            self.write(name, text, trusted=trusted)

    def rewrite_connector(self, version: int, trusted: bool) -> None:
        """Let the connector's file be another, which works the same."""
        description = evolve(self.service.description, content_hash=digest(version))
        self.connectors.add(evolve(self.service, description=description))
        if trusted and self.vault.state() is VaultState.UNLOCKED:
            self.believe(TrustKind.CONNECTOR, description.name, description.content_hash)

    def content(self) -> str:
        """The digest of the connector's file as it lies there."""
        return self.connectors.descriptions()[0].content_hash

    def forge(self, how: str, run_id: str, other: str) -> None:
        """Write into the database as another program would."""
        with sqlite3.connect(self.database) as database:
            database.execute(FORGED[how], {"run": run_id, "other": other})
        database.close()

    def story(self) -> list[Told]:
        """What is on record of runs, in order."""
        with closing(sqlite3.connect(self.database)) as database:
            return [Told.of(*row) for row in database.execute(STORY)]

    def began_it(self, effect_key: str) -> Begun | None:
        """The run that the record says began with an effect key, by now: the last, if it was done again."""
        with closing(sqlite3.connect(self.database)) as database:
            row = database.execute(BEGUN_BY, (effect_key,)).fetchone()
        return None if row is None else Begun.of(self.clock.seconds(), *row)

    def relent(self) -> None:
        """Let vault and database take what is written again."""
        self.control.full = False
        super().relent()

    def kill(self, state: VaultState) -> None:
        """End this life with nothing of it going on, and begin another, whose vault is in C{state}."""
        for call in list(self.clock.getDelayedCalls()):  # it is the clock's own list
            call.cancel()
        self.pool.todo.clear()
        self.pool.release()
        self.relent()
        self.world.hang_up()
        self.waiters = []
        self.unlock_anew(state)
        self.store = self.open_store()
        self.restart()

    def runTest(self) -> None:
        """Not a test by itself."""
