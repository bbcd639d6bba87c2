"""Public keys and signatures as text, and their verification: ES256, RS256 and Ed25519."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # commands that sign nothing start without the library
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

_NUMBER_BYTES = 32


def write_base64url(data: bytes) -> str:
    """Return C{data} in base64url without padding (RFC 4648, section 5)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def read_base64url(text: str) -> bytes:
    """Decode a text written by L{write_base64url}.

    :raises ValueError: the text is not base64url, or is not in its canonical form.
    """
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if write_base64url(data) != text:
        raise ValueError("must be unpadded base64url")
    return data


def write_public_key(key: ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey) -> str:
    """Return a public key as text: its SubjectPublicKeyInfo (RFC 5280) in base64url."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return write_base64url(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def write_point(point: bytes) -> str:
    """Return the P-256 key of an uncompressed point as text.

    :raises ValueError: the bytes are not such a point.
    """
    from cryptography.hazmat.primitives.asymmetric import ec

    return write_public_key(ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point))


def der_signature(raw: bytes) -> bytes:
    """Return an ECDSA signature of two 32-byte numbers, as WebCrypto makes it, in DER.

    :raises ValueError: the signature has another length.
    """
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    if len(raw) != 2 * _NUMBER_BYTES:
        raise ValueError("is no P-256 signature")
    first, second = (int.from_bytes(raw[at : at + _NUMBER_BYTES], "big") for at in (0, _NUMBER_BYTES))
    return encode_dss_signature(first, second)


def check_public_key(text: str) -> None:
    """Raise unless the text is a public key of P-256, RSA or Ed25519, as L{write_public_key} writes it.

    :raises ValueError: if it is not.
    """
    _load(text)


def is_signed(public_key: str, data: bytes, signature: bytes) -> bool:
    """Return whether a signature over C{data} is valid for a public key. Never raises.

    :param public_key: a result of L{write_public_key}.
    :param signature: ECDSA over SHA-256 in DER, RSASSA-PKCS1-v1_5 over SHA-256, or Ed25519, by the kind of key.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        key = _load(public_key)
        # guard of signing: a signature is verified -> vault.test_approvers.SignatureTests.test_forged,
        #    instead return True
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, data, ec.ECDSA(SHA256()))
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, data, padding.PKCS1v15(), SHA256())
        else:
            key.verify(signature, data)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _load(text: str) -> ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey:
    """Parse a public key.

    :raises ValueError: the text is no public key, or one of another kind.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        key = load_der_public_key(read_base64url(text))
    except UnsupportedAlgorithm:
        raise ValueError("is a public key of an unknown kind") from None
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    if isinstance(key, (rsa.RSAPublicKey, ed25519.Ed25519PublicKey)):
        return key
    raise ValueError("is a public key of an unknown kind")
