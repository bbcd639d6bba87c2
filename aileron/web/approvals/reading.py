"""How a foreign text is read: whole, in a box of its own where it is long, with a word on what may mislead in it."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from attrs import frozen

from aileron.values import JSON, cautions, texts_in, visible
from aileron.web._texts import shown

from .addresses import addresses
from .markup import markup

_LONG_CHARACTERS, _LONG_LINES = 1000, 20
_MOST_OF_A_KIND = 6
_BLANKS = re.compile(r" {10}|(?:\A|\n)(?: *\n){3}")
_TURNS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))
_MARKS = frozenset("\u200e\u200f\u061c")


@frozen
class Reading:
    """One value as it is read.

    :ivar text: made visible.
    :ivar size: how long it is, where that is much; else empty.
    :ivar must_read: whether its end may be out of sight, so that nobody approves before having been there.
    :ivar notes: what may mislead in it, a sentence a line; else empty.
    """

    text: str
    size: str
    must_read: bool
    notes: str

    @property
    def harmless(self) -> bool:
        """Whether a glance shows all there is."""
        return not (self.must_read or self.notes)


def reading(value: JSON, *more: str) -> Reading:
    """How C{value} is read.

    :param more: what else there is to say of it; what is empty is left out.
    """
    text = shown(value)
    long = len(text) > _LONG_CHARACTERS or text.count("\n") >= _LONG_LINES
    gaps = _BLANKS.search(text) is not None
    texts = list(texts_in(value))
    notes = [*more, *_notes(texts)]
    if gaps:
        notes.append("It holds long blanks: words may stand far below or to the right.")
    return Reading(text, _size(value, text) if long or gaps else "", long or gaps, "\n".join(filter(None, notes)))


def _notes(texts: Sequence[str]) -> Iterator[str]:
    yield _unseen("".join(texts))
    if not all(unicodedata.is_normalized("NFC", text) for text in texts):
        yield "It is not in composed form (NFC): what looks the same as another text may be other bytes."
    yield from _some("words like these", (note for text in texts for note in cautions(text)))
    yield from _some("notices", (note for text in texts for note in addresses(text)))
    yield from _some("such marks", (note for text in texts for note in markup(text)))


def _unseen(text: str) -> str:
    """How many characters are shown in their place since nobody would see them, or what they cover."""
    unseen = {each: count for each, count in Counter(text).items() if visible(each, multiline=True) != each}
    if not unseen:
        return ""
    count = sum(unseen.values())
    said = (
        "1 character that nobody would see, or that covers others, is"
        if count == 1
        else f"{count:,} characters that nobody would see, or that cover others, are"
    )
    turned = any(unicodedata.bidirectional(each) in _TURNS or each in _MARKS for each in unseen)
    return (
        f"{said} shown as {visible(next(iter(unseen)))} or the like.{' Some turn the reading round.' if turned else ''}"
    )


def _some(what: str, notes: Iterator[str]) -> Iterator[str]:
    """The first of them, each once; no more are worked out than are shown."""
    distinct: dict[str, None] = {}
    for note in notes:
        if note not in distinct and len(distinct) == _MOST_OF_A_KIND:
            yield f"And more {what}."
            return
        if note not in distinct:
            distinct[note] = None
            yield note


def _size(value: JSON, text: str) -> str:
    whole = value if isinstance(value, str) else text
    count, lines = len(whole.encode("utf-8", "surrogatepass")), whole.count("\n") + 1
    return f"{count:,} bytes in {lines:,} line{'' if lines == 1 else 's'}, all of them here"
