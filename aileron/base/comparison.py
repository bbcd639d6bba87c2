"""Normal forms in which foreign texts and mail addresses are compared: texts that look alike get equal forms."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_MOST_OF_WORD = 256
"""The length of the pieces in which longer words are normalized.

Sorting the marks on one letter takes quadratic time.
"""

_COMMENT = re.compile(r"\([^()]*\)")
_SEPARATOR = re.compile("[,;]")
_IN_BRACKETS = re.compile(r"<([^<>]*@[^<>]*)>")
_INVISIBLE = frozenset(("Cc", "Cf"))

# Default_Ignorable_Code_Point of Unicode beyond the categories above: joiners, vowel and variation selectors, tags.
_IGNORABLE = frozenset(
    (
        0x034F,
        0x17B4,
        0x17B5,
        0x180B,
        0x180C,
        0x180D,
        0x180F,
        0x2065,
        *range(0xFE00, 0xFE10),
        *range(0xFFF0, 0xFFF9),
        *range(0xE0000, 0xE1000),
    )
)
# Characters without ink that are as wide as a letter.
_BLANKS = frozenset(map(chr, (0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0, 0x13441, 0x13442, 0x1D159)))


def normalize_text(text: str) -> str:
    """Return the text in NFKC, case-folded, with single blanks and without invisible characters."""
    return " ".join(strip_invisible(text).casefold().split())


def strip_invisible(text: str) -> str:
    """Return the text in NFKC, with single blanks and without invisible characters."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    shown = text.translate({ord(each): _show(each) for each in set(text)})
    return " ".join(" ".join(map(_compose, shown.split())).split())


def _show(character: str) -> str:
    if character in _BLANKS or character.isspace():
        return " "
    is_invisible = unicodedata.category(character) in _INVISIBLE or ord(character) in _IGNORABLE
    return "" if is_invisible else character


def _compose(word: str) -> str:
    pieces = (word[at : at + _MOST_OF_WORD] for at in range(0, len(word), _MOST_OF_WORD))
    return "".join(unicodedata.normalize("NFKC", each) for each in pieces)


def normalize_address(text: str) -> str:
    """Return the address in C{Bob <bob@example.org> (at work)} in lower case, else L{normalize_text} of the text.

    The name of a group, or C{mailto}, before a colon is removed, as is a domain's last dot.
    """
    bare = _COMMENT.sub(" ", text)
    named = _IN_BRACKETS.findall(bare)
    if len(named) > 1 or "@" not in bare:
        return normalize_text(text)
    address = named[0] if named else bare
    _, _, after = address.rpartition(":")
    address = normalize_text(after if "@" in after else address)
    return address.replace(" @", "@").replace("@ ", "@").rstrip(".")


def normalize_addresses(text: str) -> Iterator[str]:
    """Yield each address of a list separated by commas or semicolons, in the form of L{normalize_address}.

    A comma in a quoted name does not separate addresses, unless the closing quote is missing.
    """
    for each in _split(text):
        if each.strip():
            yield normalize_address(each)


def _split(text: str) -> Iterator[str]:
    start, quoted, escaped = 0, False, False
    for at, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = quoted
        elif character == '"':
            quoted = not quoted
        elif character in ",;" and not quoted:
            yield text[start:at]
            start = at + 1
    yield from _SEPARATOR.split(text[start:]) if quoted else (text[start:],)
