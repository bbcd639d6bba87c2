"""Decisions signed elsewhere by an SSH key: what is taken, and every way in which one is refused."""

from __future__ import annotations

from attrs import evolve
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.model.authority import EnrolledSshKey, PasskeyRule, decision_item
from aileron.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, VaultDamaged, VaultLocked
from aileron.model.interfaces.authority import ISshKeyBook
from aileron.model.runs import Assertion, Decision
from aileron.model.signing import NAMESPACE, KeyKind, write_file
from aileron.testing import MemoryOperators, MemoryPasskeyBook, MemorySshKeyBook, MemoryVault, SoftwareSshKey
from aileron.vault import EXPORT_SECONDS, Approvers, Passkeys, SshKeys
from aileron.vault._format import VERSION, decode, encode, version_of
from aileron.vault.keys import format_versions

from .case import NOON, OpenCase

NOW = 1_760_000_000
RUN = "run-1"
TEXT = "Delete branch old in acme/infra\n"


class ImportCase(SynchronousTestCase):
    """A person with a security key and a plain SSH key, both enrolled."""

    def setUp(self) -> None:
        """Enrol the keys."""
        self.vault, self.clock = MemoryVault(), Clock()
        self.clock.advance(NOW)
        self.book, self.passkey_book = MemorySshKeyBook(self.vault), MemoryPasskeyBook(self.vault)
        self.ssh_keys = SshKeys(self.book, self.clock)
        self.approvers = self.made("life")
        self.plain, self.security_key = SoftwareSshKey(), SoftwareSshKey(application="ssh:")
        self.kept = self.ssh_keys.add("plain", self.plain.public_key)
        self.kept_security_key = self.ssh_keys.add("key", self.security_key.public_key)
        self.yes = Decision(True, "sha256:0", self.kept.id)

    def made(self, instance: str) -> Approvers:
        """The approvers of one run of the daemon."""
        passkeys = Passkeys(self.passkey_book, lambda: {MemoryOperators.ADDRESS}, self.clock)
        return Approvers(passkeys, instance, lambda _: None, self.clock, ssh_keys=self.ssh_keys)

    def export(self, decision: Decision, approvers: Approvers | None = None, run: str = RUN) -> str:
        """The statement of an export."""
        return (approvers or self.approvers).export(TEXT, [decision_item(run, decision, None)])

    def signed(
        self,
        key: SoftwareSshKey | None = None,
        statement: str | None = None,
        text: str = TEXT,
        shown: str | None = None,
        purpose: str = NAMESPACE,
    ) -> Assertion:
        """What is imported: by default what was exported, signed by the plain key.

        :param shown: the text that the person signed, if it is another one than the one imported.
        """
        statement = statement or self.export(self.yes)
        signature = (key or self.plain).sign(write_file(text if shown is None else shown, statement), purpose)
        return Assertion(statement, signature, text=text)

    def admitted(self, assertion: Assertion, decision: Decision | None = None, action: str = "post") -> Decision:
        """What becomes of a decision."""
        return self.approvers.admit(action, RUN, evolve(decision or self.yes, assertion=assertion), None)

    def refused(self, why: str, assertion: Assertion, decision: Decision | None = None, action: str = "post") -> None:
        """It is refused for a reason."""
        error: Forbidden = self.assertRaises(Forbidden, self.admitted, assertion, decision, action)
        self.assertIn(why, error.message)


class ImportTests(ImportCase):
    """Signatures that come from elsewhere."""

    def test_taken(self) -> None:
        """A signature is taken, and can be verified by what is kept of it, with the text that the person read."""
        taken = self.admitted(self.signed()).signed
        assert taken is not None
        self.assertEqual((taken.kind, taken.public_key, taken.text), (KeyKind.SSH, self.plain.public_key, TEXT))
        self.assertEqual(taken.verified().of(RUN), decision_item(RUN, self.yes, None))
        self.assertRaises(ValueError, evolve(taken, text=TEXT + "x").verified)
        self.assertRaises(ValueError, evolve(taken, public_key=self.security_key.public_key).verified)
        self.assertNotEqual(taken.digest, evolve(taken, text=None).digest)

    def test_altered_text(self) -> None:
        """A person who was shown another text has signed another text."""
        self.refused("not valid for this text", self.signed(shown="Nothing much\n"))

    def test_altered_together(self) -> None:
        """A text that was changed before it was signed is not the one exported, nor is another decision below it."""
        statement = self.export(self.yes)
        self.refused("not what the running daemon exported", self.signed(statement=statement, text="Nothing much\n"))
        other = statement.replace("sha256:0", "sha256:1")
        self.refused(
            "not what the running daemon exported", self.signed(statement=other), evolve(self.yes, digest="sha256:1")
        )

    def test_namespace(self) -> None:
        """A signature of this text for another purpose, such as a commit or a file, decides nothing."""
        for purpose in ("file", "git", ""):
            self.refused("not made for this purpose", self.signed(purpose=purpose))

    def test_hash(self) -> None:
        """A signature with another hash decides nothing."""
        self.refused("another hash", self.signed(evolve(self.plain, hash="sha256")))

    def test_replayed(self) -> None:
        """An import is taken once for as long as its nonce is fresh."""
        given = self.signed()
        self.admitted(given)
        for seconds in (0, 299, 2, EXPORT_SECONDS - 302, 0.5):
            self.clock.advance(seconds)
            self.refused("used before", given)
        self.clock.advance(3600)
        self.refused("not what the running daemon exported", given)

    def test_late(self) -> None:
        """An export is good for an hour."""
        given, early = self.signed(), self.signed()
        self.clock.advance(EXPORT_SECONDS - 1)
        self.admitted(early)
        self.clock.advance(1)
        self.refused("not what the running daemon exported", given)

    def test_another_instance(self) -> None:
        """What another daemon exported, or this one before its restart, decides nothing."""
        other = self.made("before")
        self.refused("not valid here", self.signed(statement=self.export(self.yes, other)))
        twin = self.made("life")
        self.refused("not what the running daemon exported", self.signed(statement=self.export(self.yes, twin)))

    def test_strangers(self) -> None:
        """A key that is not enrolled, or another one than the decision names, decides nothing."""
        self.refused("not enrolled", self.signed(SoftwareSshKey()))
        self.refused("not enrolled", self.signed(self.security_key))
        self.assertIsNone(self.approvers.find_signer(str(self.signed(SoftwareSshKey()).signature)))
        found = self.approvers.find_signer(str(self.signed(self.security_key).signature))
        self.assertEqual(found, self.kept_security_key)
        self.assertRaises(InvalidRequest, self.approvers.find_signer, "nothing")

    def test_removed(self) -> None:
        """A removed key decides nothing, and what it approved and has not begun is approved no more."""
        taken = self.admitted(self.signed()).signed
        assert taken is not None
        self.assertIsNone(self.approvers.find_objection("post", taken))
        given = self.signed()
        self.ssh_keys.remove(self.kept.id)
        self.refused("not enrolled", given)
        self.assertIn("removed", self.approvers.find_objection("post", taken) or "")

    def test_another(self) -> None:
        """A signature is for one run, digest, verdict and reason."""
        for changed in ({"digest": "sha256:1"}, {"approved": False}, {"reason": "other"}):
            self.refused("not valid here", self.signed(), evolve(self.yes, **changed))
        self.refused("not valid here", self.signed(statement=self.export(self.yes, run="run-2")))

    def test_as_a_login(self) -> None:
        """An answer to another question is no export, and an export no answer."""
        mine = self.approvers._nonces.make("decide")
        statement = self.approvers.write(mine, [decision_item(RUN, self.yes, None)])
        self.refused("not what the running daemon exported", self.signed(statement=statement))

    def test_malformed(self) -> None:
        """A signature of any other form is refused."""
        for signature in ("", "x", "-----BEGIN SSH SIGNATURE-----\n!\n-----END SSH SIGNATURE-----", "A" * 100_000):
            self.refused("signature", evolve(self.signed(), signature=signature))


class PasskeyRuleTests(ImportCase):
    """Actions that need a passkey."""

    def setUp(self) -> None:
        """Require one."""
        super().setUp()
        self.passkey_book.keep_passkeys((), PasskeyRule(everything=True))
        self.yes = evolve(self.yes, decided_by=self.kept_security_key.id)

    def test_security_key(self) -> None:
        """A security key that verified the person is as good as a passkey."""
        taken = self.admitted(self.signed(self.security_key)).signed
        assert taken is not None
        self.assertIsNone(self.approvers.find_objection("post", taken))

    def test_not_verified(self) -> None:
        """A security key that was only touched, and a plain key, are not."""
        self.refused("needs your passkey", self.signed(evolve(self.security_key, verifies=False)))
        by_plain = evolve(self.yes, decided_by=self.kept.id)
        given = self.signed(statement=self.export(by_plain))
        self.refused("needs your passkey", given, by_plain)

    def test_by_now(self) -> None:
        """A rule that came later applies to what a plain key approved before."""
        self.passkey_book.keep_passkeys((), PasskeyRule())
        by_plain = evolve(self.yes, decided_by=self.kept.id)
        taken = self.admitted(self.signed(statement=self.export(by_plain)), by_plain).signed
        assert taken is not None
        self.passkey_book.keep_passkeys((), PasskeyRule(everything=True))
        self.assertIn("needs a passkey", self.approvers.find_objection("post", taken) or "")


class EnrolmentTests(ImportCase):
    """Keys that come and go."""

    def test_kept(self) -> None:
        """Each is listed, with its name and the line that was given."""
        self.assertTrue(verifyObject(ISshKeyBook, self.book))
        self.assertEqual([each.name for each in self.approvers.ssh_keys()], ["plain", "key"])
        self.assertEqual(self.kept.public_key, self.plain.public_key)

    def test_refused(self) -> None:
        """No key twice, no line that is none, and no more than sixteen."""
        self.assertRaises(Conflict, self.approvers.add_ssh_key, "again", self.plain.public_key + " comment")
        self.assertRaises(InvalidRequest, self.approvers.add_ssh_key, "none", "ssh-rsa AAAA")
        self.assertRaises(NotFound, self.approvers.remove_ssh_key, "key_0")
        for number in range(14):
            self.approvers.add_ssh_key(str(number), SoftwareSshKey().public_key)
        self.assertRaises(Conflict, self.approvers.add_ssh_key, "more", SoftwareSshKey().public_key)

    def test_locked(self) -> None:
        """Nothing changes while the vault is locked."""
        self.vault.lock()
        self.assertRaises(VaultLocked, self.approvers.add_ssh_key, "new", SoftwareSshKey().public_key)
        self.assertRaises(VaultLocked, self.approvers.remove_ssh_key, self.kept.id)

    def test_none(self) -> None:
        """Where there can be no SSH keys, there are none."""
        passkeys = Passkeys(self.passkey_book, set, self.clock)
        bare = Approvers(passkeys, "life", lambda _: None, self.clock)
        self.assertEqual(bare.ssh_keys(), ())
        self.assertRaises(Conflict, bare.add_ssh_key, "new", self.plain.public_key)
        self.assertRaises(Conflict, bare.remove_ssh_key, self.kept.id)


class FileTests(OpenCase):
    """SSH keys in the vault's file."""

    def test_version(self) -> None:
        """A file has the first version until there is an SSH key, and again when there is none."""
        key = EnrolledSshKey("key_1", "mine", "ssh-ed25519 AAAA", NOON)
        self.assertEqual(self.version(), 1)
        self.vault.keep_ssh_keys([key])
        self.assertEqual((self.version(), self.vault.ssh_keys()), (VERSION, (key,)))
        self.assertEqual(format_versions(self.path), (2, 2))
        self.vault.keep_ssh_keys([])
        self.assertEqual((self.version(), format_versions(self.path)), (1, (1, 1)))

    def test_wrong_version(self) -> None:
        """A version that does not go with the contents is refused, and so is one that nobody knows."""
        data = self.path.read_bytes()
        for version in (b"2", b"3", b"0", b"true"):
            changed = data.replace(b'"version": 1', b'"version": ' + version)
            self.assertRaises(VaultDamaged, decode, changed)
        self.assertEqual(encode(decode(data)), data)

    def version(self) -> int:
        """The version of the file."""
        return version_of(self.path.read_bytes())
