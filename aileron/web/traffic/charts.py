"""Small charts: bars of a few numbers, drawn by us, with the numbers beside them."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.web.template import Tag

from aileron.values import visible

_WIDTH, _LANE, _LEFT, _RIGHT = 700, 22, 150, 90


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
