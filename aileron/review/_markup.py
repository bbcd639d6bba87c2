"""Finds misleading parts of texts: links with another target, mentions that notify people, disguised addresses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

import idna

from aileron.base.text import visible

MOST_PLACES = 1000
"""The number of places of one kind that are checked in one text."""

_MOST_BEFORE = 64
_NAME_BACKWARDS = re.compile(r"[^\s<>\"'(),;:@\[\]{}|]{0,64}")
_SCHEME_BACKWARDS = re.compile(r"[A-Za-z0-9+.-]{0,20}[A-Za-z]")
_MAIL_HOST = re.compile(r"[^\s<>\"'(),;:@/\[\]{}|]{1,253}")
_AUTHORITY = re.compile(r"[^\s/?#<>\"'|)\]}]{1,400}")
_PORT = re.compile(r":\d{0,5}\Z")
_HOST = re.compile(r"[^\s@/:?#]{1,253}")
_OF_ONE_SCRIPT = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO")


def addresses(text: str) -> Iterator[str]:
    """Yield a sentence for each mail address, host, or host of a URL in C{text} that needs a second look.

    A host without a URL is checked only if it is the whole of C{text}.
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
    """Yield the result of C{read} at the first places of C{sign} in C{text}, each result once."""
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
    """Return the mail address around an C{@}, or an empty text if there is none."""
    host = _MAIL_HOST.match(text, at + 1)
    name = _NAME_BACKWARDS.match(_backwards(text, at)) if host else None
    return f"{name[0][::-1]}@{host[0]}".rstrip(".") if host and name and name[0] else ""


def _authority(text: str, colon: int) -> str:
    """Return the authority of the URL at C{colon}, or an empty text if there is no URL."""
    scheme, found = _SCHEME_BACKWARDS.match(_backwards(text, colon)), _AUTHORITY.match(text, colon + 3)
    return found[0] if scheme and len(scheme[0]) > 1 and found else ""


def _backwards(text: str, place: int) -> str:
    """Return the characters before a place in reverse order."""
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
    """Return a sentence for each part of C{words}, split at dots, that mixes scripts, or an empty text."""
    found = ""
    for word in ".".join(words).split("."):
        scripts = sorted({_script(each) for each in word if each.isalpha()})
        if len(scripts) > 1:
            found += f" “{visible(word)}” mixes scripts: {', '.join(scripts)}."
    return found


def _script(letter: str) -> str:
    """Return a letter's script: "East Asian", or else the first word of its Unicode name."""
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
"""The number of marks of one kind that are checked in one text."""

_MOST_QUOTED = 400
_UNSEEN = f"Contains more than {MOST_MARKS:,} marks of one kind. The rest were not checked."

# Matched by its beginning alone: a service may close the mark itself.
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


_LINK, _MARKUP = "link", "markup"


def markup(text: str) -> Iterator[str]:
    """Yield the sentences of L{find_markup}, without the ids of the warnings."""
    yield from (sentence for _, sentence in find_markup(text))


def find_markup(text: str) -> Iterator[tuple[str, str]]:
    """Yield a warning about each part of C{text} that a service may act on or hide: an id and a sentence.

    The id is one of L{WARNINGS}: C{link} for a link that shows something else than its target, else C{markup}. Quotes
    show invisible characters.
    """
    yield from _notes(
        _EVERYBODY.finditer(text),
        lambda found: (_MARKUP, f"{_read_quoted(found[0])} notifies a group of people, perhaps everybody."),
    )
    yield from _notes(
        _PERSON.finditer(text), lambda found: (_MARKUP, f"{_read_quoted(found[0])} notifies a person or a group.")
    )
    yield from _notes(_SLACK.finditer(text), _Slack(text).note)
    yield from _notes(_MARKDOWN.finditer(text), _Markdown(text).note)
    yield from _notes(_REFERENCE.finditer(text), lambda found: _link(found["words"], found["target"]))
    tag = _TAG.search(text)
    if tag is not None:
        yield from _notes(_LEADS.finditer(text, tag.end()), _Html(text).note)


_Note = tuple[str, str] | None


def _notes(places: Iterator[re.Match[str]], note: Callable[[re.Match[str]], _Note]) -> Iterator[tuple[str, str]]:
    """Yield the warnings about the first L{MOST_MARKS} places, and a last one if there are more."""
    for number, place in enumerate(places):
        if number == MOST_MARKS:
            yield _MARKUP, _UNSEEN
            return
        said = note(place)
        if said is not None:
            yield said


class _Next:
    """A search for a pattern in one text from positions that never decrease. No character is searched twice."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern, self._text = pattern, text
        self._found = -1

    def after(self, place: int) -> int:
        """Return the start of the first match at or after C{place}, or the end of the text if there is none."""
        if self._found < place:
            found = self._pattern.search(self._text, place)
            self._found = len(self._text) if found is None else found.start()
        return self._found


class _Slack:
    """Finds the URLs of Slack's links (C{<url|text>}) in one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tag_end = _Next(_TAG_END, text)

    def note(self, place: re.Match[str]) -> _Note:
        """Return the warning about the link at C{place}, or None if it is not closed.

        Call this in the order of the places.
        """
        end = self._tag_end.after(place.end())
        return None if end == len(self._text) else _link_over(self._text, place.end(), end, place["target"])


class _Markdown:
    """Finds the URLs of Markdown's links and pictures in one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._target_end, self._close = _Next(_TARGET_END, text), _Next(_CLOSE, text)

    def note(self, place: re.Match[str]) -> _Note:
        """Return the warning about the link at C{place}, or None if it is not closed or shows its own target.

        Call this in the order of the places.
        """
        start, words = place.end(), place["words"] or ""
        end = self._target_end.after(start)
        if end == start or self._close.after(start) == len(self._text):
            return None
        target = _beginning(self._text, start, end, len(words))
        return _picture(target) if place["picture"] else _link(words, target, whole=len(target) == end - start)


class _Html:
    """Finds the URLs of links and pictures of HTML in one text.

    After the first tag, text that looks like an attribute counts as one, even outside of tags. The reason is that
    quotes may hide where a tag ends.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tag_end, self._words_end = _Next(_TAG_END, text), _Next(_WORDS_END, text)

    def note(self, place: re.Match[str]) -> _Note:
        """Return the warning about the link at C{place}, or None if it shows its own target.

        Call this in the order of the places.
        """
        name, target = place["name"].lower(), place["target"]
        if name.endswith("action"):
            return _MARKUP, f"Contains a form that is sent to {_read_quoted(target)}."
        if name != "href":
            return _picture(target)
        start = self._tag_end.after(place.end()) + 1
        return _link_over(self._text, start, self._words_end.after(start), target)


def _beginning(text: str, start: int, end: int, least: int) -> str:
    """Return C{text} from C{start} to C{end}, or only its beginning if it is long.

    The beginning suffices for a quote and for a comparison. Without the cut, overlapping parts could be read over and
    over.

    :param least: the length of the text that the result is compared with. The result is cut only if it is longer.
    """
    return text[start : min(end, start + max(least, _MOST_QUOTED) + 1)]


def _link_over(text: str, start: int, end: int, target: str) -> _Note:
    """Return the warning about a link that is shown as a part of C{text}, or None if it shows its own target.

    Tags within that part are ignored.
    """
    words = _beginning(text, start, end, len(target))
    return _link(_ANY_TAG.sub("", words), target, whole=len(words) == max(0, end - start))


def _picture(target: str) -> _Note:
    return _MARKUP, f"Loads an image or other resource from {_read_quoted(target)}."


def _link(words: str, target: str, *, whole: bool = True) -> _Note:
    """Return the warning that names a link's target, or None if the link shows its own target.

    :param whole: whether C{words} and C{target} are complete. If not, they are treated as different.
    """
    if whole and _plain(words) == _plain(target):
        return None
    return _LINK, f"A link shows {_read_quoted(words)} but leads to {_read_quoted(target)}."


def _plain(address: str) -> str:
    return _SCHEME.sub("", address.strip().lower()).removesuffix("/")


def _read_quoted(words: str) -> str:
    more = "…" if len(words) > _MOST_QUOTED else ""
    return f"“{visible(words[:_MOST_QUOTED])}{more}”"
