"""The certificate of the public name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import utc
from aileron.features.phone._certificate_store import CertificateStore
from aileron.features.phone._certificates import Certificate, is_due, make_certificate, read_given, renew
from aileron.features.phone.values import TARGET, PhoneSettings
from aileron.model.errors import AileronError, InvalidRequest
from aileron.model.vault import VaultState
from aileron.testing import MemoryBindings, MemoryVault

HOST = "phone.example.org"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def key_of(certificate: Certificate) -> str:
    """The private key in PEM."""
    return certificate.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def pem_of(*certificates: x509.Certificate) -> str:
    """Certificates in PEM."""
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


class MakingTests(SynchronousTestCase):
    """Aileron's own authority and certificate."""

    def verify(self, certificate: Certificate, host: str, at: datetime = NOW) -> None:
        """Verify as a browser does."""
        store = Store([certificate.chain[-1]])
        verifier = PolicyBuilder().store(store).time(at).build_server_verifier(x509.DNSName(host))
        verifier.verify(certificate.leaf, [])

    def test_verifies(self) -> None:
        """A browser that trusts the authority accepts the name, and no other."""
        made = make_certificate(HOST, NOW)
        self.verify(made, HOST)
        self.assertRaises(VerificationError, self.verify, made, "other.example.org")
        self.assertTrue(made.names(HOST))
        self.assertFalse(made.names("example.org"))

    def test_constrained(self) -> None:
        """The authority's key in other hands vouches for no other name."""
        made = make_certificate(HOST, NOW)
        constraints = made.chain[-1].extensions.get_extension_for_class(x509.NameConstraints)
        self.assertTrue(constraints.critical)
        self.assertEqual(constraints.value.permitted_subtrees, [x509.DNSName(HOST)])
        forged = renew(made, "bank.example.org", NOW)
        self.assertRaises(VerificationError, self.verify, forged, "bank.example.org")

    def test_kept(self) -> None:
        """What the vault keeps is one word of visible ASCII, and is read back whole; the repr shows no key."""
        made = make_certificate(HOST, NOW)
        written = made.write()
        self.assertTrue(all(0x21 <= byte <= 0x7E for byte in written))
        again = Certificate.read(written)
        self.assertEqual((key_of(again), again.chain, again.is_own), (key_of(made), made.chain, True))
        self.assertNotIn("PrivateKey", repr(made))
        for bad in (b"x", b"a.b.c", written.rpartition(b".")[0][:-3]):
            self.assertRaises(ValueError, Certificate.read, bad)

    def test_renewed(self) -> None:
        """Near its end the leaf is renewed by the authority that the phone knows."""
        made = make_certificate(HOST, NOW)
        later = NOW + timedelta(days=380)
        self.assertFalse(is_due(made, HOST, NOW))
        self.assertTrue(is_due(made, HOST, later))
        renewed = renew(made, HOST, later)
        self.assertEqual(renewed.chain[-1], made.chain[-1])
        self.assertEqual(renewed.fingerprint(), made.fingerprint())
        self.verify(renewed, HOST, later)


class GivenTests(SynchronousTestCase):
    """A certificate that the user brings."""

    def test_taken(self) -> None:
        """It is used as it is, and never renewed here."""
        made = make_certificate(HOST, NOW)
        given = read_given(pem_of(*made.chain), key_of(made), HOST, NOW)
        self.assertFalse(given.is_own)
        self.assertFalse(is_due(given, HOST, NOW + timedelta(days=390)))
        self.assertEqual(Certificate.read(given.write()).pem(), pem_of(*made.chain))
        self.assertRaises(ValueError, renew, given, HOST, NOW)

    def test_refused(self) -> None:
        """It must be of this name, valid now and fit its key; an error repeats nothing of the key."""
        made, other = make_certificate(HOST, NOW), make_certificate("other.example", NOW)
        late = NOW + timedelta(days=500)
        for chain, key, now in (
            (pem_of(*made.chain), key_of(other), NOW),
            (pem_of(*other.chain), key_of(other), NOW),
            (pem_of(*made.chain), key_of(made), late),
            ("nothing", key_of(made), NOW),
            (pem_of(*made.chain), "nothing", NOW),
            (pem_of(*made.chain), pem_of(*made.chain), NOW),
        ):
            error = self.assertRaises(InvalidRequest, read_given, chain, key, HOST, now)
            self.assertNotIn(key_of(made)[40:80], repr(error.details) + error.message)

    def test_kind(self) -> None:
        """A key of another kind is refused."""
        made = make_certificate(HOST, NOW)
        weak = ec.generate_private_key(ec.SECP256R1()).public_key()
        self.assertRaises(InvalidRequest, read_given, pem_of(*made.chain), repr(weak), HOST, NOW)


class StoreTests(SynchronousTestCase):
    """The certificate in the vault."""

    def setUp(self) -> None:
        """An unlocked vault without a certificate."""
        self.clock = Clock()
        self.clock.advance(1_760_000_000)
        self.vault = MemoryVault(VaultState.UNLOCKED)
        self.bindings = MemoryBindings(self.vault)
        self.store = self.of(HOST)

    def of(self, host: str) -> CertificateStore:
        """The store of a name."""
        return CertificateStore(PhoneSettings(f"https://{host}"), self.bindings, self.clock)

    def load(self) -> Certificate | None:
        """The certificate there."""
        return self.successResultOf(Deferred.fromCoroutine(self.store.load()))

    def test_made_once(self) -> None:
        """It is made once, bound to C{phone://tls}, and then found again."""
        self.assertIsNone(self.load())
        made = self.successResultOf(Deferred.fromCoroutine(self.store.make()))
        again = self.successResultOf(Deferred.fromCoroutine(self.store.make()))
        self.assertEqual(again.fingerprint(), made.fingerprint())
        (bound,) = self.bindings.list()
        self.assertEqual(bound.connector, TARGET)

    def test_renewed(self) -> None:
        """A leaf that is due is renewed in the vault, once."""
        made = self.successResultOf(Deferred.fromCoroutine(self.store.make()))
        self.clock.advance(380 * 86_400)
        renewed, again = self.load(), self.load()
        assert renewed is not None and again is not None
        self.assertNotEqual(renewed.leaf, made.leaf)
        self.assertEqual((renewed.fingerprint(), renewed.leaf), (made.fingerprint(), again.leaf))

    def test_another_name(self) -> None:
        """What was sealed for one name opens for no other."""
        self.successResultOf(Deferred.fromCoroutine(self.store.make()))
        self.store = self.of("other.example")
        self.failureResultOf(Deferred.fromCoroutine(self.store.load()), AileronError)

    def test_put(self) -> None:
        """A given one takes the place of ours."""
        self.successResultOf(Deferred.fromCoroutine(self.store.make()))
        given = make_certificate(HOST, utc(self.clock.seconds()))
        put = self.store.put(pem_of(*given.chain), key_of(given))
        self.successResultOf(Deferred.fromCoroutine(put))
        found = self.load()
        assert found is not None
        self.assertEqual((found.leaf, found.is_own), (given.leaf, False))
