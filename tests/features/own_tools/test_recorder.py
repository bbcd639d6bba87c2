"""What is recorded of tools' requests, and how much of it."""

from __future__ import annotations

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.own_tools._recorder import (
    MOST_READS_A_MINUTE,
    MOST_REFUSALS_A_MINUTE,
    MOST_REQUESTS_A_MINUTE,
    ToolRecorder,
)
from aileron.features.own_tools.values import ToolRequest
from aileron.model.errors import LimitExceeded
from aileron.model.queries import AuditQuery
from aileron.model.tool_claims import ToolCaller
from aileron.testing import memory_store

REQUEST = ToolRequest("session-1", 1, "api.example", "GET", "/x?access_token=s3cret")


class FloodTests(SynchronousTestCase):
    """A recorder over a store."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(1_800_000_000)
        self.store = memory_store(self, self.clock)
        self._ids = iter(range(10_000))
        self.recorder = ToolRecorder(self.store.audit, self.clock, lambda: f"{next(self._ids):026}")

    def test_reads(self) -> None:
        """Reads of a session are limited by the minute; those of another session are not affected."""
        for _ in range(MOST_READS_A_MINUTE):
            self.recorder.admit_read("session-1")
        self.assertRaises(LimitExceeded, self.recorder.admit_read, "session-1")
        self.recorder.admit_read("session-2")
        self.clock.advance(60)
        self.recorder.admit_read("session-1")
        self.assertEqual(MOST_READS_A_MINUTE + 2, self.recorder.reads)

    def test_requests(self) -> None:
        """Requests of a session are limited by the minute, and long ones count more."""
        long = evolve(REQUEST, body=b"x" * (1024 * 1024))
        for _ in range(MOST_REQUESTS_A_MINUTE - 5):
            self.recorder.admit_request(REQUEST)
        self.recorder.admit_request(long)
        self.assertRaises(LimitExceeded, self.recorder.admit_request, REQUEST)
        self.recorder.admit_request(evolve(REQUEST, session_id="session-2"))
        self.clock.advance(60)
        self.recorder.admit_request(long)

    def test_refusals(self) -> None:
        """Of very many refusals, the first of each minute are recorded, without their query."""
        for _ in range(MOST_REFUSALS_A_MINUTE + 5):
            self.recorder.record_refusal(REQUEST, "It carries a credential.")
        query = AuditQuery(type="own_tools.refused", limit=500)
        found = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(query))).items
        self.assertEqual(MOST_REFUSALS_A_MINUTE, len(found))
        self.assertEqual("/x", found[0].event.payload["target"])
        self.assertNotIn("s3cret", repr(found))

    def test_unreadable(self) -> None:
        """A request that cannot be read is recorded with its host and the reason alone."""
        self.recorder.record_unreadable("session-1", "api.example", "Two lengths.")
        found = self.successResultOf(
            Deferred.fromCoroutine(self.store.audit.list(AuditQuery(type="own_tools.refused")))
        )
        (record,) = found.items
        self.assertEqual({"host": "api.example", "reason": "Two lengths."}, dict(record.event.payload))
        self.assertEqual("session-1", record.event.session_id)

    def test_ended(self) -> None:
        """The counts of a session go with it."""
        for _ in range(MOST_READS_A_MINUTE):
            self.recorder.admit_read("session-1")
        self.recorder.session_ended("session-1")
        self.recorder.admit_read("session-1")


class CommandTests(SynchronousTestCase):
    """L{ToolCaller.summary}."""

    def test_summary(self) -> None:
        """Only a command's first words are recorded, without what it sends or the credentials that it carries."""
        for command, summary in (
            ("gh issue create -t Secret", "gh issue create"),
            ("gh secret set NAME --body hunter2", "gh secret set"),
            ("/usr/bin/curl -H 'Authorization: token s3cret' https://x", "/usr/bin/curl"),
            ("curl https://me:s3cret@api.example/", "curl"),
            ("env TOKEN=s3cret curl", "env"),
            ("node 'my script.js'", "node"),
            ("", ""),
        ):
            self.assertEqual(summary, ToolCaller(7, 8, command).summary)
