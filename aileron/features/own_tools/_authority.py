"""The certificate authority of one session, which signs for the hosts that are opened for the session alone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from twisted.internet.ssl import CertificateOptions, PrivateCertificate, TLSVersion

from aileron.base.addresses import read_address_block

_EARLIER = timedelta(hours=1)
_VALID = timedelta(days=2)
_PROTOCOL = b"http/1.1"
_MOST_NAME = 64
_ADDRESSES = [x509.IPAddress(each) for each in map(read_address_block, ("0.0.0.0/0", "::/0")) if each is not None]


class SessionAuthority:
    """An authority whose private key is only in this process, and is deleted when the session ends.

    Its certificate has critical name constraints (RFC 5280, section 4.2.1.10), so a program that trusts it believes it
    for these hosts and their subdomains alone.

    :ivar pem: the certificate.
    :param hosts: the names of the hosts, without ports.
    :param now: an aware time. Certificates are valid from one hour before until two days after it.
    """

    def __init__(self, hosts: Iterable[str], now: datetime) -> None:
        self._hosts = frozenset(hosts)
        self._from = now.astimezone(UTC) - _EARLIER
        self._until = now.astimezone(UTC) + _VALID
        self._key, self._leaf_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._make_authority()
        self._options: dict[str, CertificateOptions] = {}
        self.pem = self._certificate.public_bytes(Encoding.PEM).decode("ascii")

    def make_options(self, host: str) -> CertificateOptions:
        """Return the TLS server's settings for a host: its certificate, TLS 1.2 or later, and HTTP/1.1 alone by ALPN.

        :raises ValueError: if the authority is not for this host.
        """
        # guard of own tools: no certificate for another host
        #    -> features.own_tools.test_authority.AuthorityTests.test_other_host
        if host not in self._hosts:
            raise ValueError(f"This session's authority does not cover {host}.")
        if host not in self._options:
            self._options[host] = self._build_options(self._make_leaf(host))
        return self._options[host]

    def _build_options(self, leaf: x509.Certificate) -> CertificateOptions:
        key = self._leaf_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        own = PrivateCertificate.loadPEM(leaf.public_bytes(Encoding.PEM) + key)
        return CertificateOptions(
            privateKey=own.privateKey.original,
            certificate=own.original,
            raiseMinimumTo=TLSVersion.TLSv1_2,
            acceptableProtocols=[_PROTOCOL],
        )

    def _make_authority(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Aileron, for one session")])
        constraints = x509.NameConstraints([x509.DNSName(host) for host in sorted(self._hosts)], _ADDRESSES)
        usage = _make_usage(signs_certificates=True)
        builder = (
            self._begin(name, name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        # guard of own tools: programs believe the authority for these hosts alone
        #    -> features.own_tools.test_authority.AuthorityTests.test_constrained
        builder = builder.add_extension(constraints, critical=True)
        return builder.sign(self._key, SHA256())

    def _make_leaf(self, host: str) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:_MOST_NAME])])
        return (
            self._begin(name, self._certificate.subject, self._leaf_key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_make_usage(signs_certificates=False), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(self._key, SHA256())
        )

    def _begin(self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        signer = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._from)
            .not_valid_after(self._until)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
        )


def _make_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
