"""Verifies the signatures of browsers on their requests, each valid once (ADR 17)."""

from __future__ import annotations

import base64
import re

from cryptography.hazmat.primitives.asymmetric import ec
from twisted.internet.interfaces import IReactorTime

from aileron.base.signatures import der_signature, is_signed, read_base64url, write_base64url, write_point
from aileron.model.errors import InvalidRequest
from aileron.model.sessions import SignedRequest

LABEL = "aileron.operator.request.v1"
WINDOW_SECONDS = 30.0
"""The maximum difference between the signed time and the daemon's clock, in either direction."""

MOST_NONCES = 8192
"""The maximum number of nonces stored per key.  Further requests are refused, because no nonce may be dropped early."""

_POINT_BYTES = 65
_PROOF = re.compile(r"([0-9]{1,16})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{86})").fullmatch


def read_public_key(text: str) -> bytes:
    """Return the point of a P-256 key, uncompressed (SEC 1, 2.3.3).

    :param text: the point as unpadded base64url.
    :raises InvalidRequest: if the text is not such a point.
    """
    try:
        point = read_base64url(text)
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError:
        point = b""
    if len(point) != _POINT_BYTES:
        raise InvalidRequest("The public key is no uncompressed point of P-256 as unpadded base64url.")
    return point


def signed_text(asked: SignedRequest, instance: str, nonce: str, at: str) -> bytes:
    """Return the text that a browser signs.  No field can hold a line end, so different requests have different texts.

    :param at: the time by the daemon's clock, in milliseconds.
    """
    lines = (LABEL, asked.method, asked.target, write_base64url(asked.body_digest), instance, nonce, at)
    return "\n".join(lines).encode("latin-1", "replace")


class Signatures:
    """The signatures used during one run of the daemon.

    :param instance: the id of that run. Signatures for another one are invalid.
    """

    def __init__(self, instance: str, clock: IReactorTime) -> None:
        self._instance = instance
        self._clock = clock
        self._spent: dict[bytes, dict[str, float]] = {}

    def hold(self, key: bytes, asked: SignedRequest) -> bool:
        """Return True if the request is signed with this key, was signed just now, and is not a replay.

        :param key: a result of L{read_public_key}.
        """
        match = _PROOF(asked.proof)
        if match is None or abs(self._clock.seconds() - int(match[1]) / 1000) > WINDOW_SECONDS:
            return False
        at, nonce, signature = match.groups()
        return _is_signed(key, signed_text(asked, self._instance, nonce, at), signature) and self._spend(key, nonce)

    def _spend(self, key: bytes, nonce: str) -> bool:
        now = self._clock.seconds()
        for nonces in self._spent.values():
            while nonces and (oldest := next(iter(nonces))) and nonces[oldest] < now:
                del nonces[oldest]
        self._spent = {each: nonces for each, nonces in self._spent.items() if nonces}
        spent = self._spent.setdefault(key, {})
        if nonce in spent or len(spent) >= MOST_NONCES:
            return False
        spent[nonce] = now + 2 * WINDOW_SECONDS
        return True


def _is_signed(key: bytes, text: bytes, signature: str) -> bool:
    return is_signed(write_point(key), text, der_signature(base64.urlsafe_b64decode(signature + "==")))
