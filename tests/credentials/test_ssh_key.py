"""Of private keys for SSH: what is kept, and that nothing of one is placed in a request."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ec import SECP256K1, SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.credentials import SshKey
from aileron.model.errors import BindingFailed
from aileron.model.vault import Scope
from tests.credentials.kind import REQUEST, Held

# Made by ssh-keygen -t ed25519, with the passphrase "abc"; nobody's.
LOCKED = b"""-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABCmqOj6rT
MH/p9Sm2588UIzAAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIIX4uswwQ0V+/o0x
OcdN2Cq3tsMaKMQQVNFMT+ye7STZAAAAkIIqlSPdhHPR2U7gH9qiyI9SQy4WJjGs8GiTWo
ClVPJIDdrdGjpznoCTeGVlg17oraEVwLZSdOtgUOkKjuw11t37JSyWHAuOHrDvtDi05FW7
RTud45LPZRfQlAP8Dhj74KTpHwSgH71R8TiL1FModrl85+NedDKdIrw/f1Ix6vI5B0csum
x1pZ+FZkX3kWkAjg==
-----END OPENSSH PRIVATE KEY-----"""


def written(
    key: object,
    encryption: KeySerializationEncryption | None = None,
    form: PrivateFormat = PrivateFormat.OpenSSH,
) -> bytes:
    """A key as its file has it."""
    made: bytes = key.private_bytes(Encoding.PEM, form, encryption or NoEncryption())  # type: ignore[attr-defined]
    return made


class SshKeyTests(SynchronousTestCase):
    """The kind C{ssh_key}."""

    def refusal(self, kept: bytes) -> str:
        """Why something cannot be kept, which repeats nothing of it."""
        error = self.assertRaises(ValueError, SshKey().check, kept)
        self.assertNotIn(kept.decode("latin-1")[:20], str(error))
        return str(error)

    def test_kept(self) -> None:
        """A key in OpenSSH's format or PEM is kept, with or without the end of its last line."""
        for key in (Ed25519PrivateKey.generate(), generate_private_key(SECP256R1()), generate_rsa(65537, 2048)):
            for form in (PrivateFormat.OpenSSH, PrivateFormat.PKCS8):
                SshKey().check(written(key, form=form))
                SshKey().check(written(key, form=form).strip())
        for old in (generate_private_key(SECP256R1()), generate_rsa(65537, 2048)):
            SshKey().check(written(old, form=PrivateFormat.TraditionalOpenSSL))

    def test_refused(self) -> None:
        """A key with a passphrase, of a weak or rare kind, or anything else is refused, and why is said."""
        key = Ed25519PrivateKey.generate()
        self.assertIn("no passphrase", self.refusal(LOCKED))
        for form in (PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL):
            locked = written(generate_rsa(65537, 2048), BestAvailableEncryption(b"abc"), form)
            self.assertIn("no passphrase", self.refusal(locked))
        self.assertIn("RSA of 2048 bits", self.refusal(written(generate_rsa(65537, 1024))))
        self.assertIn(
            "RSA of 2048 bits", self.refusal(written(generate_private_key(SECP256K1()), form=PrivateFormat.PKCS8))
        )
        self.assertIn(
            "OpenSSH's format", self.refusal(b"friendlyName: mine\n" + written(key, form=PrivateFormat.PKCS8))
        )
        for kept in (b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA", written(key)[:200], b"\xff" * 40, b"x" * 10_000):
            self.assertIn("OpenSSH's format", self.refusal(kept))

    def test_authorize(self) -> None:
        """The key is handed to the connection, is secret, and is in no place of a request."""
        kept = written(Ed25519PrivateKey.generate())
        held = Held(kept, Scope(("git.example:22",), "ssh://git@git.example/a.git", "", "{key}"))
        sent = self.successResultOf(Deferred.fromCoroutine(SshKey().authorize(held.use(), REQUEST)))
        self.assertEqual((sent.headers, sent.query, sent.prefix), ((), (), ""))
        self.assertEqual(sent.private_key.encode(), kept)
        self.assertEqual(sent.secrets, SshKey().secrets(kept))
        self.assertIn("".join(kept.decode().split("\n")[1:-2]), sent.secrets)
        self.assertNotIn(kept.decode().split("\n")[1], repr(sent))
        self.failureResultOf(Deferred.fromCoroutine(SshKey().reveal(held.use())), BindingFailed)
