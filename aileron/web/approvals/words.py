"""Shows the differences of two texts word by word. The work is bounded, because an agent may have written them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from attrs import define
from twisted.web.template import Tag, tags

from aileron.values import JSON, comparing_steps, visible

_MOST_CHARACTERS = 20_000
MOST_STEPS = 4_000_000
"""Of comparing for one page: two tenths of a second, however many texts there are."""

_MOST_ALIKE, _AROUND = 400, 150
_PIECES = re.compile(r"[^\S\n]++(?:\w++|[^\w\s])?|\w++|[^\w\s]|\n")


@define
class WordComparison:
    """Compares texts until the work of a page is done.

    :ivar steps: how many steps of comparing are left.
    """

    steps: int = MOST_STEPS

    def draw(self, before: JSON, after: JSON) -> Tag | None:
        """Draw both texts as one, with C{ins} and C{del} around what differs.

        Of a long stretch that is alike only the ends are drawn, and how much lies between: both texts are on the page.

        :return: L{None}: they are no texts, or it would take too long.
        """
        if not (isinstance(before, str) and isinstance(after, str) and len(before) + len(after) <= _MOST_CHARACTERS):
            return None
        pieces = _PIECES.findall(before), _PIECES.findall(after)
        steps = comparing_steps(*pieces)
        if steps > self.steps:
            return None
        self.steps -= steps
        return tags.div(*_draw(*pieces), **{"class": "difference"})


def _draw(before: list[str], after: list[str]) -> Iterator[Tag | str]:
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
