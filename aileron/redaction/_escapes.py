"""Text with its escapes undone, and the way back from there to the text as it came."""

from __future__ import annotations

import re
from bisect import bisect_right

from attrs import frozen

MOST_LAYERS = 3
"""How many times escapes are undone."""

_HEX = "[0-9A-Fa-f]{2}"
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}

# Of URLs, of JSON and its kin, of HTML; then what may stand between the characters of a folded or UTF-16 text.
_ESCAPE = re.compile(
    rf"%({_HEX})|\\u00({_HEX})|\\x({_HEX})|\\([\"'\\/])|&#[xX]0*({_HEX});|&#0{{0,9}}([0-9]{{2,3}});"
    rf"|&(amp|lt|gt|quot|apos);|\0+|\r?\n[ \t]*"
)

_SIGN = re.compile(r"[%\\&\0\n]")


@frozen
class Undone:
    """One reading of a text.

    :ivar text: with the escapes undone.
    :ivar ends: for each escape, where it ends in C{text}.
    :ivar sources: the same in the text that was read.
    """

    text: str
    ends: list[int]
    sources: list[int]

    def source(self, index: int) -> int:
        """Find where what stands at C{index} of C{text} stood before."""
        at = bisect_right(self.ends, index) - 1
        return index if at < 0 else self.sources[at] + index - self.ends[at]


def may_be_escaped(text: str) -> bool:
    """Tell whether anything in C{text} could begin an escape."""
    return _SIGN.search(text) is not None


def undone(text: str) -> Undone | None:
    """C{text} with every escape undone once, or L{None}: there is none."""
    pieces, ends, sources, length, done = list[str](), list[int](), list[int](), 0, 0
    for found in _ESCAPE.finditer(text):
        meant = _read(found)
        length += found.start() - done + len(meant)
        pieces += (text[done : found.start()], meant)
        ends.append(length)
        sources.append(found.end())
        done = found.end()
    return Undone("".join((*pieces, text[done:])), ends, sources) if ends else None


def _read(escape: re.Match[str]) -> str:
    """Return what an escape stands for; empty: it only stands between characters."""
    percent, unicode, byte, plain, entity_hex, entity_number, entity = escape.groups()
    if digits := percent or unicode or byte or entity_hex:
        return chr(int(digits, 16))
    return chr(int(entity_number)) if entity_number else plain or _ENTITIES.get(entity, "")
