"""Mutual proofs of daemon and operator that they hold the same key, without revealing it."""

from __future__ import annotations

import base64
import hmac

from attrs import frozen

from aileron.base.json import canonical
from aileron.model.errors import InvalidRequest

from ._cipher import DataKey

NONCE_BYTES = 32
_MIN_NONCE, _MAX_NONCE = 16, 64


def operator_key(data_key: DataKey) -> bytes:
    """Return the key of the operator's logins (HKDF-SHA256 of the data key, ADR 4)."""
    return data_key.subkey("operator")


@frozen
class LoginExchange:
    """The values that both proofs of one login cover.

    :ivar client_nonce: the client's nonce as sent.
    :ivar daemon_nonce: the daemon's nonce as sent.
    :ivar instance: the id of this run of the daemon.
    :ivar address: the operator URL that the client uses.
    """

    client_nonce: str
    daemon_nonce: str
    instance: str
    address: str


def daemon_proof(key: bytes, exchange: LoginExchange) -> str:
    """Return the daemon's proof, 43 characters of base64url.  The client verifies it before sending its own proof."""
    return _proof(key, "aileron.operator.daemon.v1", exchange)


def client_proof(key: bytes, exchange: LoginExchange) -> str:
    """Return the client's proof, 43 characters of base64url.

    Its label differs from the daemon's, so that neither proof can replace the other.
    """
    return _proof(key, "aileron.operator.client.v1", exchange)


def same(one: str, other: str) -> bool:
    """Return True if two texts are equal, in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


def _proof(key: bytes, label: str, exchange: LoginExchange) -> str:
    # Canonical JSON: different lists of fields never encode to equal bytes.
    said = [label, exchange.client_nonce, exchange.daemon_nonce, exchange.instance, exchange.address]
    return base64url(hmac.digest(key, canonical(said), "sha256"))


def base64url(data: bytes) -> str:
    """Return C{data} in base64url without padding (RFC 4648, section 5)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def read_base64url(text: str) -> bytes:
    """Decode a text written by L{base64url}.

    :raises ValueError: the text is not base64url, or is not in its canonical form.
    """
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64url(data) != text:
        raise ValueError("must be unpadded base64url")
    return data


def check_nonce(nonce: str) -> None:
    """Raise if a client's nonce is malformed.

    :raises InvalidRequest: the nonce is not 16 to 64 bytes in canonical base64url.
    """
    try:
        data = read_base64url(nonce)
    except ValueError:
        data = b""
    if not _MIN_NONCE <= len(data) <= _MAX_NONCE:
        raise InvalidRequest(f"The nonce must be {_MIN_NONCE} to {_MAX_NONCE} bytes as unpadded base64url.")
