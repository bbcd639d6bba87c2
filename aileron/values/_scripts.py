"""Scripts of characters, by Unicode's data, and marks on letters that nobody sees as they are meant to be seen."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

EAST_ASIAN = "EAST ASIAN"
OF_NO_SCRIPT = frozenset(("COMMON", "INHERITED", "Unknown"))

_MARK = "\u0301"
_STRANGE = "\ue000"  # neither a mark nor a letter
_STRANGE_MARK = re.compile(rf"[A-Za-z]{_STRANGE}")
# Letters with a dot, which a dot above takes the place of; in Lithuanian an accent follows, and both are seen.
_HIDDEN_DOT = re.compile(
    r"[ij\u012f\u0249\u0268\u029d\u0456\u0458\u1e2d\u1ecb][\u0316-\u0333]*+\u0307(?![\u0300\u0301\u0303])"
)


def script(character: str) -> str:
    """Its script; wide forms of Latin letters are written in East Asia."""
    if unicodedata.east_asian_width(character) in ("F", "H", "W"):
        return EAST_ASIAN
    # Imported here: it reads a megabyte of data, and most texts are ASCII.
    from confusable_homoglyphs.categories import alias  # type: ignore[import-untyped]

    return str(alias(character))


def is_mark(character: str) -> bool:
    """Return whether a character is a combining mark, which attaches to the character before it."""
    return unicodedata.category(character)[0] == "M"


def about_marks(text: str, characters: set[str]) -> Iterator[str]:
    """One sentence for each way in which marks in C{text} may not be seen, or hide something.

    :param characters: of the text.
    """
    if _HIDDEN_DOT.search(text):
        yield "A dot is put on an i or j, which has one: nobody sees that it is another word than it looks like."
    if _has_strange_marks(text, characters):
        yield "Marks of other scripts are put on ASCII letters: they may be seen badly, or not at all."
    if _has_piles(text, characters):
        yield "Marks are piled on letters: they may cover what stands around."


def _has_strange_marks(text: str, characters: set[str]) -> bool:
    strange = {ord(each) for each in characters if is_mark(each) and script(each) not in OF_NO_SCRIPT}
    return bool(strange) and _STRANGE_MARK.search(text.translate(dict.fromkeys(strange, _STRANGE))) is not None


def _has_piles(text: str, characters: set[str]) -> bool:
    """Return whether a letter has three or more marks of a combining class other than 0, or five or more of any."""
    marks = {each for each in characters if unicodedata.category(each) == "Mn"}
    placed = {ord(each): _MARK for each in marks if unicodedata.combining(each)}
    return any(
        _MARK * most in text.translate(mapping)
        for mapping, most in ((placed, 3), ({ord(each): _MARK for each in marks}, 5))
        if mapping
    )
