"""The TLS certificate of the phone's pages: made here under an authority for this host name, or given by the user."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from attrs import field, frozen
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_pem_private_key,
)

from aileron.base.certificates import PrivateKey, Validity, make_authority, make_key, make_leaf
from aileron.base.signatures import read_base64url, write_base64url
from aileron.model.errors import InvalidRequest

_AUTHORITY_DAYS, _LEAF_DAYS, _RENEWED_DAYS = 3650, 397, 60
_EARLIER = timedelta(days=1)  # a phone's clock may be behind
_MOST_CHAIN = 5
_LEAST_RSA_BITS = 2048


@frozen
class Certificate:
    """A TLS certificate with its private key.

    :ivar chain: the certificate of the host name first, then those that lead to the authority.
    :ivar authority_key: the private key of the authority that we made, or None if the certificate was given by the
        user.
    """

    key: PrivateKey = field(repr=False)
    chain: tuple[x509.Certificate, ...]
    authority_key: PrivateKey | None = field(default=None, repr=False)

    @property
    def leaf(self) -> x509.Certificate:
        """The certificate of the host name, without those of its authority."""
        return self.chain[0]

    @property
    def ends_at(self) -> datetime:
        """The time at which the certificate expires."""
        return self.leaf.not_valid_after_utc

    @property
    def is_own(self) -> bool:
        """True if Aileron made the certificate."""
        return self.authority_key is not None

    def pem(self) -> str:
        """Return the certificates, in PEM, that a phone or a proxy must trust: our authority, or the given chain."""
        shown = self.chain[-1:] if self.is_own else self.chain
        return "".join(each.public_bytes(Encoding.PEM).decode("ascii") for each in shown)

    def fingerprint(self) -> str:
        """Return SHA-256 of the first certificate in L{pem}, in hexadecimal with colons."""
        shown = self.chain[-1] if self.is_own else self.leaf
        return shown.fingerprint(SHA256()).hex(":").upper()

    def names(self, host: str) -> bool:
        """Return whether the certificate is for a host name. A wildcard counts for one label."""
        try:
            extensions = self.leaf.extensions
            found = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return False
        given = {each.lower() for each in found.get_values_for_type(x509.DNSName)}
        return host in given or f"*.{host.partition('.')[2]}" in given

    def key_pem(self) -> str:
        """Return the leaf and its private key in PEM, for the TLS library."""
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return (self.leaf.public_bytes(Encoding.PEM) + key).decode("ascii")

    def sent_pem(self) -> list[str]:
        """Return the certificates to send after the leaf, in PEM: the given chain, or none for our authority."""
        chain = () if self.is_own else self.chain[1:]
        return [each.public_bytes(Encoding.PEM).decode("ascii") for each in chain]

    def write(self) -> bytes:
        """Return the certificate and its keys as one word of visible ASCII, for the vault."""
        parts = [_write_key(self.key), *(each.public_bytes(Encoding.DER) for each in self.chain)]
        own = b"" if self.authority_key is None else _write_key(self.authority_key)
        return ".".join(map(write_base64url, (own, *parts))).encode("ascii")

    @classmethod
    def read(cls, data: bytes) -> Certificate:
        """Parse what L{write} has written.

        :raises ValueError: if it is something else.
        """
        own, key, *chain = (read_base64url(each) for each in data.decode("ascii").split("."))
        certificates = tuple(map(x509.load_der_x509_certificate, chain))
        if not certificates:
            raise ValueError("has no certificate")
        return cls(_load_key(key), certificates, _load_key(own) if own else None)


def make_certificate(host: str, now: datetime) -> Certificate:
    """Make an authority that can vouch for this name alone, and a certificate of the name."""
    key = make_key()
    valid = _last(now, _AUTHORITY_DAYS)
    # guard of the phone: our authority vouches for this name alone
    #    -> phone.test_certificates.MakingTests.test_constrained, instead authority = make_authority("", "", key, valid)
    authority = make_authority(f"Aileron of {host}", (host,), key, valid)
    return renew(Certificate(key, (authority,), key), host, now)


def renew(old: Certificate, host: str, now: datetime) -> Certificate:
    """Return a certificate of the name with a new key, by the authority of C{old}.

    :raises ValueError: if C{old} was given by the user.
    """
    if old.authority_key is None:
        raise ValueError("only its authority can renew it")
    authority, key = old.chain[-1], make_key()
    leaf = make_leaf(host, key, authority, old.authority_key, _last(now, _LEAF_DAYS))
    return Certificate(key, (leaf, authority), old.authority_key)


def is_due(certificate: Certificate, host: str, now: datetime) -> bool:
    """Return whether a certificate of ours should be renewed."""
    soon = certificate.ends_at - now < timedelta(days=_RENEWED_DAYS)
    return certificate.is_own and (soon or not certificate.names(host))


def read_given(chain: str, key: str, host: str, now: datetime) -> Certificate:
    """Parse a certificate and key that the user brings, in PEM.

    :raises InvalidRequest: if they cannot be read, do not belong together, or are not for this name now. The message
        repeats nothing of the key.
    """
    try:
        certificates = tuple(x509.load_pem_x509_certificates(chain.encode("ascii")))
    except ValueError:
        raise _problem("/certificate", "must be certificates in PEM, the one of your name first") from None
    try:
        private = _check_key(load_pem_private_key(key.encode("ascii"), None))
    except (ValueError, TypeError):
        raise _problem("/key", "must be a private key in PEM without a passphrase, of ECDSA or RSA") from None
    given = Certificate(private, certificates[:_MOST_CHAIN])
    if _public(given.leaf.public_key()) != _public(private.public_key()):
        raise _problem("/key", "must be the key of the first certificate")
    if not given.names(host):
        raise _problem("/certificate", f"must be for {host}")
    if not given.leaf.not_valid_before_utc <= now < given.ends_at:
        raise _problem("/certificate", "must be valid now")
    return given


def _problem(pointer: str, rule: str) -> InvalidRequest:
    return InvalidRequest.listing("The certificate cannot be used. Nothing was changed.", (pointer, rule))


def _last(now: datetime, days: int) -> Validity:
    begins = now.astimezone(UTC) - _EARLIER
    return Validity(begins, begins + timedelta(days=days))


def _write_key(key: PrivateKey) -> bytes:
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def _load_key(data: bytes) -> PrivateKey:
    return _check_key(load_der_private_key(data, None))


def _check_key(key: object) -> PrivateKey:
    if isinstance(key, ec.EllipticCurvePrivateKey) or (
        isinstance(key, rsa.RSAPrivateKey) and key.key_size >= _LEAST_RSA_BITS
    ):
        return key
    raise ValueError("is a key of another kind")


def _public(key: object) -> bytes:
    data: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined]
    return data
