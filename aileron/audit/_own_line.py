"""Reads the line of a record as an export writes it, in half the time that any JSON takes to read."""

from __future__ import annotations

import json
import re

from aileron.values import JSON, ROW, Row

from ._seal import payload_digest

_NEVER_NULL = ("id", "type", "at", "actor_type", "actor_id", "payload_digest", "previous_hash", "hash")
_TEXT = r'"([ !#-\[\]-~]*)"'  # ASCII, and nothing in it that JSON writes in another way
_VALUES = {
    "sequence": "([1-9][0-9]{0,17})",
    "payload": "([ -~]+)",
    **dict.fromkeys(_NEVER_NULL, _TEXT),
}
_LINE = re.compile(
    r'\{"kind":"record",' + ",".join(f'"{name}":{_VALUES.get(name, f"(?:null|{_TEXT})")}' for name in ROW) + r"\}\n?"
)
_DIGEST, _SALT = (ROW[1:].index(name) for name in ("payload_digest", "salt"))


def own_row(line: str) -> Row | None:
    """The record in C{line}; L{None}: it must be read as any JSON, and may be wrong.

    The contents are those that were hashed, letter by letter, or it is L{None}.
    """
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    sequence, *texts, payload = found.groups()
    if payload == "null":
        return (int(sequence), *texts, None)
    if payload_digest(texts[_SALT], payload) != texts[_DIGEST] or not _is_read(payload):
        return None
    return (int(sequence), *texts, payload)


def unique(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    """One object; of a name that stands twice, two readers could believe another one each.

    :raises ValueError: one does.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


read = json.JSONDecoder(object_pairs_hook=unique).decode


def _is_read(text: str) -> bool:
    try:
        read(text)
    except (ValueError, RecursionError):
        return False
    return True
