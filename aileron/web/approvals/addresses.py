"""Addresses that are not what they seem: letters beyond ASCII, scripts mixed in one word, names in disguise."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import idna

from aileron.values import visible

_MAIL = re.compile(r"[^\s<>\"'(),;:@\[\]{}|]{1,64}@[^\s<>\"'(),;:@/\[\]{}|]{1,253}")
_LINK = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://(?P<authority>[^\s/?#<>\"'|)\]}]{1,400})")
_HOST = re.compile(r"[^\s@/:?#]{1,253}")
_OF_ONE_SCRIPT = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO")


def addresses(text: str) -> Iterator[str]:
    """One sentence for each mail address, host, or host of a URL in C{text} that needs a second look.

    A host by itself is looked for only where it is the whole of C{text}.
    """
    for mail in _found(_MAIL, text):
        name, _, host = mail.rpartition("@")
        yield from _odd(mail, name, host)
    for link in dict.fromkeys(found["authority"] for found in _LINK.finditer(text)):
        _, at, place = link.rpartition("@")
        if at:
            yield f"“{visible(link)}” leads to {visible(place)}: what stands before the @ is no host."
        yield from _odd(_without_port(place), "", _without_port(place))
    if "." in text and _HOST.fullmatch(text):
        yield from _odd(text, "", text)


def _found(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    yield from dict.fromkeys(found[0].rstrip(".") for found in pattern.finditer(text))


def _without_port(place: str) -> str:
    return re.sub(r":\d{0,5}\Z", "", place).rstrip(".")


def _odd(whole: str, name: str, host: str) -> Iterator[str]:
    strange = "".join(dict.fromkeys(each for each in whole if not each.isascii()))
    if strange:
        points = ", ".join(f"{visible(each)} U+{ord(each):04X} {_called(each)}".rstrip() for each in strange[:12])
        more = f" and {len(strange) - 12} more" if len(strange) > 12 else ""
        wire = "" if host.isascii() else f" On the wire its host is {_a_label(host)}."
        yield f"“{visible(whole)}” has letters beyond ASCII: {points}{more}.{wire}{_mixed(name, host)}"
    elif "xn--" in host.lower():
        yield f"“{visible(host)}” reads as {_u_label(host)}."


def _called(character: str) -> str:
    return unicodedata.name(character, "")


def _mixed(*words: str) -> str:
    """Which of the words, between dots, are written in several scripts at once."""
    found = ""
    for word in ".".join(words).split("."):
        scripts = sorted({_script(each) for each in word if each.isalpha()})
        if len(scripts) > 1:
            found += f" “{visible(word)}” mixes scripts: {', '.join(scripts)}."
    return found


def _script(letter: str) -> str:
    """By the name of the character, which begins with that of its script."""
    first = _called(letter).partition(" ")[0] or "unknown"
    return "East Asian" if first in _OF_ONE_SCRIPT else first.capitalize()


def _a_label(host: str) -> str:
    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return "none, for it is no valid name"


def _u_label(host: str) -> str:
    try:
        name = idna.decode(host)
    except (idna.IDNAError, UnicodeError):
        return "no valid name"
    return f"{visible(name)}.{_mixed(name)}"
