"""Reading without a login: every route that takes the local key sends nothing, and stores nothing."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from attrs import evolve

from aileron.api._sites import operator_routes
from aileron.api.guard import Who
from aileron.model.connectors import Outcome
from aileron.model.errors import NetworkError
from aileron.model.queries import RunQuery
from aileron.model.runs import Run
from tests.api.case import LOCAL_KEY
from tests.runner.kit import manifest, step
from tests.runner.previewed import PREVIEW, PreviewedCase

from .doors import DoorCase

CHANGING = {("POST", "/v1/pause"), ("POST", "/v1/vault/lock"), ("POST", "/v1/signed-decisions")}
"""What a program without a login may change. A signed decision counts by the signature of an enrolled key."""

_BODIES: Mapping[str, Any] = {
    "/v1/actions/check": {"text": manifest("other", step("post"))},
    "/v1/actions/<name>/dry-run": {"args": {"text": "hello"}},
    "/v1/action-approvals/<approval_id>/export": {"approved": True},
}
_STREAM = "/v1/events"
"""It has no end; it sends what is on record, and waits."""


class LocalKeyTests(DoorCase, PreviewedCase):
    """A pending run whose preview was missed, and whose action has changed since it was put up."""

    def setUp(self) -> None:
        super().setUp()
        self.answer(Outcome(fault=NetworkError("Gone.").fault(), sent=False))
        self.run_ = self.submit()
        self.clock.advance(60.0)
        self.show()

    def change_action(self) -> None:
        """Change the file of the action, and trust it so."""
        self.write("gated", manifest("gated", step("post"), expires=PREVIEW) + "\nMore.\n")

    def stored(self) -> list[str]:
        """Everything in the database."""
        with closing(sqlite3.connect(self.database)) as database:
            return list(database.iterdump())

    def read_all(self) -> set[tuple[str, str]]:
        """Ask every route that takes the local key and may change nothing; those that answered 200."""
        answered = set()
        (record, *_) = self.records()
        ids = {"approval_id": self.run_.id, "run_id": self.run_.id, "session_id": "session-1", "name": "gated"}
        ids["audit_id"] = record.event.id
        for endpoint, allowed in operator_routes().endpoints:
            route = (endpoint.method, endpoint.path)
            if Who.LOCAL not in allowed or route in CHANGING or endpoint.path == _STREAM:
                continue
            path = re.sub(r"<(?:path:)?(\w+)>", lambda found: ids.get(found[1], "x"), endpoint.path)
            heard = self.operator.ask(endpoint.method, path, LOCAL_KEY, _BODIES.get(endpoint.path))
            self.assertIn(heard.status, (200, 404), (route, heard.text))
            answered |= {route} if heard.status == 200 else set()
        return answered

    def test_starts_nothing(self) -> None:
        """No read of it reaches a service or the database, whatever is missed or stale; a login's read does."""
        self.change_action()
        before, looks = self.stored(), self.looks()
        answered = self.read_all()
        self.clock.advance(60.0)
        self.assertEqual((self.looks(), self.sent), (looks, looks))
        self.assertEqual(self.stored(), before)
        self.assertGreater(len(answered), 20)
        self.assertIn(("GET", "/v1/action-approvals/<approval_id>"), answered)
        shown = self.operator.ask("GET", f"/v1/action-approvals/{self.run_.id}", self.operators.log_in()[0]).json
        self.assertEqual(shown["review"]["preview"]["status"], "shown")
        self.assertEqual(self.looks(), looks + 1)
        self.assertNotEqual(self.stored(), before)

    def test_sees_the_same(self) -> None:
        """What it is shown of a stale approval is what a login is shown of it, digest and changes included."""
        self.change_action()
        query = RunQuery()
        (computed,) = self.sync(self.runner.decisions.approvals(query, only_read=True)).items
        self.assertEqual(self.sync(self.runner.decisions.approval(self.run_.id, only_read=True)), computed)
        (stored,) = self.sync(self.runner.decisions.approvals(query)).items
        self.assertIn("was changed since", stored.stale or "")
        self.assertEqual(evolve(computed, run=stored.run), stored)

    def test_cannot_run(self) -> None:
        """If what waits cannot run any more it says so, and the digest that it names binds nothing."""
        (self.directory / "gated.md").unlink()
        before = self.stored()
        computed = self.sync(self.runner.decisions.approval(self.run_.id, only_read=True))
        self.assertIn("It cannot run now", computed.stale or "")
        self.assertEqual(self.stored(), before)
        self.assertNotEqual(computed.digest, self.kept(self.run_))

    def kept(self, run: Run) -> str:
        """The digest in the row of a run."""
        ((digest,),) = self.sql("SELECT digest FROM approvals WHERE run_id = ?", run.id)
        return str(digest)
