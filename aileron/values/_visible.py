"""The one way in which foreign text is shown to a person: nothing in it acts, hides or turns the reading round."""

from __future__ import annotations

import unicodedata

_DELETE = 0x7F
_PICTURES = 0x2400
_PICTURE_OF_DELETE = "\u2421"

# Controls, formats (bidi and zero-width among them), surrogates, private, unassigned, separators of lines.
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))

# Letters, marks and symbols that print nothing: Unicode's Default_Ignorable_Code_Point beyond the categories above, and
# those whose glyph is empty (fillers, joiners, a blank hieroglyph, a note's missing head, what stands for an object).
_BLANKS = frozenset(
    (
        0x034F,
        *range(0x115F, 0x1161),
        *range(0x17B4, 0x17B6),
        *range(0x180B, 0x1810),
        0x2800,
        0x2D7F,
        0x3164,
        *range(0xFE00, 0xFE10),
        0xFFA0,
        0xFFFC,
        0x1107F,
        0x13441,
        0x13442,
        0x16FE4,
        0x1D159,
    )
)
_MORE_BLANKS = range(0xE0000, 0xE1000)

_OVERLAY = 1  # Unicode's combining class
_MARKS_FOR_SYMBOLS = range(0x20D0, 0x2100)


def visible(text: str, multiline: bool = False) -> str:
    r"""C{text} with each character that a person would not see shown in its place: C{␛}, C{\u202e}.

    So is a mark that covers what it is drawn over.  What it returns holds no control, escape, bidi or zero-width
    character; said twice it is the same.

    :param multiline: keep line feeds, for a caller that puts a margin before each line.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate({ord(each): _show(each, multiline) for each in set(text)})


def _show(character: str, multiline: bool) -> str:
    code = ord(character)
    if character == " " or (multiline and character == "\n"):
        return character
    if code < 0x20:
        return chr(_PICTURES + code)
    if code == _DELETE:
        return _PICTURE_OF_DELETE
    category = unicodedata.category(character)
    odd = category in _UNSEEN or category == "Zs" or code in _BLANKS or code in _MORE_BLANKS or _covers(character)
    return _escape(code) if odd else character


def _covers(character: str) -> bool:
    """Tell whether it is a mark that is drawn over a letter or around it."""
    over = unicodedata.combining(character) == _OVERLAY or unicodedata.category(character) == "Me"
    return over or ord(character) in _MARKS_FOR_SYMBOLS


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
