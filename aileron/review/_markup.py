"""Reads texts for what misleads: links that lead elsewhere, people who are notified, addresses in disguise."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

import idna

from aileron.base.text import visible

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


MOST_MARKS = 1000
"""So many of a kind are looked at in one text."""

_MOST_QUOTED = 400
_UNSEEN = f"Contains more than {MOST_MARKS:,} marks of one kind. The rest were not checked."

# Told by the sign alone: whatever is written behind it, a service may close the mark.
_EVERYBODY = re.compile(
    r"<!(?:channel|here|everyone|subteam\^\w++)\b>?|(?<![\w@])@(?:everyone|here|channel)\b", re.IGNORECASE
)
_PERSON = re.compile(r"<@[!&]?[A-Z0-9]++\b>?")
_SLACK = re.compile(r"<(?P<target>(?:https?://|mailto:|ftp://)[^|<>\n]++)\|", re.IGNORECASE)
_MARKDOWN = re.compile(r"(?P<picture>!?)\[(?P<words>[^\[\]]*+)\]\(\s*+|\]\(\s*+")
_REFERENCE = re.compile(
    r"^[ \t>*+\d.)-]{0,20}\[(?P<words>[^\[\]\\]*+(?:\\.[^\[\]\\]*+)*)\]:"
    r"\s*+<?(?P<target>[^\s>]++)>?[ \t]*+(?:$|[\"'(])",
    re.MULTILINE | re.DOTALL,
)
_TARGET_END, _CLOSE, _TAG_END = re.compile(r"[)\s]"), re.compile(r"\)"), re.compile(">")
_TAG = re.compile(r"<[a-z]", re.IGNORECASE)
_LEADS = re.compile(
    r"\b(?P<name>href|src(?:set)?|poster|background|(?:form)?action)"
    r"\s*+=\s*+[\"']?\s*+(?P<target>[^\"'>\s]++)",
    re.IGNORECASE,
)
_WORDS_END = re.compile(r"</?a\b", re.IGNORECASE)
_SCHEME = re.compile(r"\A(?:https?://|mailto:)")
_ANY_TAG = re.compile(r"<[^<>]*+>")


def markup(text: str) -> Iterator[str]:
    """One sentence for each thing in C{text} that a service may act on or hide, in words that are made visible."""
    yield from _notes(
        _EVERYBODY.finditer(text),
        lambda found: f"{_read_quoted(found[0])} notifies a group of people, perhaps everybody.",
    )
    yield from _notes(_PERSON.finditer(text), lambda found: f"{_read_quoted(found[0])} notifies a person or a group.")
    yield from _notes(_SLACK.finditer(text), _Slack(text).note)
    yield from _notes(_MARKDOWN.finditer(text), _Markdown(text).note)
    yield from _notes(_REFERENCE.finditer(text), lambda found: _link(found["words"], found["target"]))
    tag = _TAG.search(text)
    if tag is not None:
        yield from _notes(_LEADS.finditer(text, tag.end()), _Html(text).note)


def _notes(places: Iterator[re.Match[str]], note: Callable[[re.Match[str]], str]) -> Iterator[str]:
    """Tell what there is to say of the first of them, and that there are more."""
    for number, place in enumerate(places):
        if number == MOST_MARKS:
            yield _UNSEEN
            return
        said = note(place)
        if said:
            yield said


class _Next:
    """Finds where a pattern comes next, for places that rise: no character is searched twice."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern, self._text = pattern, text
        self._found = -1

    def after(self, place: int) -> int:
        """Find the first one that does not begin before C{place}; the end of the text where there is none."""
        if self._found < place:
            found = self._pattern.search(self._text, place)
            self._found = len(self._text) if found is None else found.start()
        return self._found


class _Slack:
    """The targets of Slack's links in one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tag_end = _Next(_TAG_END, text)

    def note(self, place: re.Match[str]) -> str:
        """Return the note on the link at C{place}, asked in order; one that is not closed is no link."""
        end = self._tag_end.after(place.end())
        return "" if end == len(self._text) else _link_over(self._text, place.end(), end, place["target"])


class _Markdown:
    """The targets of links and pictures of Markdown in one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._target_end, self._close = _Next(_TARGET_END, text), _Next(_CLOSE, text)

    def note(self, place: re.Match[str]) -> str:
        """Return the note on the link at C{place}, asked in order; words with brackets in them are left out."""
        start, words = place.end(), place["words"] or ""
        end = self._target_end.after(start)
        if end == start or self._close.after(start) == len(self._text):
            return ""
        target = _beginning(self._text, start, end, len(words))
        return _picture(target) if place["picture"] else _link(words, target, whole=len(target) == end - start)


class _Html:
    """The targets of links and pictures of HTML in one text.

    An attribute is one wherever it stands behind the first tag: the end of a tag may be quoted, and so may a tag.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tag_end, self._words_end = _Next(_TAG_END, text), _Next(_WORDS_END, text)

    def note(self, place: re.Match[str]) -> str:
        """Return the note on the link at C{place}, asked in order."""
        name, target = place["name"].lower(), place["target"]
        if name.endswith("action"):
            return f"Contains a form that is sent to {_read_quoted(target)}."
        if name != "href":
            return _picture(target)
        start = self._tag_end.after(place.end()) + 1
        return _link_over(self._text, start, self._words_end.after(start), target)


def _beginning(text: str, start: int, end: int, least: int) -> str:
    """Cut a part of C{text} to what is quoted, and more than C{least} characters: parts may lie in one another."""
    return text[start : min(end, start + max(least, _MOST_QUOTED) + 1)]


def _link_over(text: str, start: int, end: int, target: str) -> str:
    """Find where a link over a part of C{text} leads, without the tags in that."""
    words = _beginning(text, start, end, len(target))
    return _link(_ANY_TAG.sub("", words), target, whole=len(words) == max(0, end - start))


def _picture(target: str) -> str:
    return f"Loads an image or other resource from {_read_quoted(target)}."


def _link(words: str, target: str, *, whole: bool = True) -> str:
    """Find where a link leads, if it does not say so itself.

    :param whole: whether both are; what is not is no word for where it leads.
    """
    if whole and _plain(words) == _plain(target):
        return ""
    return f"A link shows {_read_quoted(words)} but leads to {_read_quoted(target)}."


def _plain(address: str) -> str:
    return _SCHEME.sub("", address.strip().lower()).removesuffix("/")


def _read_quoted(words: str) -> str:
    more = "…" if len(words) > _MOST_QUOTED else ""
    return f"“{visible(words[:_MOST_QUOTED])}{more}”"
