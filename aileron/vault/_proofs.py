"""Daemon and operator prove to each other that they hold the same key, without showing it."""

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
    """Derive the key of the operator's logins (HKDF-SHA256 of the data key, ADR 4)."""
    return data_key.subkey("operator")


@frozen
class LoginExchange:
    """The values that both proofs of one login are over.

    :ivar client_nonce: as it was sent.
    :ivar daemon_nonce: as it was sent.
    :ivar instance: of this life of the daemon.
    :ivar address: the operator URL that the client speaks to.
    """

    client_nonce: str
    daemon_nonce: str
    instance: str
    address: str


def daemon_proof(key: bytes, exchange: LoginExchange) -> str:
    """Make the daemon's proof, 43 characters of base64url. The client checks it before it proves anything itself."""
    return _proof(key, "aileron.operator.daemon.v1", exchange)


def client_proof(key: bytes, exchange: LoginExchange) -> str:
    """Make the client's proof, 43 characters of base64url.

    It has a label of its own, so no proof answers for another.
    """
    return _proof(key, "aileron.operator.client.v1", exchange)


def same(one: str, other: str) -> bool:
    """Tell whether two proofs are one, in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


def _proof(key: bytes, label: str, exchange: LoginExchange) -> str:
    # Canonical JSON: no two lists of fields make the same bytes.
    said = [label, exchange.client_nonce, exchange.daemon_nonce, exchange.instance, exchange.address]
    return base64url(hmac.digest(key, canonical(said), "sha256"))


def base64url(data: bytes) -> str:
    """Base64url without padding (RFC 4648, section 5)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def read_base64url(text: str) -> bytes:
    """Read what L{base64url} wrote.

    :raises ValueError: it is written in no way, or in another.
    """
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64url(data) != text:
        raise ValueError("must be unpadded base64url")
    return data


def check_nonce(nonce: str) -> None:
    """Accept a client's nonce.

    :raises InvalidRequest: it is not 16 to 64 bytes in the one way of writing them.
    """
    try:
        data = read_base64url(nonce)
    except ValueError:
        data = b""
    if not _MIN_NONCE <= len(data) <= _MAX_NONCE:
        raise InvalidRequest(f"The nonce must be {_MIN_NONCE} to {_MAX_NONCE} bytes as unpadded base64url.")
