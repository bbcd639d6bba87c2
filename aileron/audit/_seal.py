"""Links the record into a chain: each hash covers one event and the hash before it."""

from __future__ import annotations

import hashlib
import json

from aileron.values import Link, timestamp

GENESIS = "sha256:" + "0" * 64
"""The previous hash of the first record."""

_FORM = "aileron.audit.v1"
# Keys and numbers here are such that this is RFC 8785, several times faster; a test compares the two.
_flat = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def seal(previous_hash: str, link: Link) -> str:
    """The hash of a record: SHA-256 over RFC 8785 of everything but the payload, of which only its salted digest.

    :param previous_hash: of the record before it, or L{GENESIS}.
    :raises ValueError: a text in it is no Unicode (a lone surrogate).
    """
    return "sha256:" + hashlib.sha256(_flat(sealed_form(previous_hash, link)).encode("utf-8")).hexdigest()


def sealed_form(previous_hash: str, link: Link) -> dict[str, str | int | None]:
    """What L{seal} hashes: flat, its keys ASCII, its only number the sequence."""
    event = link.event
    return {
        "form": _FORM,
        "previous_hash": previous_hash,
        "sequence": link.sequence,
        "id": event.id,
        "type": event.type,
        "at": timestamp(event.at),
        "actor_type": event.actor.type,
        "actor_id": event.actor.id,
        "run_id": event.run_id,
        "session_id": event.session_id,
        "action": event.action,
        "connector": event.connector,
        "failure_class": event.failure_class,
        "payload_digest": link.payload_digest,
    }


def payload_digest(salt: str, payload: str) -> str:
    """SHA-256 over C{salt}, a line feed and C{payload}.

    :param salt: without a line feed; keeps a payload that can be guessed from being confirmed by its digest.
    :param payload: the text that is kept: L{aileron.values.compact} of the event's payload.
    """
    return "sha256:" + hashlib.sha256(f"{salt}\n{payload}".encode()).hexdigest()
