"""Whether two calls mean the same, near enough that a person who denied one has denied the other.

Numbers and truth values must be equal, and of one kind.  Texts are compared without case, and with every run of blanks
and punctuation as one blank; long ones are alike where most of their word triples are.  Lists are compared element by
element, objects by their keys.  The work is bounded by L{MOST_CHARACTERS} of each text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from attrs import frozen

from aileron.values import JSON

MOST_CHARACTERS = 20_000
LONG_CHARACTERS = 40
ALIKE = 0.8
"""The part of all word triples of two long texts that both must have."""

_BETWEEN_WORDS = re.compile(r"[\W_]+")


@frozen
class Text:
    """A text as it is compared.

    :ivar triples: of its words, where it is long.
    """

    words: str
    triples: frozenset[tuple[str, ...]]


Intent: TypeAlias = "bool | int | float | Text | tuple[Intent, ...] | Mapping[str, Intent] | None"
"""The arguments of a call, made ready to be compared."""


def intent_of(value: JSON) -> Intent:
    """C{value}, made ready to be compared."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return {key: intent_of(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return tuple(intent_of(item) for item in value)
    return value


def alike(one: Intent, other: Intent) -> bool:
    """Whether both mean the same, near enough."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Text) and isinstance(other, Text):
        return _texts_alike(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    return one == other


def _text(value: str) -> Text:
    normal = unicodedata.normalize("NFKC", value[:MOST_CHARACTERS]).casefold()
    words = _BETWEEN_WORDS.sub(" ", normal).strip()
    if not words:  # nothing but signs: these are all there is to it
        words = normal.strip()
    return Text(words, _triples(words) if len(words) > LONG_CHARACTERS else frozenset())


def _triples(words: str) -> frozenset[tuple[str, ...]]:
    each = words.split(" ")
    return frozenset(zip(each, each[1:], each[2:], strict=False))


def _texts_alike(one: Text, other: Text) -> bool:
    if one.words == other.words:
        return True
    either = one.triples | other.triples
    return bool(one.triples and other.triples) and len(one.triples & other.triples) >= ALIKE * len(either)
