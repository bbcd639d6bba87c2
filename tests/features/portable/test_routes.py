"""Portable decisions over HTTP, with the real runner: from the export by a signature to the effect, or to none."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from aileron.api import operator_site
from aileron.api._sites import operator_routes
from aileron.cli.qr import draw_qr
from aileron.model.authority import PasskeyRule
from aileron.model.queries import AuditQuery
from aileron.model.runs import Run, RunState
from aileron.model.signing import NAMESPACE
from aileron.testing import MemoryPasskeyBook, MemorySshKeyBook, SoftwareSshKey
from aileron.vault import EXPORT_SECONDS, Approvers, Passkeys, SshKeys
from tests.api.case import LOCAL_KEY, ApiCase, Heard, Site
from tests.promises.doors import DoorCase
from tests.runner.kit import OPERATOR, OPERATOR_URL

KEYS = "/v1/operator/approvers"
LIFE = "life"


class PortableCase(DoorCase):
    """A daemon whose approvals must be signed, and a person with a security key."""

    def make_approvers(self) -> Approvers:
        """Approvers that need a signature, with the SSH keys in memory."""
        self.passkey_book = MemoryPasskeyBook(self.vault)
        self.passkeys = Passkeys(self.passkey_book, lambda: (OPERATOR_URL,), self.clock)
        self.ssh_keys = SshKeys(MemorySshKeyBook(self.vault), self.clock)
        return Approvers(self.passkeys, LIFE, lambda _: None, self.clock, ssh_keys=self.ssh_keys)

    def setUp(self) -> None:
        """Enrol the key."""
        super().setUp()
        self.key = SoftwareSshKey(application="ssh:", verifies=False)
        self.kept = self.ssh_keys.add("mine", self.key.public_key)

    def export(self, run: Run, token: str = LOCAL_KEY, **body: Any) -> Heard:
        """What the daemon exports of a run."""
        return self.operator.ask("POST", f"/v1/action-approvals/{run.id}/export", token, {"approved": True, **body})

    def bring(self, text: str, signature: str | None = None, key: SoftwareSshKey | None = None) -> Heard:
        """Import a text, with its signature by a key."""
        signature = (key or self.key).sign(text, NAMESPACE) if signature is None else signature
        return self.operator.ask("POST", "/v1/signed-decisions", LOCAL_KEY, {"text": text, "signature": signature})

    def text(self, run: Run, **body: Any) -> str:
        """The exported text of a run."""
        return str(self.export(run, **body).json["text"])

    def refused(self, run: Run, answer: Heard, status: int = 403, why: str = "") -> None:
        """An import was refused, and nothing was decided or sent."""
        self.assertEqual(answer.status, status, answer.text)
        self.assertIn(why, answer.text)
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.PENDING, []))


class ExportTests(PortableCase):
    """Requests as text."""

    def test_text(self) -> None:
        """The text has the request in full, behind a margin, and the decision as its last line."""
        run = self.submit("gated", {"text": "Hello\nThe decision (do not change anything in this file):\n[1]\u202e"})
        lines = self.text(run, reason="fine").split("\n")
        self.assertEqual(lines[-1], "")
        self.assertIn(run.id, lines[-2])
        self.assertEqual(lines.count("The decision (do not change anything in this file):"), 1)
        self.assertIn("  | [1]\\u202e", lines)
        self.assertIn("Your reason: fine", lines)
        for told in ("Arguments:", "Request 1:", "Check before you approve:"):
            self.assertIn(told, lines)
        short = self.text(run, short=True)
        self.assertNotIn("Hello", short)
        self.assertIn(self.shown(run).digest, short)
        whole = short.replace(f'"{LIFE}"', f'"{"f" * 32}"')  # an instance as a daemon has it
        self.assertIsNotNone(draw_qr(whole, 80))

    def test_pending_only(self) -> None:
        """Only a pending request is exported, and only as it was reviewed."""
        run = self.submit()
        self.assertEqual(self.export(run, digest="sha256:0").kind, "approval_stale")
        self.sync(self.runner.submission.withdraw(run.id, OPERATOR, None))
        self.assertEqual(self.export(run).status, 409)

    def test_large(self) -> None:
        """A request that is too long is exported by its digest alone."""
        run = self.submit("gated", {"text": "x" * 65_500})
        self.assertEqual(self.export(run).status, 400)
        self.assertEqual(self.export(run, short=True).status, 200)

    def test_readers(self) -> None:
        """An agent exports nothing and imports nothing."""
        run = self.submit()
        self.assertEqual(self.export(run, self.TOKEN).status, 401)
        body = {"text": "x", "signature": "x"}
        self.assertEqual(self.operator.ask("POST", "/v1/signed-decisions", self.TOKEN, body).status, 401)


class ImportTests(PortableCase):
    """Decisions that come back."""

    def test_approved(self) -> None:
        """A signed approval runs the action once, with no login; the record has the text and the key."""
        run = self.submit()
        text = self.text(run, reason="fine")
        answer = self.bring(text)
        self.assertEqual(answer.status, 200, answer.text)
        self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.COMPLETED, 1))
        query = AuditQuery(run_id=run.id, types=("approval.approved",), limit=1)
        (record,) = self.sync(self.store.audit.list(query)).items
        self.assertEqual((record.event.actor.id, record.event.payload["reason"]), (self.kept.id, "fine"))
        payload: Any = record.event.payload
        self.assertTrue(text.startswith(payload["signed"]["text"]))
        self.assertIn("used before", self.bring(text).text)
        self.assertEqual(self.bring(text).status, 403)
        self.assertEqual(len(self.connector.sendings), 1)

    def test_short(self) -> None:
        """A short text decides as well."""
        run = self.submit()
        self.assertEqual(self.bring(self.text(run, short=True)).status, 200)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_denied(self) -> None:
        """A signed denial is one, and cannot be turned into an approval."""
        run = self.submit()
        text = self.text(run, approved=False)
        self.refused(run, self.bring(text.replace('"denied"', '"approved"'), self.key.sign(text, NAMESPACE)))
        self.refused(run, self.bring(text.replace('"denied"', '"approved"')), why="not what the running daemon")
        self.assertEqual(self.bring(text).status, 200)
        self.assertIs(self.state(run), RunState.DENIED)

    def test_attacks(self) -> None:
        """What was changed, moved, made for something else or by somebody else decides nothing."""
        run, other = self.submit(), self.submit("gated", {"text": "other"})
        text = self.text(run)
        self.refused(run, self.bring(text, self.key.sign(text, "file")), why="not made for this purpose")
        self.refused(run, self.bring(text, evolve(self.key, hash="sha256").sign(text, NAMESPACE)), why="another hash")
        self.refused(run, self.bring(text, evolve(self.key, touches=False).sign(text, NAMESPACE)), why="touch")
        self.refused(run, self.bring(text, key=SoftwareSshKey()), why="not enrolled")
        self.refused(run, self.bring("Nothing much\n" + text), why="not what the running daemon")
        self.refused(run, self.bring(text.replace(run.id, other.id)), why="not what the running daemon")
        self.refused(run, self.bring(text.rstrip()), 400)
        self.refused(run, self.bring(text.replace("\n", "\r\n")), 400)
        self.refused(run, self.bring(text, "x"), 400)
        self.refused(run, self.bring("x" * 300_000), 400)
        self.refused(run, self.bring("[" * 100_000), 400)

    def test_late(self) -> None:
        """An export is good for an hour."""
        run = self.submit()
        text = self.text(run)
        self.clock.advance(EXPORT_SECONDS)
        self.refused(run, self.bring(text), why="not what the running daemon")

    def test_after_restart(self) -> None:
        """What was exported before the daemon was restarted decides nothing."""
        run = self.submit()
        text = self.text(run)
        self.approvers = self.make_approvers()
        self.ssh_keys.add("mine", self.key.public_key)
        self.restart()
        self.operator = Site(self, operator_site(self.dependencies()), operator_routes())
        self.refused(run, self.bring(text), why="not what the running daemon")


class RuleTests(PortableCase):
    """Actions that need a passkey."""

    def test_rule(self) -> None:
        """A touch is not enough; a verification by the security key is."""
        run = self.submit()
        self.passkey_book.keep_passkeys((), PasskeyRule(everything=True))
        self.refused(run, self.bring(self.text(run)), why="passkey")
        self.assertEqual(self.bring(self.text(run), key=evolve(self.key, verifies=True)).status, 200)
        self.assertIs(self.state(run), RunState.COMPLETED)


class KeysTests(ApiCase):
    """Enrolment over HTTP."""

    def test_whole(self) -> None:
        """A terminal adds a key, anyone who reads lists it, a login removes it; each is on record."""
        key, token = SoftwareSshKey(application="ssh:"), self.operator_token()
        added = self.operator.ask("POST", KEYS, token, {"name": "mine", "public_key": key.public_key + " me"})
        self.assertEqual((added.status, added.json["hardware"]), (201, True), added.text)
        listed = self.operator.ask("GET", KEYS, LOCAL_KEY).json["items"]
        self.assertEqual(listed, [added.json])
        self.assertEqual(self.operator.ask("DELETE", f"{KEYS}/{added.json['id']}", token).status, 200)
        self.assertEqual(self.operator.ask("DELETE", f"{KEYS}/{added.json['id']}", token).status, 404)
        self.assertEqual(self.events()[-2:], ["operator.approver_added", "operator.approver_removed"])

    def test_refused(self) -> None:
        """No page, no local program and no agent adds a key; no program without a login removes one."""
        body = {"name": "mine", "public_key": SoftwareSshKey().public_key}
        browser, _ = self.operators.open_browser()
        self.assertEqual(self.operator.ask("POST", KEYS, body=body, browser=browser).status, 403)
        self.assertIn(self.operator.ask("POST", KEYS, LOCAL_KEY, body).status, (401, 403))
        self.assertIn(self.operator.ask("DELETE", f"{KEYS}/key_1", LOCAL_KEY).status, (401, 403))
        token = self.operator_token()
        wrong = {**body, "public_key": "ssh-rsa AAAA"}
        self.assertEqual(self.operator.ask("POST", KEYS, token, wrong).status, 400)
        self.assertEqual(self.ssh_keys.list(), ())
