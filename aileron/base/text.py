"""Makes foreign text safe to show to people: replaces active and invisible characters and finds lookalikes."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

_DELETE = 0x7F
_LINE_FEED = "\u21b5"  # most fonts have this arrow, and few the control picture
_PICTURES = 0x2400
_PICTURE_OF_DELETE = "\u2421"
_STAND_INS = frozenset((_LINE_FEED, _PICTURE_OF_DELETE, *map(chr, range(_PICTURES, _PICTURES + 0x20))))

# Controls, formats (bidi and zero-width among them), surrogates, private, unassigned, line separators.
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))

# Letters, marks and symbols that print nothing: Unicode's Default_Ignorable_Code_Point beyond the categories above, and
# those with an empty glyph (fillers, joiners, a blank hieroglyph, a null notehead, the object replacement character).
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
    r"""Return C{text} with each invisible character replaced by a visible notation: C{↵}, C{␛}, C{\u202e}.

    Marks that cover other characters are replaced too.  The result holds no control, escape, bidi or zero-width
    character.  Idempotent.

    :param multiline: whether to preserve line feeds, for a caller that puts a margin before each line.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate({ord(each): _show(each, multiline) for each in set(text)})


def _show(character: str, multiline: bool) -> str:
    code = ord(character)
    if character == "\n" and not multiline:
        return _LINE_FEED
    if character in (" ", "\n"):
        return character
    if code < 0x20:
        return chr(_PICTURES + code)
    if code == _DELETE:
        return _PICTURE_OF_DELETE
    category = unicodedata.category(character)
    odd = category in _UNSEEN or category == "Zs" or code in _BLANKS or code in _MORE_BLANKS or _covers(character)
    return _escape(code) if odd else character


def _covers(character: str) -> bool:
    """Return True if a character is a mark that is drawn over or around a letter."""
    over = unicodedata.combining(character) == _OVERLAY or unicodedata.category(character) == "Me"
    return over or ord(character) in _MARKS_FOR_SYMBOLS


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


_EAST_ASIAN = "EAST ASIAN"
_OF_NO_SCRIPT = frozenset(("COMMON", "INHERITED", "Unknown"))

_MARK = "\u0301"
_STRANGE = "\ue000"  # neither a mark nor a letter
_STRANGE_MARK = re.compile(rf"[A-Za-z]{_STRANGE}")
# Letters whose dot is replaced by a combining dot above. In Lithuanian an accent follows, and both dots are visible.
_HIDDEN_DOT = re.compile(
    r"[ij\u012f\u0249\u0268\u029d\u0456\u0458\u1e2d\u1ecb][\u0316-\u0333]*+\u0307(?![\u0300\u0301\u0303])"
)
MOST_WORDS = 6
"""The maximum number of words to report per text."""

_FEWEST_LETTERS = 12
"""The minimum number of letters, in words without lookalikes, that makes a text of their script.

A shorter one is a name.
"""

_SIGNS = frozenset("#%&-./:;=?@\\_")  # the separators in names, addresses and paths
_BEFORE_NAMES = frozenset("#@/")
_NAMING = frozenset("#@\uff03\uff20")
_IN_ADDRESSES = frozenset(("LATIN", "CYRILLIC", "GREEK"))
_SIGN, _BESIDE_SIGNS, _ELSE = "s", "a", "-"
_BETWEEN = re.compile(f"(?:(?<={_BESIDE_SIGNS})|^){_SIGN}++(?={_BESIDE_SIGNS})")
_TWO_LETTERS = re.compile("[A-Za-z]{2}")
_EDGE = 40
_FULL_STOPS = frozenset("\u3002\uff61")  # as in host names (RFC 3490, section 3.1)
_NOT_MISTAKEN = frozenset("ªºÆæŒœ×\u2010\u2011\u2012\u2013")  # letters of languages, dashes between words
_DOTLESS_I = "ı"
_LATIN = "LATIN"
_FROM_RIGHT = frozenset(("R", "AL", "AN"))


RIGHT_TO_LEFT = "Contains right-to-left text: words and symbols may be shown in a different order than they are sent."


def cautions(text: str) -> Iterator[str]:
    """Yield a warning for each word that looks like another, for stacked marks, for right-to-left text and for symbols.

    The symbols are those that L{visible} uses as notation for other characters.
    """
    if text.isascii():
        return
    characters = set(text)
    alike = {each: read for each in characters if (read := _lookalike(each))}
    found = list(_Words(text, alike).disguised()) if alike else []
    for word in found[:MOST_WORDS]:
        yield _describe(word, alike)
    if len(found) > MOST_WORDS:
        yield f"{len(found) - MOST_WORDS:,} more words look like other words."
    yield from _about_marks(text, characters)
    if signs := sorted(characters & _STAND_INS):
        yield f"Contains the symbol {' '.join(signs)} itself, which elsewhere stands for a control character."
    if any(unicodedata.bidirectional(each) in _FROM_RIGHT for each in characters):
        yield RIGHT_TO_LEFT


class _Words:
    """The words of one text and its scripts.

    :ivar _names: maps each word to whether it belongs to a name: a token with C{#} or C{@}.
    :ivar _written_in: the scripts whose other words clearly outnumber the words that look like ASCII.
    """

    def __init__(self, text: str, alike: Mapping[str, str]) -> None:
        self._letters = {each: read for each, read in alike.items() if read.isalnum()}
        self._signs = {each: read for each, read in alike.items() if not read.isalnum()}
        self._tokens = dict.fromkeys(text.split())
        self._scripts_of = {each: _script(each) for each in set(text)}
        self._shapes = {ord(each): self._shape(each) for each in self._scripts_of}
        self._names: dict[str, bool] = {}
        gaps = {ord(each): " " for each in self._scripts_of if not self._in_words(each)}
        for token in self._tokens:
            naming = not _NAMING.isdisjoint(token)
            for word in token.translate(gaps).split():
                self._names[word] = naming or self._names.get(word, False)
        self._written_in = frozenset(self._prose())

    def disguised(self) -> Iterator[str]:
        """Yield the words and signs that look like something else, without duplicates."""
        yield from (word for word in self._names if not word.isascii() and self._misleads(word))
        if self._signs:
            yield from filter(None, dict.fromkeys(map(self._with_signs, self._tokens)))

    def _in_words(self, character: str) -> bool:
        return character.isalnum() or character == "_" or character in self._letters or _is_mark(character)

    def _shape(self, character: str) -> str:
        if character in self._signs:
            return _SIGN
        return _BESIDE_SIGNS if character.isascii() or self._scripts_of[character] in _IN_ADDRESSES else _ELSE

    def _prose(self) -> Iterator[str]:
        own, rest = Counter[str](), Counter[str]()
        for word in self._names:
            looks, scripts = self._looks_ascii(word), self._scripts(word)
            if len(scripts) == 1 and not (looks and _DOTLESS_I in word):
                (rest if looks else own)[scripts.pop()] += len(word)
        latin = own[_LATIN] + rest[_LATIN]
        for each, letters in own.items():
            # In a language with a dotless i, at least two words in five have another letter that is not ASCII.
            others = rest[_LATIN] * 2 / 3 if each == _LATIN else max(2 * rest[each], latin)
            if letters >= max(_FEWEST_LETTERS, others):
                yield each

    def _misleads(self, word: str) -> bool:
        alike = self._letters.keys() & set(word)
        if not any(map(str.isalnum, alike)):
            return bool(alike) and _TWO_LETTERS.search(word) is not None
        scripts = self._scripts(word)
        if len(scripts) > 1 or (scripts <= {_LATIN} and alike != {_DOTLESS_I}):
            return True
        return self._looks_ascii(word) and (self._names[word] or not scripts <= self._written_in)

    def _looks_ascii(self, word: str) -> bool:
        return word.isascii() or all(self._letters.get(each, each).isascii() or _is_mark(each) for each in word)

    def _scripts(self, word: str) -> set[str]:
        return {self._scripts_of[each] for each in word} - _OF_NO_SCRIPT

    def _with_signs(self, token: str) -> str:
        """Return the text around the first relevant sign in a token that looks like another, or an empty string."""
        for found in _BETWEEN.finditer(token.translate(self._shapes)):
            start, run = found.start(), token[found.start() : found.end()]
            wide = _EAST_ASIAN in self._written_in and all(self._scripts_of[each] == _EAST_ASIAN for each in run)
            matters = start > 0 or self._signs[run[0]] in _BEFORE_NAMES
            if matters and not (wide and _NAMING.isdisjoint(token)):
                return token[max(0, start - _EDGE) : found.end() + _EDGE]
        return ""


def _describe(word: str, alike: Mapping[str, str]) -> str:
    strange = list(dict.fromkeys(each for each in word if each in alike))
    read = "".join(alike.get(each, each) for each in word)
    points = ", ".join(f"U+{ord(each):04X} {unicodedata.name(each, '')}".rstrip() for each in strange[:4])
    more = f" and {len(strange) - 4} more" if len(strange) > 4 else ""
    return f"“{visible(word[:80])}” looks like “{visible(read[:80])}”: it contains {points}{more}."


def _lookalike(character: str) -> str:
    """Return the ASCII letters, digits or sign that a character looks like, with its own marks, or an empty string."""
    kind = unicodedata.category(character)
    if character.isascii() or kind[0] not in "LNPS" or character in _NOT_MISTAKEN:
        return ""
    if character in _FULL_STOPS:
        return "."
    # Raised, lowered and circled numbers (No) are recognizable, and a symbol can be mistaken for one letter at most.
    compatible = [] if kind == "No" else [unicodedata.normalize("NFKC", character)]
    alike = (each for each in (*compatible, *_confusables().get(character, ())) if each.isascii())
    read = (each for each in alike if each in _SIGNS or (each.isalnum() and (kind[0] in "LN" or len(each) == 1)))
    return next(read, "") or _with_its_marks(character)


def _with_its_marks(character: str) -> str:
    """Return the lookalike of a letter that has marks, such as C{ё}, or an empty string."""
    parts = unicodedata.normalize("NFD", character)
    letter, marks = parts[0], parts[1:]
    read = _lookalike(letter) if marks and all(map(_is_mark, marks)) else ""
    return unicodedata.normalize("NFC", read + marks) if read.isalnum() else ""


@cache
def _confusables() -> Mapping[str, Sequence[str]]:
    # Imported here: it reads a megabyte of data, and most texts are ASCII.
    from confusable_homoglyphs.confusables import confusables_data  # type: ignore[import-untyped]

    return {each: [other["c"] for other in others] for each, others in confusables_data.items()}


def _script(character: str) -> str:
    """Return the script of a character.  Wide Latin letters count as East Asian."""
    if unicodedata.east_asian_width(character) in ("F", "H", "W"):
        return _EAST_ASIAN
    # Imported here: it reads a megabyte of data, and most texts are ASCII.
    from confusable_homoglyphs.categories import alias  # type: ignore[import-untyped]

    return str(alias(character))


def _is_mark(character: str) -> bool:
    """Return whether a character is a combining mark, which attaches to the character before it."""
    return unicodedata.category(character)[0] == "M"


def _about_marks(text: str, characters: set[str]) -> Iterator[str]:
    """Yield a warning for each way in which marks in C{text} may be invisible or hide something.

    :param characters: the set of characters in the text.
    """
    if _HIDDEN_DOT.search(text):
        yield "A combining dot is on an i or j, where it cannot be seen: the word is not what it looks like."
    if _has_strange_marks(text, characters):
        yield "Marks of other scripts are on ASCII letters: they may be hard or impossible to see."
    if _has_piles(text, characters):
        yield "Marks are stacked on letters: they may cover nearby text."


def _has_strange_marks(text: str, characters: set[str]) -> bool:
    strange = {ord(each) for each in characters if _is_mark(each) and _script(each) not in _OF_NO_SCRIPT}
    return bool(strange) and _STRANGE_MARK.search(text.translate(dict.fromkeys(strange, _STRANGE))) is not None


def _has_piles(text: str, characters: set[str]) -> bool:
    """Return True if a letter has three or more marks of a combining class other than 0, or five or more of any."""
    marks = {each for each in characters if unicodedata.category(each) == "Mn"}
    placed = {ord(each): _MARK for each in marks if unicodedata.combining(each)}
    return any(
        _MARK * most in text.translate(mapping)
        for mapping, most in ((placed, 3), ({ord(each): _MARK for each in marks}, 5))
        if mapping
    )


_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def duration(seconds: float) -> str:
    """Return a duration for people: C{0.5 s}, C{45 s}, C{15 min}, C{2 h 5 min} or C{3 d 4 h}."""
    if seconds < 10:
        return f"{max(seconds, 0):.2g} s"
    left = round(seconds)
    parts: list[str] = []
    for size, unit in (*_UNITS, (1, "s")):
        number, left = divmod(left, size)
        if number or parts:
            parts.append(f"{number} {unit}" if number else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts))
