"""What was typed: bytes of a terminal, as keys with names."""

from __future__ import annotations

import codecs
import re

UP, DOWN, PAGE_UP, PAGE_DOWN, HOME = "up", "down", "page up", "page down", "home"
ENTER, ESCAPE, BACKSPACE = "enter", "escape", "backspace"

_SEQUENCES = {
    "\x1b[A": UP,
    "\x1bOA": UP,
    "\x1b[B": DOWN,
    "\x1bOB": DOWN,
    "\x1b[5~": PAGE_UP,
    "\x1b[6~": PAGE_DOWN,
    "\x1b[H": HOME,
    "\x1bOH": HOME,
    "\x1b[1~": HOME,
}
_SINGLES = {"\r": ENTER, "\n": ENTER, "\x1b": ESCAPE, "\x7f": BACKSPACE, "\x08": BACKSPACE}
_PIECE = re.compile(r"\x1b[\[O][0-9;?<]*[ -/]*[@-~]|.", re.DOTALL)


class Keyboard:
    """Turns bytes into keys; a character that comes in two pieces is one key."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def keys(self, typed: bytes) -> tuple[str, ...]:
        """The keys in C{typed}: a printable character as itself, others by name; what has no name is left out."""
        pieces = _PIECE.findall(self._decoder.decode(typed))
        return tuple(key for key in map(_named, pieces) if key)


def _named(piece: str) -> str:
    if len(piece) > 1:
        return _SEQUENCES.get(piece, "")
    return _SINGLES.get(piece) or (piece if piece.isprintable() else "")
