"""Reads what a service makes of a text: the people it notifies, and links that lead elsewhere than they say.

The author of the text may want this to take long.  Each expression here looks at a character a few times: it begins
at a sign that it does not run over, and takes what it took for good (C{++}).  Of the places that are found so many are
looked at, and where there are more it is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from aileron.values import visible

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
