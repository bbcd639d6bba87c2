"""An authority and the certificates that it issues, for tests."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import frozen
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

_DAY = timedelta(days=1)


@frozen
class Authority:
    """Whoever vouches for certificates."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    @cache
    def made(cls, name: str = "Test Authority") -> Authority:
        """An authority of that name, made once."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _named(name)
        builder = _builder(subject, subject, key, -_DAY, _DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        return cls(key, builder.sign(key, hashes.SHA256()))

    @property
    def pem(self) -> str:
        """What to trust."""
        return self.certificate.public_bytes(Encoding.PEM).decode("ascii")

    def issue(self, *names: str, begins: timedelta = -_DAY, ends: timedelta = _DAY) -> bytes:
        """A certificate for these hosts or addresses, and its key, as PEM.

        :param begins: from now, as is C{ends}.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_named(names[0]), self.certificate.subject, key, begins, ends)
        builder = builder.add_extension(_alternatives(names), critical=False)
        return _pem(builder.sign(self.key, hashes.SHA256()), key)


def self_signed(name: str) -> bytes:
    """A certificate that only itself vouches for, and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_named(name), _named(name), key, -_DAY, _DAY)
    builder = builder.add_extension(_alternatives([name]), critical=False)
    return _pem(builder.sign(key, hashes.SHA256()), key)


def only_common_name(authority: Authority, name: str) -> bytes:
    """A certificate of the old kind, without alternative names, and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_named(name), authority.certificate.subject, key, -_DAY, _DAY)
    return _pem(builder.sign(authority.key, hashes.SHA256()), key)


def serving(pem: bytes, protocols: Sequence[str] = ("h2", "http/1.1")) -> ssl.SSLContext:
    """A server's side that shows a certificate.

    :param protocols: that it would speak, the best one first.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as directory:
        path = Path(directory, "chain.pem")
        path.write_bytes(pem)
        context.load_cert_chain(path)
    context.set_alpn_protocols(list(protocols))
    return context


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, begins: timedelta, ends: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    return builder.not_valid_before(now + begins).not_valid_after(now + ends)


def _alternatives(names: Sequence[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_alternative(name) for name in names])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bytes:
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM) + private
