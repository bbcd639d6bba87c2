"""Titles: one line that says what a request does, written from a template of the connector's file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from aileron.base.json import JSON, plain
from aileron.base.text import visible

MOST_TITLE = 120
"""The number of characters to which a title is cut."""

UNKNOWN = "…"
"""The placeholder for an input that is not known yet, and for the part of a text that is cut off."""

REFERENCE = re.compile(r"\$\{in\.([A-Za-z_][A-Za-z0-9_-]*)\}")
_BLANKS = re.compile(r"[ \t\r\n]++")
_MOST_VALUE = 60
_MOST_LISTED = 3
_ABSENT: tuple[JSON, ...] = (None, "", [], ())
_QUOTES = str.maketrans(dict.fromkeys("“”„‟", '"'))


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_A-Za-z0-9]+")
_REMOVALS = frozenset(
    ("delete", "remove", "destroy", "drop", "purge", "truncate", "wipe", "erase", "terminate", "revoke", "uninstall")
)


def to_words(name: str) -> str:
    """Return a name such as C{create_issue} or C{createIssue} as words that begin with a capital."""
    words = [each if each.isupper() and len(each) > 1 else each.lower() for each in _WORDS.findall(name)]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def is_removal(name: str) -> bool:
    """Return whether one of the first two words of a name, such as C{repo_delete}, says that something is removed."""
    return not _REMOVALS.isdisjoint(to_words(name).lower().split()[:2])


def inputs_of_title(title: str) -> tuple[str, ...]:
    """Return the names of the inputs that a template of a title refers to."""
    return tuple(REFERENCE.findall(title))


def write_title(templates: Sequence[str], inputs: Mapping[str, JSON]) -> str:
    """Return the title written from the first template whose inputs are all given, or an empty text if there is none.

    Invisible characters of the inputs are replaced by a visible notation, runs of whitespace by one space. A value of
    several words is quoted if words of the template follow it, so that the value cannot imitate them.
    """
    for template in templates:
        names = inputs_of_title(template)
        if all(inputs.get(name) not in _ABSENT for name in names):
            return cut_title("".join(_fill(template, {name: inputs[name] for name in names})))
    return ""


def cut_title(text: str, most: int = MOST_TITLE) -> str:
    """Return C{text} in one line of at most C{most} characters. Invisible characters get a visible notation."""
    seen = visible(_flatten(text[: 2 * most]))
    return seen if len(seen) <= most and len(text) <= 2 * most else f"{seen[: most - 1].rstrip()}{UNKNOWN}"


def count_more(title: str, more: int) -> str:
    """Return C{title}, shortened to fit, with the number of further steps after it.

    If C{more} is 0, return it unchanged.

    :param more: the number of further steps.
    """
    if not more:
        return title
    words = f" and {more} more step{'' if more == 1 else 's'}"
    return cut_title(title, MOST_TITLE - len(words)) + words


def _fill(template: str, values: Mapping[str, JSON]) -> Iterator[str]:
    pieces = REFERENCE.split(template)
    for place, piece in enumerate(pieces):
        if place % 2 == 0:
            yield piece
            continue
        last = not "".join(pieces[place + 1 :]).strip()
        yield _write(values[piece], _quote if not last else str)


def _quote(words: str) -> str:
    """Return C{words} in quotes if they are several words, else unchanged."""
    return words if words.split() == [words] else f"“{words.translate(_QUOTES)}”"


def _write(value: JSON, quoted: Callable[[str], str]) -> str:
    """Return the beginning of a value as words.

    :param quoted: formats the words of the value, for example in quotes.
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        more = len(value) - _MOST_LISTED
        listed = ", ".join(_write(each, quoted) for each in value[:_MOST_LISTED])
        return f"{listed} and {more} more" if more > 0 else listed
    text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    words = _flatten(text[: 2 * _MOST_VALUE])
    short = len(words) <= _MOST_VALUE and len(text) <= 2 * _MOST_VALUE
    return quoted(words if short else f"{words[:_MOST_VALUE]}{UNKNOWN}")


def _flatten(text: str) -> str:
    """Return C{text} with each run of spaces, tabs and line feeds as one space."""
    return _BLANKS.sub(" ", text).strip(" ")
