"""A browser page for tests: a cookie, and a key that signs its requests."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable, Sequence

from attrs import evolve, field, frozen
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aileron.model.sessions import SignedRequest

_NUMBER_BYTES, _NONCE_BYTES = 32, 16


@frozen
class SigningBrowser:
    """The signing part of a page's script.

    :ivar seconds: returns the time by the daemon's clock.
    :ivar instance: the id that the daemon returns at registration.
    """

    cookie: str = field(repr=False)
    key: ec.EllipticCurvePrivateKey = field(repr=False)
    seconds: Callable[[], float]
    instance: str = ""

    @classmethod
    def generate(cls, cookie: str, seconds: Callable[[], float]) -> SigningBrowser:
        """Return a browser with a new key."""
        return cls(cookie, ec.generate_private_key(ec.SECP256R1()), seconds)

    def with_instance(self, instance: str) -> SigningBrowser:
        """Return a copy for the daemon with this id."""
        return evolve(self, instance=instance)

    @property
    def public_key(self) -> str:
        """The public key, as registered with the daemon."""
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return _written(point)

    def sign_request(self, method: str, target: str, body: bytes = b"") -> SignedRequest:
        """Return a newly signed request."""
        proof = self.proof(method, target, body)
        return SignedRequest(self.cookie, proof, method, target, hashlib.sha256(body).digest())

    def sign_text(self, write: Callable[[str], str]) -> tuple[str, str]:
        """Return a text and its signature, as the page's script signs decisions.

        :param write: returns the text for a nonce.
        """
        text = write(f"{round(self.seconds() * 1000)}.{_written(secrets.token_bytes(_NONCE_BYTES))}")
        return text, self._sign(text.encode())

    def headers(self, cookie: str, method: str, target: str, body: bytes = b"") -> dict[str, str]:
        """Return the headers that authenticate a request.

        :param cookie: the name of the cookie.
        """
        return {"Cookie": f"{cookie}={self.cookie}", "X-Aileron-Proof": self.proof(method, target, body)}

    def proof(self, method: str, target: str, body: bytes = b"") -> str:
        """Return the value of C{X-Aileron-Proof}: time, nonce and signature."""
        at, nonce = str(round(self.seconds() * 1000)), _written(secrets.token_bytes(_NONCE_BYTES))
        digest = _written(hashlib.sha256(body).digest())
        lines = ("aileron.operator.request.v1", method, target, digest, self.instance, nonce, at)
        return f"{at}.{nonce}.{self._sign(_lines(lines))}"

    def _sign(self, data: bytes) -> str:
        numbers = decode_dss_signature(self.key.sign(data, ec.ECDSA(SHA256())))
        return _written(b"".join(number.to_bytes(_NUMBER_BYTES, "big") for number in numbers))


def _lines(lines: Sequence[str]) -> bytes:
    return "\n".join(lines).encode("latin-1", "replace")


def _written(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
