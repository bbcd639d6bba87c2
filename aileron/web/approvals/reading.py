"""Draws foreign texts for a page: in full, in boxes, with notes on misleading characters and with changes marked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, frozen
from twisted.web.template import Flattenable, Tag, tags

from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.model.reviews import Review
from aileron.model.runs import Change
from aileron.review import (
    WARNINGS,
    WarningSeverity,
    compare_versions,
    comparing_steps,
    find_notes,
    has_gaps,
    place,
    render_value,
)
from aileron.web.hunks import draw_hunks
from aileron.web.texts import COLOURS, count

_LONG_CHARACTERS, _LONG_LINES = 1000, 20
_MOST_COMPARED = 20_000
MOST_WORD_STEPS = 4_000_000
"""The limit of comparison steps for one page: about 0.2 seconds, for any number of texts."""

_MOST_ALIKE, _AROUND = 400, 150
_PIECES = re.compile(r"[^\S\n]++(?:\w++|[^\w\s])?|\w++|[^\w\s]|\n")


@frozen
class TextReading:
    """One foreign value prepared for display.

    :ivar text: the value with invisible characters made visible.
    :ivar size: the length in words if the text is long, else empty.
    :ivar must_read: whether the text is so long that it scrolls in its own box.
    :ivar noted: sentences about misleading characters and new values, each with its severity.
    """

    text: str
    size: str
    must_read: bool
    noted: tuple[tuple[WarningSeverity, str], ...] = ()

    @property
    def notes(self) -> str:
        """Return the sentences about misleading characters in the text, one a line; an empty text if there are none."""
        return "\n".join(sentence for _, sentence in self.noted)

    def draw_notes(self) -> list[Tag]:
        """Draw one element for each severity, in its colour, with the sentences of that severity or without text."""
        return [
            tags.span("\n".join(each for found, each in self.noted if found is severity), **{"class": colour})
            for severity, colour in COLOURS.items()
        ]

    @property
    def harmless(self) -> bool:
        """Return True if the text is short and there is nothing misleading in it."""
        return not (self.must_read or self.notes)


def reading(value: JSON, *more: str) -> TextReading:
    """Prepare C{value} for display.

    :param more: notes on new values; empty ones are dropped.
    """
    text = render_value(value)
    long = len(text) > _LONG_CHARACTERS or text.count("\n") >= _LONG_LINES
    large = long or has_gaps(text)
    new = [(WARNINGS["recipients"].severity, each) for each in more if each]
    found = [(WARNINGS[each].severity, sentence) for each, sentence in find_notes(value, text)]
    return TextReading(text, _size(value, text) if large else "", large, (*new, *found))


def _size(value: JSON, text: str) -> str:
    whole = value if isinstance(value, str) else text
    size, lines = len(whole.encode("utf-8", "surrogatepass")), whole.count("\n") + 1
    return f"{count(size, 'byte', 'bytes')}, {count(lines, 'line', 'lines')}, shown in full"


def box(
    found: TextReading, name: str, label: str = "", *, code: bool = False, drawn: Sequence[Flattenable] = ()
) -> Tag:
    """Draw C{found} in a box.

    :param name: its ID in the page.
    :param label: its name in the notice of unread texts. If empty, the heading above it is used.
    :param code: whether to use a monospaced font.
    :param drawn: the text with its parts marked.
    """
    long = found.must_read
    classes = ("text", "code" if code else "", "long" if long else "")
    marks = {"class": " ".join(filter(None, classes)), "data-label": label}
    return tags.div(
        *(drawn or (found.text,)), tags.span(**{"class": "end"}), id=name, tabindex="0" if long else "-1", **marks
    )


def differences(changes: Iterable[Change], review: Review, name: str) -> Iterator[dict[str, Flattenable]]:
    """Yield the slots of a table row for each of C{changes}: its path, the old value and the new value.

    :param name: the prefix of the texts' IDs.
    """
    comparison = WordComparison()
    for number, change in enumerate(changes):
        before = _text(change.before, f"{name}-{number}-before", there=change.kind != "added")
        after = _text(change.after, f"{name}-{number}-after", there=change.kind != "removed")
        if change.kind == "more":
            yield {"place": "…", "difference": tags.dd(after)}
            continue
        where = visible(place(change.path, review).removeprefix("/")) or "Everything"
        whole = tags.dd("Before: ", before), tags.dd("After: ", after)
        drawn = _draw_hunks(change, f"{name}-{number}-same") or comparison.draw(change.before, change.after)
        if drawn is None:
            yield {"place": where, "difference": list(whole)}
        else:
            folded = tags.details(tags.summary("Before and after"), tags.dl(*whole), id=f"{name}-{number}")
            yield {"place": where, "difference": [tags.dd(drawn), tags.dd(folded, **{"class": "folded"})]}


def _draw_hunks(change: Change, name: str) -> Tag | None:
    """Draw a change of a text of many lines, line by line.

    Return None if it is no such change, or takes too long to compare.
    """
    before, after = change.before, change.after
    if not (isinstance(before, str) and isinstance(after, str)):
        return None
    if max(before.count("\n"), after.count("\n")) < _LONG_LINES:
        return None
    compared = compare_versions(before, after)
    return draw_hunks(compared, name) if compared else None


def _text(value: JSON, name: str, *, there: bool) -> Tag | str:
    return box(reading(value), name) if there else "(none)"


@define
class WordComparison:
    """A comparer of texts with a work limit for one page.

    :ivar steps: how many comparison steps are left.
    """

    steps: int = MOST_WORD_STEPS

    def draw(self, before: JSON, after: JSON) -> Tag | None:
        """Draw both texts as one, with C{ins} and C{del} around the differences.

        A long equal stretch is drawn as its two ends and the length between them: the page shows both texts in full.

        :return: the drawing, or None if a value is not text, the texts are long, or the limit of steps is reached.
        """
        if not (isinstance(before, str) and isinstance(after, str) and len(before) + len(after) <= _MOST_COMPARED):
            return None
        pieces = _PIECES.findall(before), _PIECES.findall(after)
        steps = comparing_steps(*pieces)
        if steps > self.steps:
            return None
        self.steps -= steps
        return tags.div(*_draw_pieces(*pieces), **{"class": "difference"})


def _draw_pieces(before: list[str], after: list[str]) -> Iterator[Tag | str]:
    for kind, start, end, now_start, now_end in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if kind == "equal":
            yield from _draw_alike("".join(before[start:end]))
            continue
        for tag, pieces in ((tags.del_, before[start:end]), (tags.ins, after[now_start:now_end])):
            if pieces:
                yield tag(visible("".join(pieces), multiline=True))


def _draw_alike(text: str) -> Iterator[Tag | str]:
    if len(text) <= _MOST_ALIKE:
        yield visible(text, multiline=True)
        return
    yield visible(text[:_AROUND], multiline=True)
    words = f" … {len(text) - 2 * _AROUND:,} unchanged characters … "
    yield tags.span(words, **{"class": "quiet"})
    yield visible(text[-_AROUND:], multiline=True)
