"""Proofs by which the daemon and the operator's client show each other that they hold the same key.

The proofs do not reveal the key.
"""

from __future__ import annotations

import hmac

from attrs import frozen

from aileron.base.json import canonical
from aileron.base.signatures import read_base64url, write_base64url
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
    :ivar public_key: the key with which the client signs decisions, or empty if it has none. The client's proof alone
        covers it.
    """

    client_nonce: str
    daemon_nonce: str
    instance: str
    address: str
    public_key: str = ""


def daemon_proof(key: bytes, exchange: LoginExchange) -> str:
    """Return the daemon's proof that it has the key, 43 characters of base64url.

    The client verifies it before sending its own proof.
    """
    return _proof(key, "aileron.operator.daemon.v1", exchange)


def client_proof(key: bytes, exchange: LoginExchange) -> str:
    """Return the client's proof that it has the key, 43 characters of base64url.

    Its label differs from the daemon's, so that neither proof can replace the other.
    """
    if not exchange.public_key:
        return _proof(key, "aileron.operator.client.v1", exchange)
    return _proof(key, "aileron.operator.client.v2", exchange, exchange.public_key)


def same(one: str, other: str) -> bool:
    """Return True if two texts are equal, in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


def _proof(key: bytes, label: str, exchange: LoginExchange, *more: str) -> str:
    # Canonical JSON: different lists of fields never encode to equal bytes.
    said = [label, exchange.client_nonce, exchange.daemon_nonce, exchange.instance, exchange.address, *more]
    return write_base64url(hmac.digest(key, canonical(said), "sha256"))


def check_nonce(nonce: str) -> None:
    """Raise if a client's nonce is malformed.

    :raises InvalidRequest: if the nonce is not 16 to 64 bytes in canonical base64url.
    """
    try:
        data = read_base64url(nonce)
    except ValueError:
        data = b""
    if not _MIN_NONCE <= len(data) <= _MAX_NONCE:
        raise InvalidRequest(f"The nonce must be {_MIN_NONCE} to {_MAX_NONCE} bytes as unpadded base64url.")
