"""Links the record into a chain: each hash covers one event and the hash before it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from json.encoder import encode_basestring

from aileron.values import ROW, ChainLink, Row, timestamp

GENESIS = "sha256:" + "0" * 64
"""The previous hash of the first record."""

_FORM = "aileron.audit.v1"
KEYS = tuple(sorted((*ROW[: ROW.index("previous_hash") + 1], "form")))
"""What is sealed, in the order of RFC 8785."""

# One object, flat, its keys known, its only number an integer: so written it is RFC 8785, in a third of an encoder's
# time.  Every event pays for this; a test compares the two.
_WRITTEN = "{" + ",".join(f'"{key}":%s' for key in KEYS) + "}"
_quoted: Callable[[str], str] = encode_basestring  # of anything but a text it is a TypeError


def seal(previous_hash: str, link: ChainLink) -> str:
    """Compute a record's hash: SHA-256 over RFC 8785 of everything but the payload, of which only its salted digest.

    :param previous_hash: of the record before it, or L{GENESIS}.
    :raises ValueError: a text in it is no Unicode (a lone surrogate).
    """
    event = link.event
    what = (event.id, event.type, timestamp(event.at), event.actor.type, event.actor.id)
    about = (event.run_id, event.session_id, event.action, event.connector, event.failure_class)
    return seal_row(previous_hash, (link.sequence, *what, *about, link.payload_digest))


def seal_row(previous_hash: str, row: Row) -> str:
    """Compute the same of a record as it is kept, whatever its columns hold.

    :raises ValueError: a text in it is no Unicode.
    """
    try:
        written = _write(previous_hash, row)
    except TypeError:  # of a strange file: one of its columns holds another type
        named = {**dict(zip(ROW, row, strict=False)), "form": _FORM, "previous_hash": previous_hash}
        written = _WRITTEN % tuple(
            _quoted(value) if isinstance(value, str) else "null" if value is None else str(value)
            for value in map(named.get, KEYS)
        )
    return "sha256:" + hashlib.sha256(written.encode("utf-8")).hexdigest()


def _write(previous_hash: str, row: Row) -> str:
    """Write the same as L{_WRITTEN} for values of the usual types, in half of the time.

    :raises TypeError: a value is of another type.
    """
    sequence, id_, type_, at, actor_type, actor_id, run_id, session_id, action, connector, failure, digest = row[:12]
    if type(sequence) is not int:
        raise TypeError("no integer")
    return (
        f'{{"action":{"null" if action is None else _quoted(action)},"actor_id":{_quoted(actor_id)}'
        f',"actor_type":{_quoted(actor_type)},"at":{_quoted(at)}'
        f',"connector":{"null" if connector is None else _quoted(connector)}'
        f',"failure_class":{"null" if failure is None else _quoted(failure)},"form":"{_FORM}"'
        f',"id":{_quoted(id_)},"payload_digest":{_quoted(digest)},"previous_hash":{_quoted(previous_hash)}'
        f',"run_id":{"null" if run_id is None else _quoted(run_id)},"sequence":{sequence}'
        f',"session_id":{"null" if session_id is None else _quoted(session_id)},"type":{_quoted(type_)}}}'
    )


def payload_digest(salt: str, payload: str) -> str:
    """Compute SHA-256 over C{salt}, a line feed and C{payload}.

    :param salt: without a line feed; keeps a payload that can be guessed from being confirmed by its digest.
    :param payload: the text that is kept: L{aileron.values.compact} of the event's payload.
    """
    return "sha256:" + hashlib.sha256(f"{salt}\n{payload}".encode()).hexdigest()
