"""The authority of a session is believed for the session's hosts, and for nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from ssl import PROTOCOL_TLS_CLIENT, VERIFY_X509_STRICT, SSLContext

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from twisted.python.filepath import FilePath
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.own_tools._authority import MOST_LEAVES, SessionAuthority
from tests.features.own_tools.tls import openssl_connects

HOSTS = ("api.example", "uploads.example")
NOW = datetime.now(UTC)  # as OpenSSL looks at the machine's clock
Name = x509.DNSName | x509.IPAddress


def read(pem: str) -> x509.Certificate:
    """Return a certificate."""
    return x509.load_pem_x509_certificate(pem.encode())


def serve(authority: SessionAuthority, host: str) -> x509.Certificate:
    """Return the certificate that a server shows for a host."""
    shown = authority.make_options(host).certificate
    assert shown is not None
    return shown.to_cryptography()


class AuthorityTests(SynchronousTestCase):
    """An authority for two hosts."""

    def setUp(self) -> None:
        self.make(NOW)

    def make(self, now: datetime) -> None:
        """Make the authority at a time."""
        self.authority = SessionAuthority(HOSTS, now)
        self.certificate = read(self.authority.pem)

    def sign(self, *names: Name, is_authority: bool = False) -> x509.Certificate:
        """Return what somebody with the authority's key could sign."""
        signer, key = self.certificate, self.authority._leaf_key.public_key()
        usage = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]) if not is_authority else x509.Name.from_rfc4514_string("CN=Below"))
            .issuer_name(signer.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - timedelta(minutes=1))
            .not_valid_after(NOW + timedelta(hours=1))
            .add_extension(x509.SubjectAlternativeName(names), critical=True)
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.authority._key.public_key()), critical=False
            )
            .add_extension(usage, critical=False)
            .sign(self.authority._key, SHA256())
        )

    def served(self, host: str) -> x509.Certificate:
        """Return the certificate that connections to a host are answered with."""
        return serve(self.authority, host)

    def openssl_believes(self, leaf: x509.Certificate, name: str = "", other: SessionAuthority | None = None) -> bool:
        """Return whether OpenSSL's client connects to a server with a certificate if it trusts the authority.

        :param name: the name that it expects, if it does.
        :param other: another authority whose certificate it is.
        """
        own = FilePath(self.mktemp())
        key = (other or self.authority)._leaf_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        own.setContent(leaf.public_bytes(Encoding.PEM) + key)
        client = SSLContext(PROTOCOL_TLS_CLIENT)
        client.load_verify_locations(cadata=self.authority.pem)
        client.verify_flags |= VERIFY_X509_STRICT
        client.check_hostname = bool(name)
        return openssl_connects(client, own.path, name or None)

    def library_believes(self, leaf: x509.Certificate, name: Name, at: datetime = NOW) -> bool:
        """Return whether another verifier believes a certificate for a name if it trusts the authority."""
        verifier = PolicyBuilder().store(Store([self.certificate])).time(at).build_server_verifier(name)
        try:
            verifier.verify(leaf, [])
        except VerificationError:
            return False
        return True

    def believed(self, leaf: x509.Certificate, name: Name) -> tuple[bool, bool]:
        """Return what both verifiers say."""
        return self.openssl_believes(leaf), self.library_believes(leaf, name, NOW)

    def test_believed(self) -> None:
        """The certificates of its hosts are believed, each for its own host alone."""
        for host, other in (HOSTS, HOSTS[::-1]):
            leaf = self.served(host)
            self.assertEqual((True, True), self.believed(leaf, x509.DNSName(host)))
            self.assertTrue(self.openssl_believes(leaf, host))
            self.assertFalse(self.library_believes(leaf, x509.DNSName(other)))
            self.assertFalse(self.openssl_believes(leaf, other))

    def test_times(self) -> None:
        """They are believed from an hour before until two days after it was made."""
        for hours, believed in ((-1.1, False), (-0.9, True), (0, True), (47.9, True), (48.1, False)):
            self.make(NOW - timedelta(hours=hours))
            leaf, name = self.served(HOSTS[0]), x509.DNSName(HOSTS[0])
            self.assertEqual((believed, believed), self.believed(leaf, name), hours)

    def test_constrained(self) -> None:
        """With its key, nothing is signed that is believed for another name or for an address."""
        self.assertEqual((True, True), self.believed(self.sign(x509.DNSName(HOSTS[0])), x509.DNSName(HOSTS[0])))
        others: tuple[Name, ...] = (
            x509.DNSName("bank.example"),
            x509.DNSName("xapi.example"),
            x509.DNSName("example"),
            x509.DNSName("*.example"),
            x509.IPAddress(IPv4Address("127.0.0.1")),
            x509.IPAddress(IPv6Address("::1")),
        )
        for name in others:
            shown = x509.DNSName("some.example") if name == x509.DNSName("*.example") else name
            self.assertEqual((False, False), self.believed(self.sign(name), shown), name)
            self.assertFalse(self.openssl_believes(self.sign(x509.DNSName(HOSTS[0]), name)), name)

    def test_wildcard(self) -> None:
        """A wildcard is served for each name that it stands for, and nothing else is."""
        self.authority = SessionAuthority(("*.files.api.example", "api.example"), NOW)
        self.certificate = read(self.authority.pem)
        for host in ("acme.files.api.example", "api.example"):
            leaf = self.served(host)
            self.assertEqual((True, True), self.believed(leaf, x509.DNSName(host)))
        for host in ("files.api.example", "a.b.files.api.example", "acme.example"):
            self.assertRaises(ValueError, self.authority.make_options, host)
        self.assertEqual((False, False), self.believed(self.sign(x509.DNSName("x.example")), x509.DNSName("x.example")))

    def test_many_hosts(self) -> None:
        """However many names are asked for, few certificates are kept; one is made again when needed."""
        authority = SessionAuthority(("*.files.example.org",), NOW)
        first = authority.make_options("a0.files.example.org")
        for number in range(MOST_LEAVES):
            authority.make_options(f"a{number}.files.example.org")
        self.assertIs(authority.make_options("a0.files.example.org"), first)
        authority.make_options("b.files.example.org")
        self.assertEqual(len(authority._options), MOST_LEAVES)
        self.assertIsNot(authority.make_options("a0.files.example.org"), first)

    def test_no_other_authority(self) -> None:
        """It can make no authority: one that it signed is not believed."""
        below = self.sign(x509.DNSName(HOSTS[0]), is_authority=True)
        self.assertEqual((False, False), self.believed(below, x509.DNSName(HOSTS[0])))
        limits = self.certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        self.assertEqual((True, True, 0), (limits.critical, limits.value.ca, limits.value.path_length))

    def test_critical(self) -> None:
        """A program that does not know name constraints refuses it, since they are critical; all addresses are out."""
        found = self.certificate.extensions.get_extension_for_class(x509.NameConstraints)
        self.assertTrue(found.critical)
        self.assertEqual([x509.DNSName(each) for each in HOSTS], found.value.permitted_subtrees)
        excluded = [str(each.value) for each in found.value.excluded_subtrees or ()]
        self.assertEqual(["0.0.0.0/0", "::/0"], excluded)

    def test_other_host(self) -> None:
        """It serves no other host, not even one below its hosts."""
        for host in ("bank.example", "www.api.example", ""):
            self.assertRaises(ValueError, self.authority.make_options, host)
        self.assertIs(self.authority.make_options(HOSTS[0]), self.authority.make_options(HOSTS[0]))

    def test_alone(self) -> None:
        """Two sessions have two authorities, and no private key is in what a session gets."""
        other = SessionAuthority(HOSTS, NOW)
        self.assertNotEqual(self.certificate.public_key(), read(other.pem).public_key())
        self.assertNotIn("PRIVATE", self.authority.pem)
        self.assertFalse(self.openssl_believes(serve(other, HOSTS[0]), other=other))
