"""Keys and tokens: minted once, shown once, kept only as digests."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

LAUNCH_KEY, AGENT_TOKEN, OPERATOR_TOKEN, GATEWAY_KEY = "ail_l_", "ail_a_", "ail_o_", "ail_g_"


def mint(prefix: str, randomness: Callable[[int], bytes]) -> str:
    """A fresh key: C{prefix} and 32 random bytes as unpadded base64url.

    :param randomness: as many unpredictable bytes as asked for.
    """
    return prefix + base64.urlsafe_b64encode(randomness(32)).rstrip(b"=").decode("ascii")


def token_digest(token: str) -> bytes:
    """What is kept of C{token}: its SHA-256; 32 random bytes need no salt and no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
