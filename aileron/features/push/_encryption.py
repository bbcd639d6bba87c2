"""Encrypts messages for a browser (RFC 8291), and signs requests to push services (RFC 8292)."""

from __future__ import annotations

import base64
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDH,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    derive_private_key,
    generate_private_key,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aileron.base.addresses import read_origin

from ._payload import MOST_BYTES
from .values import Subscription

VALID_SECONDS = 12 * 3600
"""How long a signature for a push service is valid. RFC 8292 allows 24 hours."""

_SALT_BYTES, _AUTH_BYTES, _POINT_BYTES = 16, 16, 65
_RECORD_SIZE = 4096
_LAST_RECORD = b"\x02"
_CONTACT = "mailto:aileron@example.org"  # a service may require one; the operator's own address is nobody's business


def parse_point(point: bytes) -> EllipticCurvePublicKey:
    """Parse an uncompressed point on the curve P-256.

    :raises ValueError: if the bytes are no such point.
    """
    if len(point) != _POINT_BYTES:
        raise ValueError("must be an uncompressed point on P-256")
    return EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)


def check_keys(subscription: Subscription) -> None:
    """Check the public key and the shared secret that a browser sent, with which messages to it are encrypted.

    :raises ValueError: if the public key is no point on the curve P-256, or the secret is not 16 bytes long.
    """
    parse_point(subscription.p256dh)
    if len(subscription.auth) != _AUTH_BYTES:
        raise ValueError(f"must have a secret of {_AUTH_BYTES} bytes")


def pad(text: bytes) -> bytes:
    """Pad a text with a delimiter and zeros, so that the length of a message reveals nothing.

    :raises ValueError: if the text is longer than L{MOST_BYTES}.
    """
    if len(text) > MOST_BYTES:
        raise ValueError(f"must have {MOST_BYTES} bytes at most")
    return (text + _LAST_RECORD).ljust(MOST_BYTES + 1, b"\0")


def encrypt(
    padded: bytes,
    subscription: Subscription,
    randomness: Callable[[int], bytes],
    ephemeral: EllipticCurvePrivateKey | None = None,
) -> bytes:
    """Encrypt a padded text for a browser, as the body of a request to its push service (aes128gcm, one record).

    :param padded: see L{pad}.
    :param ephemeral: a key that is used once, or None to generate one.
    :raises ValueError: if the browser's public key is no point on P-256.
    """
    ours = ephemeral or generate_private_key(SECP256R1())
    point, salt = encode_point(ours), randomness(_SALT_BYTES)
    shared = ours.exchange(ECDH(), parse_point(subscription.p256dh))
    info = b"WebPush: info\x00" + subscription.p256dh + point
    secret = _derive(shared, subscription.auth, info, 32)
    key = _derive(secret, salt, b"Content-Encoding: aes128gcm\x00", 16)
    nonce = _derive(secret, salt, b"Content-Encoding: nonce\x00", 12)
    head = salt + _RECORD_SIZE.to_bytes(4, "big") + bytes((len(point),)) + point
    return head + AESGCM(key).encrypt(nonce, padded, None)


def make_key() -> str:
    """Make a key by which push services recognize the daemon: its private number in hexadecimal."""
    return f"{generate_private_key(SECP256R1()).private_numbers().private_value:064x}"


def read_key(text: str) -> EllipticCurvePrivateKey:
    """Return the key that L{make_key} has made."""
    return derive_private_key(int(text, 16), SECP256R1())


def encode_point(key: EllipticCurvePrivateKey) -> bytes:
    """Return the public key as an uncompressed point."""
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def sign(endpoint: str, key: EllipticCurvePrivateKey, now: float) -> str:
    """Return the value of the header C{Authorization} of a request to a push service.

    :param now: the present time in seconds since 1970.
    """
    import jwt

    claims = {"aud": read_origin(endpoint).url, "exp": int(now) + VALID_SECONDS, "sub": _CONTACT}
    token = jwt.encode(claims, key, algorithm="ES256")
    return f"vapid t={token}, k={encode_base64url(encode_point(key))}"


def encode_base64url(data: bytes) -> str:
    """Encode bytes in base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode_base64url(text: str) -> bytes:
    """Decode base64url without padding.

    :raises ValueError: if it is malformed.
    """
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _derive(secret: bytes, salt: bytes, info: bytes, size: int) -> bytes:
    return HKDF(SHA256(), size, salt, info).derive(secret)
