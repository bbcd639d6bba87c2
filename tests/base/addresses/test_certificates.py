"""Which certificate authorities are trusted."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from cryptography import x509
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.addresses import read_certificates, system_authorities
from tests.connectors.certificate import Certificate

_END = b"-----END CERTIFICATE-----"
BROKEN = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


class AuthoritiesTests(SynchronousTestCase):
    """Bundles of the system, and files that the operator names."""

    def setUp(self) -> None:
        made = (Certificate.made(name).pem for name in ("one.example", "other.example"))
        self.one, self.other = (pem[: pem.index(_END) + len(_END)] + b"\n" for pem in made)

    def bundle(self, *parts: bytes) -> str:
        """A file of certificates with words before them."""
        path = Path(self.mktemp())
        path.write_bytes(b"Some words.\n" + b"".join(parts))
        return str(path)

    def test_first_bundle(self) -> None:
        """The first bundle that holds certificates is the one, and what is broken in it vouches for nobody."""
        bundles = ("/nowhere", self.bundle(), self.bundle(BROKEN, self.one), self.bundle(self.other))
        self.assertEqual(system_authorities(bundles), (self.one.strip(),))
        self.assertEqual(system_authorities(("/nowhere", self.bundle(BROKEN))), ())

    def test_odd(self) -> None:
        """What the library thinks of a certificate that it reads is not printed: the system's are as they are."""
        read = x509.load_pem_x509_certificate

        def warn(block: bytes) -> object:
            warnings.warn("its serial number is odd", UserWarning, stacklevel=1)
            return read(block)

        self.patch(x509, "load_pem_x509_certificate", warn)
        self.assertEqual(system_authorities((self.bundle(self.one),)), (self.one.strip(),))
        self.assertEqual(self.flushWarnings(), [])

    def test_environment(self) -> None:
        """What the environment names is nobody's authority."""
        for name, value in (("SSL_CERT_FILE", self.bundle(self.one)), ("SSL_CERT_DIR", os.getcwd())):
            self.addCleanup(_restore, name, os.environ.get(name))
            os.environ[name] = value
        self.assertEqual(system_authorities((self.bundle(self.other),)), (self.other.strip(),))

    def test_named_file(self) -> None:
        """A file that the operator names must hold certificates, and none that is broken."""
        self.assertEqual(read_certificates(b"x\n" + self.one + self.other), (self.one.strip(), self.other.strip()))
        for pem, problem in (
            (b"", "no certificate"),
            (b"canary", "no certificate"),
            (self.one + BROKEN, "that is none"),
        ):
            message = str(self.assertRaises(ValueError, read_certificates, pem))
            self.assertIn(problem, message)
            self.assertNotIn("canary", message)


def _restore(name: str, value: str | None) -> None:
    if value is None:
        del os.environ[name]
    else:
        os.environ[name] = value
