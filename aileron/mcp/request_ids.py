"""Refuses requests with unusable IDs, which the SDK would treat as notifications."""

from __future__ import annotations

import json
from typing import Any

_INVALID_REQUEST = -32600
_LONGEST, _LARGEST = 1024, 1 << 63
_MESSAGE = f"The id of a request must be an integer of 64 bits, or a string of at most {_LONGEST} characters."


def refuse_unusable_id(message: bytes) -> bytes | None:
    """Return the error response to a request with an ID of a wrong type or size, or None if the ID is usable.

    Return None also for other messages: for a notification, which has no C{id} and gets no response (JSON-RPC 2.0,
    4.1), for a response of the client, and for text that is not JSON, which is left to the SDK.
    """
    try:
        decoded = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(decoded, dict) or "method" not in decoded or "id" not in decoded or _is_usable(decoded["id"]):
        return None
    refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": _INVALID_REQUEST, "message": _MESSAGE}}
    return json.dumps(refusal, separators=(",", ":")).encode("ascii")


def _is_usable(given: Any) -> bool:
    if isinstance(given, bool):
        return False
    if isinstance(given, int):
        return -_LARGEST <= given < _LARGEST
    return isinstance(given, str) and len(given) <= _LONGEST
