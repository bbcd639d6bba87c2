"""The record as a whole: verified, exported, told of in the status, and handed over before the vault is locked."""

from __future__ import annotations

import json
from pathlib import Path

from twisted.internet.defer import Deferred

from aileron.audit import CommitObserver, KeyFile
from aileron.audit.verify import Verification, fingerprint, read_export
from aileron.testing import example_event, example_signer, memory_store
from tests.api.case import LAUNCH_KEY, ApiCase


class RecordCase(ApiCase):
    """With a record of three, and somebody who answers for it."""

    def setUp(self) -> None:
        super().setUp()
        observer = CommitObserver(KeyFile(Path(self.mktemp())))
        self.store = memory_store(self, self.clock, observer=observer)
        self.signer = example_signer(self.store, self.record_keys, self.control, self.clock, observer)
        self.build(signer=self.signer, audit=self.store.audit)
        for work in (self.signer.open(True), self.signer.record_unlock()):
            self.successResultOf(Deferred.fromCoroutine(work))
        events = (example_event("one", payload={"text": "été"}), example_event("two"))
        self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(*events)))
        self.token = self.operator_token()


class VerifyTests(RecordCase):
    """C{GET /v1/audit/verify}."""

    def test_sound(self) -> None:
        """A sound record is told to be sound, how far it is signed, and by which key."""
        found = self.operator.ask("GET", "/v1/audit/verify", self.token)
        self.assertEqual(
            (found.status, found.json["sound"], found.json["last"], found.json["signed"]), (200, True, 3, 1)
        )
        self.assertEqual(found.json["covered"], 3)  # this daemon knows what it wrote
        self.assertEqual([fingerprint(key) for key in found.json["keys"]], [self.signer.fingerprint])

    def test_status(self) -> None:
        """The status tells the key's fingerprint, how far the record is signed, and whether it was touched."""
        told = self.operator.ask("GET", "/v1/status", self.token).json["record"]
        self.assertEqual((told["key"], told["signed_up_to"], told["tampered"]), (self.signer.fingerprint, 1, 0))
        head = self.successResultOf(Deferred.fromCoroutine(self.store.audit.head()))
        assert head is not None
        for site, token in ((self.operator, self.token), (self.agents, LAUNCH_KEY)):
            told = site.ask("GET", "/v1/status", token).json["record"]
            self.assertEqual(told["head"], {"sequence": head[0], "hash": head[1]})
        event = example_event("tamper.detected")
        self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(event)))
        self.assertEqual(self.operator.ask("GET", "/v1/status", self.token).json["record"]["tampered"], 1)


class ExportTests(RecordCase):
    """C{GET /v1/audit/export}."""

    def test_whole(self) -> None:
        """What is exported verifies and holds the contents as they were kept, though nothing; no moment is refused."""
        heard = self.operator.ask("GET", "/v1/audit/export", self.token)
        self.assertEqual((heard.status, heard.headers["content-type"]), (200, "application/x-ndjson"))
        lines = heard.text.splitlines(keepends=True)
        self.assertEqual(json.loads(lines[3])["payload"], {"text": "été"})
        read = read_export(lines)
        verification = Verification(read.exported.checkpoints)
        for rows in read.rows:
            verification.feed(rows)
        found = verification.end()
        self.assertEqual((found.sound, found.last, found.covered), (True, 3, 1))
        lines = self.operator.ask("GET", "/v1/audit/export?since=2100-01-01T00:00:00Z", self.token).text.splitlines()
        self.assertEqual([json.loads(line)["kind"] for line in lines], ["header", "end"])
        self.assertEqual(self.operator.ask("GET", "/v1/audit/export?since=soon", self.token).status, 400)


class LockTests(RecordCase):
    """C{POST /v1/vault/lock}."""

    def test_handed_over(self) -> None:
        """The lock is on record, signed, before the key is gone; what comes after has a MAC."""
        self.assertEqual(self.operator.ask("POST", "/v1/vault/lock", self.token).json, {"state": "locked"})
        latest = self.signer.latest
        assert latest is not None
        self.assertEqual((self.events()[-1], latest.sequence), ("vault.locked", 4))
        (mac,) = self.successResultOf(Deferred.fromCoroutine(self.store.archive.macs(3, 10)))
        self.assertIsNotNone(mac.mac)

    def test_locked_whatever_happens(self) -> None:
        """A record that cannot be written keeps no vault open."""
        self.successResultOf(Deferred.fromCoroutine(self.store.close()))
        self.assertEqual(self.operator.ask("POST", "/v1/vault/lock", self.token).json, {"state": "locked"})
        self.assertEqual(len(self.flushLoggedErrors()), 1)
