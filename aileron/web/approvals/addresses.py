"""Addresses that are not what they seem: letters beyond ASCII, scripts mixed in one word, names in disguise."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

import idna

from aileron.values import visible

MOST_PLACES = 1000
"""So many of a kind are looked at in one text."""

_MOST_BEFORE = 64
_NAME_BACKWARDS = re.compile(r"[^\s<>\"'(),;:@\[\]{}|]{0,64}")
_SCHEME_BACKWARDS = re.compile(r"[A-Za-z0-9+.-]{0,20}[A-Za-z]")
_MAIL_HOST = re.compile(r"[^\s<>\"'(),;:@/\[\]{}|]{1,253}")
_AUTHORITY = re.compile(r"[^\s/?#<>\"'|)\]}]{1,400}")
_PORT = re.compile(r":\d{0,5}\Z")
_HOST = re.compile(r"[^\s@/:?#]{1,253}")
_OF_ONE_SCRIPT = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO")


def addresses(text: str) -> Iterator[str]:
    """One sentence for each mail address, host, or host of a URL in C{text} that needs a second look.

    A host by itself is looked for only where it is the whole of C{text}.
    """
    for mail in _each(text, "@", _mail):
        name, _, host = mail.rpartition("@")
        yield from _odd(mail, name, host)
    for link in _each(text, "://", _authority):
        _, at, place = link.rpartition("@")
        if at:
            yield f"“{visible(link)}” leads to {visible(place)}. The part before the @ is not a host."
        yield from _odd(_without_port(place), "", _without_port(place))
    if max(text.count("@"), text.count("://")) > MOST_PLACES:
        yield f"Contains more than {MOST_PLACES:,} addresses. The rest were not checked."
    if "." in text and _HOST.fullmatch(text):
        yield from _odd(text, "", text)


def _each(text: str, sign: str, read: Callable[[str, int], str]) -> Iterator[str]:
    """Yield what C{read} makes of the first places of C{sign} in C{text}, each once."""
    found: dict[str, None] = {}
    place = text.find(sign)
    for _ in range(MOST_PLACES):
        if place < 0:
            break
        found[read(text, place)] = None
        place = text.find(sign, place + len(sign))
    found.pop("", None)
    yield from found


def _mail(text: str, at: int) -> str:
    """Find the address around an C{@}; empty where there is none."""
    host = _MAIL_HOST.match(text, at + 1)
    name = _NAME_BACKWARDS.match(_backwards(text, at)) if host else None
    return f"{name[0][::-1]}@{host[0]}".rstrip(".") if host and name and name[0] else ""


def _authority(text: str, colon: int) -> str:
    """Find what a URL names behind its scheme; empty where it is none."""
    scheme, found = _SCHEME_BACKWARDS.match(_backwards(text, colon)), _AUTHORITY.match(text, colon + 3)
    return found[0] if scheme and len(scheme[0]) > 1 and found else ""


def _backwards(text: str, place: int) -> str:
    """Return what stands before a place, the nearest first."""
    return text[max(0, place - _MOST_BEFORE) : place][::-1]


def _without_port(place: str) -> str:
    return _PORT.sub("", place).rstrip(".")


def _odd(whole: str, name: str, host: str) -> Iterator[str]:
    strange = "".join(dict.fromkeys(each for each in whole if not each.isascii()))
    if strange:
        points = ", ".join(f"{visible(each)} U+{ord(each):04X} {_called(each)}".rstrip() for each in strange[:12])
        more = f" and {len(strange) - 12} more" if len(strange) > 12 else ""
        wire = "" if host.isascii() else f" {_a_label(host)}"
        yield f"“{visible(whole)}” contains non-ASCII characters: {points}{more}.{wire}{_mixed(name, host)}"
    elif "xn--" in host.lower():
        yield f"“{visible(host)}” {_u_label(host)}"


def _called(character: str) -> str:
    return unicodedata.name(character, "")


def _mixed(*words: str) -> str:
    """Find those of the words, between dots, that are written in several scripts at once."""
    found = ""
    for word in ".".join(words).split("."):
        scripts = sorted({_script(each) for each in word if each.isalpha()})
        if len(scripts) > 1:
            found += f" “{visible(word)}” mixes scripts: {', '.join(scripts)}."
    return found


def _script(letter: str) -> str:
    """Return the letter's script, read from its name, which begins with that."""
    first = _called(letter).partition(" ")[0] or "unknown"
    return "East Asian" if first in _OF_ONE_SCRIPT else first.capitalize()


def _a_label(host: str) -> str:
    try:
        return f"The host is sent as {idna.encode(host, uts46=True).decode('ascii')}."
    except (idna.IDNAError, UnicodeError):
        return "The host is not a valid name."


def _u_label(host: str) -> str:
    try:
        name = idna.decode(host)
    except (idna.IDNAError, UnicodeError):
        return "is not a valid name."
    return f"decodes to {visible(name)}.{_mixed(name)}"
