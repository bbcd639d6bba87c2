"""Finds letters that look like other ones, and text that is read from right to left, by Unicode's data.

Letters are alike as Unicode's confusables say (UTS 39).  A word is told of where it would be read as another one: it
mixes letters of two scripts that look alike, or it has letters or digits in disguise.  A whole word that looks like
another is told of unless the text has further words of its script, as a text in that language has.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from ._visible import visible

MOST_WORDS = 6
"""So many words of a text are told of."""

_WORD = re.compile(r"\w+")
_OF_NO_SCRIPT = frozenset(("COMMON", "INHERITED", "Unknown"))
_RIGHT_TO_LEFT = frozenset(("R", "AL", "AN"))
_LETTERS_AND_NUMBERS = ("L", "N")


def is_plain(text: str) -> bool:
    """Whether every letter and digit is what it looks like, and is read from left to right."""
    return text.isascii() or not any(_lookalike(each) or _is_turned(each) for each in set(text) if not each.isascii())


def cautions(text: str) -> Iterator[str]:
    """One sentence for each word that looks like another, and one if a part is read from right to left."""
    if text.isascii():
        return
    found = _disguised(text)
    for word in found[:MOST_WORDS]:
        yield _described(word)
    if len(found) > MOST_WORDS:
        yield f"{len(found) - MOST_WORDS:,} more words look like others."
    if any(map(_is_turned, set(text))):
        yield "Parts are read from right to left: words and signs may be shown in another order than they are sent in."


def _disguised(text: str) -> list[str]:
    """The words that look like other ones, each once."""
    words = [word for word in dict.fromkeys(_WORD.findall(text)) if not word.isascii()]
    scripts = {word: _scripts(word) for word in words}
    prose = {script for word in words for script in scripts[word] if not _is_wholly_alike(word)}
    return [word for word in words if _misleads(word, scripts[word], prose)]


def _misleads(word: str, scripts: frozenset[str], prose: set[str]) -> bool:
    """Whether a word would be read as another.

    :param prose: the scripts of which the text has words that look like no other.
    """
    alike = [each for each in word if not each.isascii() and _lookalike(each)]
    if not alike:
        return False
    foreign = scripts - {"LATIN"}
    if len(scripts) > 1 or not foreign:
        return True
    return _is_wholly_alike(word) and not foreign & prose


def _is_wholly_alike(word: str) -> bool:
    return all(each.isascii() or _lookalike(each) for each in word)


def _described(word: str) -> str:
    alike = dict.fromkeys(each for each in word if not each.isascii() and _lookalike(each))
    read = "".join(_lookalike(each) or each for each in word)
    points = ", ".join(f"U+{ord(each):04X} {unicodedata.name(each, '')}".rstrip() for each in list(alike)[:4])
    more = f" and {len(alike) - 4} more" if len(alike) > 4 else ""
    return f"“{visible(word[:80])}” looks like “{visible(read[:80])}”: it has {points}{more}."


@lru_cache(maxsize=4096)
def _lookalike(character: str) -> str:
    """The ASCII letters or digits that a letter or digit looks like; empty where there are none."""
    if character.isascii() or not unicodedata.category(character).startswith(_LETTERS_AND_NUMBERS):
        return ""
    compatible = unicodedata.normalize("NFKC", character)
    if compatible.isascii() and compatible.isalnum():
        return compatible
    # Imported here: it reads a megabyte of data, and most texts are ASCII.
    from confusable_homoglyphs.confusables import confusables_data  # type: ignore[import-untyped]

    alike = (each["c"] for each in confusables_data.get(character, ()))
    return next((each for each in alike if each.isascii() and each.isalnum()), "")


@lru_cache(maxsize=4096)
def _script(character: str) -> str:
    from confusable_homoglyphs.categories import alias  # type: ignore[import-untyped]

    return str(alias(character))


def _scripts(word: str) -> frozenset[str]:
    return frozenset(_script(each) for each in set(word)) - _OF_NO_SCRIPT


def _is_turned(character: str) -> bool:
    return unicodedata.bidirectional(character) in _RIGHT_TO_LEFT
