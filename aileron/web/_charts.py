"""Charts drawn as SVG: bars beside names, and one stacked column a day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from attrs import field, frozen
from twisted.web.template import Tag, tags

from aileron.values import visible

_WIDTH = 420  # so narrow that its texts can be read on a phone
_LANE, _LEFT, _RIGHT = 22, 172, 88
_HEIGHT, _TOP, _FOOT, _GAP = 150, 18, 20, 6


def bars(label: str, rows: Sequence[tuple[str, float, str]]) -> Tag:
    """One bar a row.

    :param label: what they are; it is read aloud, with the numbers in words.
    :param rows: a name, a number, and the number in words.
    """
    most = max((value for _, value, _ in rows), default=0) or 1
    drawn = [part for place, row in enumerate(rows) for part in _bar(place, row, most)]
    box = {"viewBox": f"0 0 {_WIDTH} {_LANE * len(rows)}", "role": "img", "class": "chart"}
    said = ", ".join(f"{name} {words}" for name, _, words in rows)
    return Tag("svg")(*drawn, **box, **{"aria-label": visible(f"{label}: {said}")})


def _bar(place: int, row: tuple[str, float, str], most: float) -> tuple[Tag, Tag, Tag]:
    name, value, words = row
    y, width = place * _LANE, value / most * (_WIDTH - _LEFT - _RIGHT)
    middle = f"{y + 15}"
    return (
        Tag("text")(visible(name), x=f"{_LEFT - 8}", y=middle, **{"text-anchor": "end"}),
        Tag("rect")(x=f"{_LEFT}", y=f"{y + 3}", width=f"{width:.1f}", height=f"{_LANE - 6}", rx="2"),
        Tag("text")(visible(words), x=f"{_LEFT + width + 6:.1f}", y=middle),
    )


@frozen
class Column:
    """One day of a chart.

    :ivar parts: what is stacked, from the bottom up, by the class that colours it; empty: there is no column.
    :ivar above: its number, written above the column.
    :ivar words: the same for the label of the whole.
    """

    day: date
    parts: Mapping[str, float] = field(factory=dict)
    above: str = ""
    words: str = ""


def columns(label: str, days: Sequence[Column]) -> Tag:
    """Draw one column a day.

    :param label: what they are; it is read aloud, with the words of each day.
    """
    most = max((sum(each.parts.values()) for each in days), default=0) or 1
    drawn = [part for place, each in enumerate(days) for part in _column(place, len(days), each, most)]
    said = "; ".join(f"{each.day:%d %b}: {each.words}" for each in days if each.words)
    box = {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "role": "img", "class": "chart days"}
    return Tag("svg")(*drawn, **box, **{"aria-label": f"{label}: {said or 'none'}"})


def _column(place: int, of: int, column: Column, most: float) -> Iterator[Tag]:
    width = _WIDTH / of
    middle, y = f"{place * width + width / 2:.1f}", float(_HEIGHT - _FOOT)
    for kind, number in column.parts.items():
        if number:
            height = number / most * (_HEIGHT - _FOOT - _TOP)
            y -= height
            box = {"x": f"{place * width + _GAP / 2:.1f}", "y": f"{y:.1f}", "width": f"{width - _GAP:.1f}"}
            yield Tag("rect")(**box, height=f"{height:.1f}", **{"class": kind})
    if column.above:
        yield Tag("text")(column.above, x=middle, y=f"{y - 5:.1f}", **{"text-anchor": "middle"})
    yield Tag("text")(f"{column.day.day}", x=middle, y=f"{_HEIGHT - 5}", **{"text-anchor": "middle"})


def legend(names: Mapping[str, str]) -> Tag:
    """Say which colour is what."""
    return tags.p(
        *(tags.span(words, **{"class": f"key-of {kind}"}) for kind, words in names.items()), **{"class": "legend"}
    )
