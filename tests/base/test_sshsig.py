"""Signatures of OpenSSH: what they are for, who touched what, and everything that is none."""

from __future__ import annotations

import base64

from attrs import evolve
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.sshsig import read_armored, read_ssh_key, read_ssh_signature
from aileron.testing import SoftwareSshKey

FOR = "purpose@here"
TEXT = "the text\n"

# Made once by ssh-keygen of OpenSSH 9.2: `ssh-keygen -Y sign -n purpose@here`, of TEXT.
REAL_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH1rhI6MhOluoJDFf940YYGjOXrveQHWf4otvN09rzJ5 me"
REAL_SIGNATURE = """-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgfWuEjoyE6W6gkMV/3jRhgaM5eu
95AdZ/ii283T2vMnkAAAAMcHVycG9zZUBoZXJlAAAAAAAAAAZzaGE1MTIAAABTAAAAC3Nz
aC1lZDI1NTE5AAAAQBgkClBmGtKNgw/OGWtMEmYw0K+zZieNQRXLH+rOux+XrLsS+m6ymb
Ath6QyfoZbKahYjlHmDOuigF01EpBrhwI=
-----END SSH SIGNATURE-----
"""


def verify(armored: str, text: str = TEXT, purpose: str = FOR) -> bool:
    """Verify a signature in its text form."""
    return read_ssh_signature(read_armored(armored)).verify(text.encode(), purpose)


class SignatureCase(SynchronousTestCase):
    """A key, and what is refused."""

    key = SoftwareSshKey()

    def refused(self, why: str, armored: str, text: str = TEXT) -> None:
        """A signature is refused for a reason."""
        self.assertIn(why, str(self.assertRaises(ValueError, verify, armored, text)))


class SignatureTests(SignatureCase):
    """Plain keys."""

    def test_kinds(self) -> None:
        """Ed25519 and ECDSA keys sign; neither proves a person."""
        for key in (Ed25519PrivateKey.generate(), ec.generate_private_key(ec.SECP256R1())):
            self.assertFalse(verify(SoftwareSshKey(key).sign(TEXT, FOR)))

    def test_real(self) -> None:
        """A signature of the real program is taken."""
        key, comment = read_ssh_key(REAL_KEY)
        self.assertEqual(comment, "me")
        found = read_ssh_signature(read_armored(REAL_SIGNATURE))
        self.assertEqual((found.key, found.verify(TEXT.encode(), FOR)), (key, False))

    def test_altered(self) -> None:
        """Another text has another signature."""
        self.refused("not valid for this text", self.key.sign(TEXT, FOR), TEXT + " ")

    def test_namespace(self) -> None:
        """A signature for another purpose is none."""
        self.refused("was not made for this purpose", self.key.sign(TEXT, "file"))

    def test_hash(self) -> None:
        """Another hash is none of ours."""
        self.refused("another hash", evolve(self.key, hash="sha256").sign(TEXT, FOR))

    def test_malformed(self) -> None:
        """Whatever else comes is refused by a ValueError, and quickly."""
        good = self.key.sign(TEXT, FOR)
        blob = read_armored(good)
        for text in ("", "x", good[:-40], good.replace("SSH SIGNATURE", "PGP SIGNATURE"), good + "x", "A" * 10**6):
            self.assertRaises(ValueError, read_armored, text)
        for data in (b"", blob[:-1], blob + b"x", b"SSHSIX" + blob[6:], b"SSHSIG\0\0\0\2" + blob[10:]):
            self.assertRaises(ValueError, read_ssh_signature, data)
        for at in range(len(blob)):
            changed = blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]
            self.assertRaises(ValueError, lambda each=changed: read_ssh_signature(each).verify(TEXT.encode(), FOR))


class SecurityKeyTests(SignatureCase):
    """Security keys, which report touch and verification."""

    key = SoftwareSshKey(application="ssh:")

    def test_verified(self) -> None:
        """The flags of the security key are told, by both kinds."""
        for key in (self.key, evolve(self.key, key=ec.generate_private_key(ec.SECP256R1()))):
            self.assertTrue(verify(key.sign(TEXT, FOR)))
            self.assertFalse(verify(evolve(key, verifies=False).sign(TEXT, FOR)))

    def test_untouched(self) -> None:
        """A security key that was not touched signs nothing."""
        self.refused("without a touch", evolve(self.key, touches=False).sign(TEXT, FOR))

    def test_flags(self) -> None:
        """The flags are signed."""
        good = evolve(self.key, verifies=False).sign(TEXT, FOR)
        blob = bytearray(read_armored(good))
        blob[-5] |= 4
        found = read_ssh_signature(bytes(blob))
        self.assertRaises(ValueError, found.verify, TEXT.encode(), FOR)


class KeyTests(SynchronousTestCase):
    """Public keys."""

    def test_read(self) -> None:
        """A line is read, and written again without its comment."""
        for made in (SoftwareSshKey(), SoftwareSshKey(application="ssh:")):
            key, comment = read_ssh_key(f"{made.public_key} me@there and more\n")
            self.assertEqual((key.write(), comment), (made.public_key, "me@there and more"))
            self.assertEqual(key.is_hardware, bool(made.application))
            self.assertTrue(key.fingerprint.startswith("SHA256:"))

    def test_refused(self) -> None:
        """Other lines are refused."""
        rsa = base64.b64encode(b"\0\0\0\7ssh-rsa\0\0\0\1\3").decode()
        good = SoftwareSshKey().public_key
        for line in (
            "",
            "ssh-ed25519",
            "ssh-ed25519 !",
            f"ssh-rsa {rsa}",
            good.replace("ssh-", "sk-ssh-", 1),
            good[:-8],
        ):
            self.assertRaises(ValueError, read_ssh_key, line)
