"""A browser's page as the daemon knows it: a cookie, and a key that signs what it asks for."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable

from attrs import evolve, field, frozen
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aileron.model.sessions import SignedRequest

_NUMBER_BYTES, _NONCE_BYTES = 32, 16


@frozen
class SigningBrowser:
    """A page's script as far as it signs.

    :ivar seconds: the time by the daemon's clock.
    :ivar instance: of the daemon, which tells it when it is told the key.
    """

    cookie: str = field(repr=False)
    key: ec.EllipticCurvePrivateKey = field(repr=False)
    seconds: Callable[[], float]
    instance: str = ""

    @classmethod
    def fresh(cls, cookie: str, seconds: Callable[[], float]) -> SigningBrowser:
        """One with a new key."""
        return cls(cookie, ec.generate_private_key(ec.SECP256R1()), seconds)

    def told(self, instance: str) -> SigningBrowser:
        """Return the same, for this life of the daemon."""
        return evolve(self, instance=instance)

    @property
    def public_key(self) -> str:
        """The public key, as the daemon is told it."""
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return _written(point)

    def asks(self, method: str, target: str, body: bytes = b"") -> SignedRequest:
        """Make a request of its own, signed anew."""
        proof = self.proof(method, target, body)
        return SignedRequest(self.cookie, proof, method, target, hashlib.sha256(body).digest())

    def headers(self, cookie: str, method: str, target: str, body: bytes = b"") -> dict[str, str]:
        """Return what shows that a request is its own.

        :param cookie: its name.
        """
        return {"Cookie": f"{cookie}={self.cookie}", "X-Aileron-Proof": self.proof(method, target, body)}

    def proof(self, method: str, target: str, body: bytes = b"") -> str:
        """Make the value of C{X-Aileron-Proof}: time, nonce and signature."""
        at, nonce = str(round(self.seconds() * 1000)), _written(secrets.token_bytes(_NONCE_BYTES))
        digest = _written(hashlib.sha256(body).digest())
        lines = ("aileron.operator.request.v1", method, target, digest, self.instance, nonce, at)
        signature = self.key.sign("\n".join(lines).encode("latin-1", "replace"), ec.ECDSA(SHA256()))
        numbers = (number.to_bytes(_NUMBER_BYTES, "big") for number in decode_dss_signature(signature))
        return f"{at}.{nonce}.{_written(b''.join(numbers))}"


def _written(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
