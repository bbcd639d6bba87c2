"""A browser and its push service: they decrypt and verify with what the two RFCs say, not with the code under test."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CURVE = ec.SECP256R1()
ENDPOINT = "https://push.example/send/1"


def unpack(text: str) -> bytes:
    """Decode base64url."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def pack(data: bytes) -> str:
    """Encode base64url."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def derive(secret: bytes, salt: bytes, info: bytes, size: int) -> bytes:
    """HKDF in one step (RFC 5869)."""
    return hmac.digest(hmac.digest(salt, secret, "sha256"), info + b"\x01", "sha256")[:size]


@define
class BrowserDouble:
    """A browser that has subscribed.

    :ivar endpoint: its URL at its push service.
    """

    endpoint: str = ENDPOINT
    private: ec.EllipticCurvePrivateKey = field(factory=lambda: ec.generate_private_key(CURVE))
    auth: bytes = b"0123456789abcdef"

    @property
    def point(self) -> bytes:
        """Its public key."""
        return self.private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def told(self, **other: Any) -> dict[str, str]:
        """The subscription as a page sends it."""
        return {"endpoint": self.endpoint, "p256dh": pack(self.point), "auth": pack(self.auth), **other}

    def open(self, body: bytes) -> bytes:
        """Decrypt the body of a request (RFC 8188, RFC 8291); the text without its padding."""
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        assert len(sealed) <= size
        shared = self.private.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, sender))
        secret = derive(shared, self.auth, b"WebPush: info\0" + self.point + sender, 32)
        key = derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = derive(secret, salt, b"Content-Encoding: nonce\0", 12)
        text = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\0")
        assert text.endswith(b"\2")
        return text[:-1]


def check_vapid(header: str, audience: str, now: float) -> str:
    """Check who sends (RFC 8292), and return the sender's public key.

    :raises ValueError: if the audience, the time or the signature is wrong.
    """
    scheme, _, rest = header.partition(" ")
    parts = dict(part.strip().split("=", 1) for part in rest.split(","))
    head, claims, signature = parts["t"].split(".")
    told, how, raw = json.loads(unpack(claims)), json.loads(unpack(head)), unpack(signature)
    if scheme != "vapid" or how["alg"] != "ES256" or told["aud"] != audience:
        raise ValueError("audience")
    if not now < told["exp"] <= now + 24 * 3600 or not told["sub"].startswith("mailto:"):
        raise ValueError("time")
    key = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, unpack(parts["k"]))
    der = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    try:
        key.verify(der, f"{head}.{claims}".encode(), ec.ECDSA(SHA256()))
    except Exception as error:
        raise ValueError("signature") from error
    return parts["k"]


@define
class ServiceDouble:
    """A push service, between the transport and the browsers.

    :ivar answers: the statuses of the next answers, then 201.
    :ivar received: what each browser got, by endpoint: the headers, and the text.
    """

    browsers: Mapping[str, BrowserDouble]
    answers: list[Any] = field(factory=list)
    received: list[tuple[str, Mapping[str, str], Mapping[str, Any]]] = field(factory=list)
    keys: set[str] = field(factory=set)
    sizes: set[int] = field(factory=set)

    def take(self, url: str, headers: Sequence[tuple[str, str]], body: bytes, now: float) -> None:
        """Verify, decrypt and keep one message."""
        fields = dict(headers)
        self.keys.add(check_vapid(fields["Authorization"], "/".join(url.split("/")[:3]), now))
        self.sizes.add(len(body))
        self.received.append((url, fields, json.loads(self.browsers[url].open(body))))

    @property
    def counts(self) -> list[int]:
        """The numbers that were told, in order."""
        return [text["n"] for _, _, text in self.received]


def identified(endpoint: str) -> str:
    """The daemon's ID of a browser."""
    return hashlib.sha256(endpoint.encode()).hexdigest()[:16]
