"""Finds parts of a foreign text that may mislead: invisible characters, look-alikes, odd addresses, and markup."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from aileron.base.json import JSON, plain, strings_in
from aileron.base.text import RIGHT_TO_LEFT, cautions, visible

from ._markup import addresses, find_markup

_MOST_OF_A_KIND = 6
_BLANKS = re.compile(r" {10}|(?:\A|\n)(?: *\n){3}")
_TURNS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))
_MARKS = frozenset("\u200e\u200f\u061c")

_EMOJI = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27ff\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_USUAL = re.compile(
    rf"[\t\u00a0\u2002-\u200a\u202f\u3000]|\r(?=\n)|[{_EMOJI}]\ufe0f?(?:\u200d[{_EMOJI}]\ufe0f?)*|[0-9#*]\ufe0f\u20e3"
)
"""Characters that texts have for good reasons: tabs, wide and narrow spaces, ends of lines, and the parts of emoji."""


def find_notes(value: JSON, text: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield a note on each part of C{value} that may mislead its reader: an id of L{WARNINGS}, and a sentence.

    :param text: C{value} as shown to the reader, or None if L{render_value} shows it.
    """
    yield from _find_in(list(strings_in(value, keys=True)))
    if has_gaps(render_value(value) if text is None else text):
        yield "whitespace", "Contains long runs of whitespace; text may be hidden below or to the right."


def find_deceptive(value: JSON, text: str | None = None) -> Iterator[str]:
    """Yield the sentences of L{find_notes}, without the ids."""
    yield from (sentence for _, sentence in find_notes(value, text))


def render_value(value: JSON) -> str:
    """Return a value as shown: a text unchanged, another value as JSON, with invisible characters made visible."""
    text = value if isinstance(value, str) else json.dumps(plain(value), indent=2, ensure_ascii=False)
    return visible(text, multiline=True)


def has_gaps(text: str) -> bool:
    """Return whether C{text} has runs of whitespace that may push a part of it out of sight."""
    return _BLANKS.search(text) is not None


def _find_in(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    whole = "".join(texts)
    if hidden := _unseen(_USUAL.sub("", whole)):
        yield "hidden", hidden
    elif special := _count_unseen(whole):
        example = visible(next(iter(special)))
        yield "special", f"Contains tabs, special spaces or parts of emoji, shown as {example} or similar."
    if not all(unicodedata.is_normalized("NFC", text) for text in texts):
        yield "encoding", "Not in composed form (NFC): text that looks the same may have different bytes."
    warned = (note for text in texts for note in cautions(text))
    yield from _some("characters", (("order" if each == RIGHT_TO_LEFT else "letters", each) for each in warned))
    yield from _some("addresses", (("address", note) for text in texts for note in addresses(text)))
    yield from _some("markup", (note for text in texts for note in find_markup(text)))


def _unseen(text: str) -> str:
    """Return a sentence with the number of invisible or overlapping characters, or an empty text if there are none."""
    unseen = _count_unseen(text)
    if not unseen:
        return ""
    total = sum(unseen.values())
    said = f"Contains {total:,} invisible or overlapping character{'' if total == 1 else 's'}"
    turned = any(unicodedata.bidirectional(each) in _TURNS or each in _MARKS for each in unseen)
    example = visible(next(iter(unseen)))
    return f"{said}, shown as {example} or similar.{' Some change the reading direction.' if turned else ''}"


def _count_unseen(text: str) -> dict[str, int]:
    """Return the invisible or overlapping characters of C{text}, each with the number of its occurrences."""
    return {each: times for each, times in Counter(text).items() if visible(each, multiline=True) != each}


def _some(what: str, notes: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the first distinct notes of each kind. If a kind has more, yield one note that says so.

    :param what: the subject of the notes, for that note.
    """
    distinct = defaultdict[str, set[str]](set)
    for kind, note in notes:
        known = distinct[kind]
        if note in known or len(known) > _MOST_OF_A_KIND:
            continue
        known.add(note)
        yield kind, note if len(known) <= _MOST_OF_A_KIND else f"More warnings about {what} are not listed."
