"""Decisions that a key has signed: kept, verified before the effect and inside its transaction."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from attrs import evolve

from aileron.audit import Verification
from aileron.base.converter import from_json
from aileron.base.json import utc
from aileron.client import TerminalKey
from aileron.model.authority import LoopLimits, NewGrant, PasskeyRule, decision_item
from aileron.model.errors import ApprovalStale, Forbidden
from aileron.model.queries import AuditQuery
from aileron.model.runs import Approval, Assertion, Decision, Run, RunState
from aileron.model.signing import (
    NAMESPACE,
    EnrolledKey,
    KeyKind,
    SignedDecisions,
    challenge_of,
    read_statement,
    write_file,
)
from aileron.runner.decisions import NoDecision, check_signed
from aileron.store.copy import open_copy
from aileron.testing import MemorySshKeyBook, SoftwareAuthenticator, SoftwareSshKey
from aileron.vault import Approvers, SshKeys

from .kit import OPERATOR, OPERATOR_URL, RunnerCase

LIFE = "life"


class SignedCase(RunnerCase):
    """A person who decides in a terminal, with an authenticator beside it."""

    key = TerminalKey.make(LIFE)
    passkey = False

    def make_approvers(self) -> Approvers:
        """Approvers that need a signature."""
        enrolled = EnrolledKey(KeyKind.TERMINAL, self.key.public_key)
        return Approvers(self.passkeys, LIFE, {OPERATOR.id: enrolled}.get, self.clock)

    def setUp(self) -> None:
        """Have a passkey."""
        super().setUp()
        self.person = SoftwareAuthenticator(OPERATOR_URL)
        self.passkeys.confirm(self.passkeys.propose("Mine", self.person.create(self.passkeys.offer())))

    def signed(self, *pairs: tuple[Run, Decision], wish: NewGrant | None = None) -> Assertion:
        """One signature for decisions."""
        items = [decision_item(run.id, decision, wish) for run, decision in pairs]
        if not self.passkey:
            told = self.key.sign(items, self.clock.seconds())
            return Assertion(str(told["statement"]), str(told["signature"]))
        _instance, nonce, options = self.approvers.offer()
        statement = self.approvers.write(nonce, items)
        return Assertion(statement, credential=self.person.get({**options, "challenge": challenge_of(statement)}))

    def decide(self, run: Run, digest: str, approved: bool = True, reason: str | None = None) -> Approval:
        """Decide for a digest, signed."""
        decision = Decision(approved, digest, OPERATOR.id, reason)
        return self.sync(self.runner.decisions.decide(run.id, evolve(decision, assertion=self.signed((run, decision)))))

    def kept(self, run: Run, type_: str) -> SignedDecisions:
        """The signature that the record has of the newest decision on a run."""
        (record,) = self.sync(self.store.audit.list(AuditQuery(run_id=run.id, types=(type_,), limit=1))).items
        return from_json(SignedDecisions, record.event.payload["signed"])

    def asked_anew(self, run: Run, why: str, *, tampered: bool) -> None:
        """A new life starts nothing, and asks."""
        self.restart()
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.PENDING, []))
        self.assertIn(why, self.shown(run).stale or "")
        found = self.sync(self.store.audit.list(AuditQuery(run_id=run.id, types=("tamper.detected",), limit=1))).items
        self.assertEqual(bool(found), tampered)


class SignedTests(SignedCase):
    """What a terminal's key signed."""

    def test_kept(self) -> None:
        """It is done, and the record proves offline who decided what."""
        run = self.submit()
        self.approve(run, reason="fine")
        self.assertIs(self.state(run), RunState.COMPLETED)
        signed = self.kept(run, "approval.approved")
        item = signed.verified().of(run.id)
        assert item is not None
        self.assertEqual(
            (item["verdict"], item["reason"], signed.public_key), ("approved", "fine", self.key.public_key)
        )
        row = self.sync(self.store.runs.approval(run.id))
        assert row is not None
        self.assertEqual(row.signed, signed)

    def test_unsigned(self) -> None:
        """Nothing comes of an approval without a signature, nor of one for another run; a grant is not issued."""
        run, other = self.submit(), self.submit("gated", {"text": "other"})
        for decision in (
            self.yes(run),
            evolve(self.yes(run), assertion=self.signed((other, self.yes(other)))),
        ):
            self.fails(self.runner.decisions.decide(run.id, decision), Forbidden)
            wish = NewGrant((), 5, self.shown(run).requested_at.replace(year=2030), session=False)
            self.fails(self.runner.decisions.approve_and_grant(run.id, decision, wish), Forbidden)
        self.assertEqual((self.state(run), self.connector.sendings, self.grants.all()), (RunState.PENDING, [], ()))

    def test_list(self) -> None:
        """One signature decides several runs, each as the list says."""
        runs = [self.submit("gated", {"text": text}) for text in ("one", "two", "three")]
        words = [evolve(self.yes(run), approved=number != 1) for number, run in enumerate(runs)]
        assertion = self.signed(*zip(runs, words, strict=True))
        for run, word in zip(runs, words, strict=True):
            self.sync(self.runner.decisions.decide(run.id, evolve(word, assertion=assertion)))
        states = [RunState.COMPLETED, RunState.DENIED, RunState.COMPLETED]
        self.assertEqual([self.state(run) for run in runs], states)
        self.assertEqual(len({self.kept(runs[at], "approval.approved").digest for at in (0, 2)}), 1)

    def test_denied(self) -> None:
        """A denial is kept with its signature, and identical requests that it denies name the one that was signed."""
        run, twin = self.submit(key="one"), self.submit(key="two")
        self.approve(run, approved=False)
        self.assertEqual([self.state(each) for each in (run, twin)], [RunState.DENIED, RunState.DENIED])
        (record,) = self.sync(self.store.audit.list(AuditQuery(run_id=twin.id, types=("approval.denied",)))).items
        self.assertEqual(record.event.payload["same_as"], run.id)
        signed = self.kept(twin, "approval.denied")
        self.assertEqual([each["run"] for each in read_statement(signed.statement).items], [run.id])

    def test_list_of_identical(self) -> None:
        """Each identical request of a session that a list names has a denial of its own; the list counts once."""
        runs = [self.submit(key=f"key {number}") for number in range(LoopLimits().denials + 2)]
        words = [evolve(self.yes(run), approved=False) for run in runs[1:]]
        assertion = self.signed(*zip(runs[1:], words, strict=True))
        for number, (run, word) in enumerate(zip(runs[1:], words, strict=True)):
            self.assertEqual(self.state(run), RunState.PENDING)
            self.sync(self.runner.decisions.decide(run.id, evolve(word, assertion=assertion)))
            self.assertEqual(self.state(runs[0]), RunState.DENIED, f"which the list does not name, {number}")
            (record,) = self.sync(self.store.audit.list(AuditQuery(run_id=run.id, types=("approval.denied",)))).items
            self.assertEqual((record.event.payload["digest"], record.event.payload.get("same_as")), (word.digest, None))
        self.submit("gated", {"text": "other"})

    def test_row(self) -> None:
        """A signature that was removed from the row, replaced by another one, or altered starts nothing."""
        other = self.submit("gated", {"text": "other"})
        self.approve(other)
        self.connector.sendings.clear()
        for number, altered in enumerate(("NULL", "'{}'", "(SELECT signed FROM approvals WHERE run_id = ?)", "'x'")):
            with self.subTest(altered=altered):
                run = self.held("gated", {"text": f"number {number}"})
                given = (other.id, run.id) if "?" in altered else (run.id,)
                self.sql(f"UPDATE approvals SET signed = {altered} WHERE run_id = ?", *given)
                self.asked_anew(run, "signature", tampered=True)

    def test_early(self) -> None:
        """A recorded start that is earlier than the signed one is refused, whoever wrote it."""
        run = self.held()
        approval = self.sync(self.store.runs.approval(run.id))
        assert approval is not None
        later = evolve(self.yes_before(approval), not_before=self.soon(60))
        told = self.key.sign([decision_item(run.id, later, None)], self.clock.seconds())
        signed = SignedDecisions(KeyKind.TERMINAL, self.key.public_key, str(told["statement"]), str(told["signature"]))
        check_signed(signed, run.id, evolve(approval, not_before=self.soon(60)))
        check_signed(signed, run.id, evolve(approval, not_before=None, decided_at=self.soon(61)))
        for early in (self.soon(59), None):
            self.assertRaises(NoDecision, check_signed, signed, run.id, evolve(approval, not_before=early))

    def yes_before(self, approval: Approval) -> Decision:
        """The decision on an approval."""
        return Decision(True, approval.digest, OPERATOR.id)

    def soon(self, seconds: float) -> datetime:
        """A time from now on."""
        return utc(self.clock.seconds() + seconds)

    def test_grant_proved(self) -> None:
        """The record of a grant has the signature, and verifies offline with all that the grant approved."""
        run = self.submit()
        wish = NewGrant((), 5, self.soon(3600), session=False)
        word = evolve(self.yes(run), assertion=self.signed((run, self.yes(run)), wish=wish))
        self.sync(self.runner.decisions.approve_and_grant(run.id, word, wish))
        self.assertIs(self.state(self.submit(key="more")), RunState.COMPLETED)
        with open_copy(self.database) as copied:
            rows = [row for piece in copied.rows() for row in piece]
        self.assertIn("grant.used", [row[2] for row in rows])
        verification = Verification((), after=1, previous=rows[0][13])
        verification.feed(rows[1:])
        verdict = verification.end()
        self.assertEqual((verdict.broken, verdict.proved), (None, 1))
        (issued,) = self.sync(self.store.audit.list(AuditQuery(types=("grant.issued",)))).items
        self.assertIn("signed", issued.event.payload)

    def test_meanwhile(self) -> None:
        """An objection that arises at the last moment stops the transaction that would begin the effect."""
        run, asked = self.held(), list[str]()

        def objection(action: str, _signed: SignedDecisions) -> str | None:
            asked.append(action)
            return None if len(asked) == 1 else "It was found too late."

        self.patch(self.approvers, "find_objection", objection)
        self.asked_anew(run, "found too late", tampered=False)
        self.assertEqual(asked[:2], ["gated", "gated"])

    def test_before(self) -> None:
        """What an earlier version approved, whose mark covers no signature, is done once after the upgrade."""
        self.patch(self.approvers, "_needs_signatures", False)
        run = self.submit()
        self.sync(self.runner.stop(1.0))
        self.sync(self.runner.decisions.decide(run.id, self.yes(run)))
        self.patch(self.approvers, "_needs_signatures", True)
        self.restart()
        self.assertIs(self.state(run), RunState.COMPLETED)


class PasskeySignedTests(SignedCase):
    """What a passkey signed."""

    passkey = True

    def test_done(self) -> None:
        """It is done; the record has the answer of the authenticator."""
        self.passkeys.require(PasskeyRule(everything=True))
        run = self.submit()
        self.approve(run)
        self.assertIs(self.state(run), RunState.COMPLETED)
        signed = self.kept(run, "approval.approved")
        self.assertIs(signed.kind, KeyKind.PASSKEY)
        signed.verified()

    def test_removed(self) -> None:
        """What it approved is asked for anew where it was removed before the start."""
        run = self.held()
        self.passkeys.reset()
        self.asked_anew(run, "removed since", tampered=False)

    def test_removed_meanwhile(self) -> None:
        """A decision whose passkey is removed before it is recorded is refused: else the record would not verify."""
        admit = self.approvers.admit

        def admit_and_remove(*args: Any) -> Decision:
            admitted = admit(*args)
            self.passkeys.reset()
            return admitted

        self.patch(self.approvers, "admit", admit_and_remove)
        for approved in (True, False):
            run = self.submit("gated", {"text": str(approved)})
            decision = Decision(approved, self.shown(run).digest, OPERATOR.id)
            word = evolve(decision, assertion=self.signed((run, decision)))
            self.fails(self.runner.decisions.decide(run.id, word), ApprovalStale)
            self.assertIs(self.state(run), RunState.PENDING)
            self.passkeys.confirm(self.passkeys.propose("Mine", self.person.create(self.passkeys.offer())))

    def test_rule(self) -> None:
        """So is what a login's key approved before the rule asked for a passkey."""
        self.passkey = False
        run = self.held()
        self.passkeys.require(PasskeyRule(everything=True))
        self.asked_anew(run, "needs a passkey", tampered=False)


class SshSignedTests(SignedCase):
    """What an SSH key signed elsewhere."""

    ssh_key = SoftwareSshKey()

    def make_approvers(self) -> Approvers:
        """Approvers with the key enrolled."""
        self.ssh_keys = SshKeys(MemorySshKeyBook(self.vault), self.clock)
        self.key_id = self.ssh_keys.add("mine", self.ssh_key.public_key).id
        return Approvers(self.passkeys, LIFE, lambda _: None, self.clock, ssh_keys=self.ssh_keys)

    def decide(self, run: Run, digest: str, approved: bool = True, reason: str | None = None) -> Approval:
        """Export, sign and import."""
        decision = Decision(approved, digest, self.key_id, reason)
        statement = self.approvers.export("text\n", [decision_item(run.id, decision, None)])
        signature = self.ssh_key.sign(write_file("text\n", statement), NAMESPACE)
        assertion = Assertion(statement, signature, text="text\n")
        return self.sync(self.runner.decisions.decide(run.id, evolve(decision, assertion=assertion)))

    def test_done(self) -> None:
        """It is done, after a restart too; row and record have the signature with its text."""
        run = self.held()
        self.restart()
        self.assertIs(self.state(run), RunState.COMPLETED)
        signed = self.kept(run, "approval.approved")
        self.assertEqual((signed.kind, signed.text), (KeyKind.SSH, "text\n"))
        signed.verified()

    def test_removed(self) -> None:
        """What a key approved is asked for anew where the key was removed before the start."""
        run = self.held()
        self.ssh_keys.remove(self.key_id)
        self.asked_anew(run, "removed since", tampered=False)

    def test_row(self) -> None:
        """A text that was changed in the row starts nothing."""
        run = self.held()
        self.sql("UPDATE approvals SET signed = json_set(signed, '$.text', 'other') WHERE run_id = ?", run.id)
        self.asked_anew(run, "signature", tampered=True)
