"""Finds parts of a foreign text that may mislead: invisible characters, look-alikes, odd addresses, and markup."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from aileron.base.json import JSON, plain, strings_in
from aileron.base.text import cautions, visible

from ._markup import addresses, markup

_MOST_OF_A_KIND = 6
_BLANKS = re.compile(r" {10}|(?:\A|\n)(?: *\n){3}")
_TURNS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))
_MARKS = frozenset("\u200e\u200f\u061c")


def find_notes(value: JSON, text: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield a note on each part of C{value} that may mislead its reader: an id of L{WARNINGS}, and a sentence.

    :param text: C{value} as shown to the reader, or None if L{render_value} shows it.
    """
    yield from _find_in(list(strings_in(value, keys=True)))
    if has_gaps(render_value(value) if text is None else text):
        yield "whitespace", "Contains long runs of whitespace; text may be hidden below or to the right."


def find_deceptive(value: JSON, text: str | None = None) -> Iterator[str]:
    """Yield the sentences of L{find_notes}."""
    yield from (sentence for _, sentence in find_notes(value, text))


def render_value(value: JSON) -> str:
    """Return a value as shown: a text unchanged, another value as JSON, with invisible characters made visible."""
    text = value if isinstance(value, str) else json.dumps(plain(value), indent=2, ensure_ascii=False)
    return visible(text, multiline=True)


def has_gaps(text: str) -> bool:
    """Return whether C{text} has runs of whitespace that may push a part of it out of sight."""
    return _BLANKS.search(text) is not None


def _find_in(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    unseen = _unseen("".join(texts))
    if unseen:
        yield "hidden", unseen
    if not all(unicodedata.is_normalized("NFC", text) for text in texts):
        yield "encoding", "Not in composed form (NFC): text that looks the same may have different bytes."
    yield from _some("letters", "characters", (note for text in texts for note in cautions(text)))
    yield from _some("address", "addresses", (note for text in texts for note in addresses(text)))
    yield from _some("markup", "markup", (note for text in texts for note in markup(text)))


def _unseen(text: str) -> str:
    """Return a sentence with the number of invisible or overlapping characters, or an empty text if there are none."""
    unseen = {each: times for each, times in Counter(text).items() if visible(each, multiline=True) != each}
    if not unseen:
        return ""
    total = sum(unseen.values())
    said = f"Contains {total:,} invisible or overlapping character{'' if total == 1 else 's'}"
    turned = any(unicodedata.bidirectional(each) in _TURNS or each in _MARKS for each in unseen)
    example = visible(next(iter(unseen)))
    return f"{said}, shown as {example} or similar.{' Some change the reading direction.' if turned else ''}"


def _some(kind: str, what: str, notes: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Yield the first distinct notes of a kind, and a last one if there are more. Further notes are not computed."""
    distinct: dict[str, None] = {}
    for note in notes:
        if note not in distinct and len(distinct) == _MOST_OF_A_KIND:
            yield kind, f"More warnings about {what} are not listed."
            return
        if note not in distinct:
            distinct[note] = None
            yield kind, note
