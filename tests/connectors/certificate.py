"""Certificates that vouch for themselves, for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache

from attrs import frozen
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from twisted.internet import ssl
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IProtocolFactory, IReactorTime
from twisted.protocols.tls import TLSMemoryBIOFactory


@frozen
class Certificate:
    """A key and its certificate."""

    pem: bytes

    @classmethod
    @cache
    def made(cls, name: str) -> Certificate:
        """One for the host C{name}, valid now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return cls(certificate.public_bytes(Encoding.PEM) + private)

    def verifying(self, host: str) -> IOpenSSLClientConnectionCreator:
        """A client's side that trusts this certificate alone."""
        made: IOpenSSLClientConnectionCreator = ssl.optionsForClientTLS(
            host, trustRoot=ssl.Certificate.loadPEM(self.pem)
        )
        return made

    def serving(self, factory: IProtocolFactory, clock: IReactorTime) -> TLSMemoryBIOFactory:
        """A server's side that shows it."""
        return TLSMemoryBIOFactory(ssl.PrivateCertificate.loadPEM(self.pem).options(), False, factory, clock=clock)
