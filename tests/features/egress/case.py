"""Sessions that are let out, over a real store and a real trust service, on one clock, without a socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aileron.base.json import JSON, digest_of_bytes
from aileron.features.egress._file import EgressFile
from aileron.features.egress._sessions import Access, EgressSessions
from aileron.model.audit import Event
from aileron.model.queries import AuditQuery
from aileron.model.sessions import Session
from aileron.model.trust import TrustKind
from tests.runner.kit import RunnerCase

PROJECT = "/home/me/shop"
HOST = "registry.example:443"


class EgressCase(RunnerCase):
    """A home with a file of hosts, and its sessions."""

    def setUp(self) -> None:
        """Have no file yet."""
        super().setUp()
        home = Path(self.mktemp()).absolute()
        home.mkdir()
        self.path = home / "egress.toml"
        self.file = EgressFile(self.path, self.trust)
        self.settings = (self.file,)
        self.restart()
        self.next_egress()

    def next_egress(self) -> None:
        """Have sessions let out as after a start of the daemon."""
        self.sessions = EgressSessions(
            file=self.file,
            trust=self.runner.trust,
            audit=self.store.audit,
            operator_limits=self.operator_limits,
            clock=self.clock,
            ids=self.fresh_id,
            listen=lambda: 3128,
        )

    def put(self, text: str, *, trusted: bool = True) -> None:
        """Write the file."""
        self.path.write_text(text, encoding="utf-8")
        if trusted:
            self.believe(TrustKind.CONFIG, "egress.toml", digest_of_bytes(text.encode()))

    def entry(self, *hosts: str, project: str = PROJECT, more: str = "") -> str:
        """The text of an entry."""
        return f"[[allow]]\nproject = {json.dumps(project)}\nhosts = {json.dumps(hosts)}\n{more}"

    def opened(self, *words: str, session_id: str = "session-1", project: str = PROJECT) -> Access:
        """A session that is let out, by the ticket that it got."""
        port, ticket = self.sync(self.sessions.open(self.session_in(project, session_id), words or ("project",)))
        self.assertEqual(port, 3128)
        redeemed = self.sessions.redeem(ticket)
        assert redeemed is not None
        self.assertIsNone(self.sessions.redeem(ticket), "a ticket was taken twice")
        return redeemed.access

    def session_in(self, project: str, session_id: str = "session-1") -> Session:
        """A session that says that it works there."""
        kept = self.session(session_id)
        return Session(kept.id, kept.agent, project, kept.started_at, kept.seen_at)

    def records_of_egress(self, *but: str) -> list[tuple[str, Mapping[str, JSON]]]:
        """What is on record of network access, oldest first."""
        return [(each.type, each.payload) for each in self.events_of_egress() if each.type not in but]

    def events_of_egress(self) -> list[Event]:
        """The events themselves."""
        found: Any = self.sync(self.store.audit.list(AuditQuery(limit=500)))
        return [each.event for each in reversed(found.items) if each.event.type.startswith("egress.")]
