"""Charts drawn as SVG: bars beside names, and columns of days that are stacked by outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from twisted.web.template import Tag, tags

from aileron.values import visible

_WIDTH, _LANE, _LEFT, _RIGHT = 700, 22, 150, 90
_HEIGHT, _TOP, _FOOT, _GAP = 150, 18, 20, 8


def bars(label: str, rows: Sequence[tuple[str, float, str]]) -> Tag:
    """One bar a row.

    :param label: what they are, for who does not see it.
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


def columns(label: str, days: Sequence[tuple[date, Mapping[str, int]]], names: Mapping[str, str]) -> Tag:
    """Draw one column a day, with the number above it.

    :param label: what they are, for who does not see it.
    :param days: each with its numbers, by the class that colours them.
    :param names: these classes in words.
    """
    most = max((sum(counts.values()) for _, counts in days), default=0) or 1
    drawn = [part for place, (day, counts) in enumerate(days) for part in _column(place, len(days), day, counts, most)]
    said = "; ".join(f"{day:%d %b}: {_tell(counts, names)}" for day, counts in days if any(counts.values()))
    box = {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "role": "img", "class": "chart days"}
    return Tag("svg")(*drawn, **box, **{"aria-label": f"{label}: {said or 'none'}"})


def _column(place: int, of: int, day: date, counts: Mapping[str, int], most: int) -> Iterator[Tag]:
    """Draw one day: a part for each outcome, from the bottom up, the number above and the day below."""
    width = _WIDTH / of
    middle, y = f"{place * width + width / 2:.1f}", float(_HEIGHT - _FOOT)
    for kind, count in counts.items():
        if count:
            height = count / most * (_HEIGHT - _FOOT - _TOP)
            y -= height
            box = {"x": f"{place * width + _GAP / 2:.1f}", "y": f"{y:.1f}", "width": f"{width - _GAP:.1f}"}
            yield Tag("rect")(**box, height=f"{height:.1f}", **{"class": kind})
    if any(counts.values()):
        yield Tag("text")(f"{sum(counts.values()):,}", x=middle, y=f"{y - 5:.1f}", **{"text-anchor": "middle"})
    yield Tag("text")(f"{day.day}", x=middle, y=f"{_HEIGHT - 5}", **{"text-anchor": "middle"})


def _tell(counts: Mapping[str, int], names: Mapping[str, str]) -> str:
    return ", ".join(f"{count:,} {names[kind].lower()}" for kind, count in counts.items() if count)


def legend(names: Mapping[str, str]) -> Tag:
    """Say which colour is what."""
    return tags.p(
        *(tags.span(words, **{"class": f"key-of {kind}"}) for kind, words in names.items()), **{"class": "legend"}
    )
