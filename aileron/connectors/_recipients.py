"""Normalizes the recipients among an operation's inputs, for limits and for the comparison with denied requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from aileron.base.comparison import normalize_addresses
from aileron.base.json import JSON
from aileron.model.connectors import Operation

_PARTS = {"mail": frozenset({"to", "cc", "bcc"}), "event": frozenset({"attendees"})}
_NAMES = frozenset(
    {"to", "cc", "bcc", "reply_to", "recipient", "recipients", "attendee", "attendees", "email", "emails", "address"}
)


def normalize_recipients(
    operation: Operation, name: str, value: JSON, read: Callable[[str], Iterable[str]] = normalize_addresses
) -> JSON:
    """Return an input in the form used for comparisons: addresses of recipients, or the name of a channel without C{#}.

    Addresses are returned as a list, each once and in order. Any other value, and one without an address, is returned
    unchanged. The presentation of the operation declares the inputs with recipients. Without one, their names decide.

    :param read: returns the addresses that one text lists.
    """
    if _is_channel(operation, name) and isinstance(value, str):
        return value.removeprefix("#")
    texts = [value] if isinstance(value, str) else value
    if not _holds_addresses(operation, name) or not isinstance(texts, Sequence):
        return value
    if not all(isinstance(each, str) for each in texts):
        return value
    found = sorted({address for each in texts for address in read(str(each))})
    return [*found] if any("@" in each for each in found) else value


def _is_channel(operation: Operation, name: str) -> bool:
    hint = operation.presentation
    return hint is not None and hint.kind == "message" and name in hint.parts.get("to", ())


def _holds_addresses(operation: Operation, name: str) -> bool:
    hint = operation.presentation
    if hint is None or hint.kind not in _PARTS:
        return name in _NAMES
    return name in _NAMES or any(name in hint.parts.get(part, ()) for part in _PARTS[hint.kind])
