"""Finds the error message in a response whose connector file does not declare its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aileron.base.json import JSON

MOST_MESSAGE = 300
"""Characters of a service's message that reach the model and the lists."""

_TEXTS = (
    "message",
    "detail",
    "error_description",
    "errormessage",
    "error_message",
    "description",
    "msg",
    "reason",
    "title",
    "code",
)
_WHOLES = ("error", "errors", "fault", "detail", "message")
_PLACES = ("field", "path", "loc", "param", "pointer")
_MOST_DEPTH, _MOST_LISTED = 4, 3


def find_message(content: JSON) -> str | None:
    """Return the service's message in an answer, or None if no usual member holds one.

    These are C{error}, C{message}, C{errors}, C{detail} and C{title} (RFC 9457), C{error_description} (RFC 6749) and
    names like them, in any case.
    """
    found = "; ".join(dict.fromkeys(_find(content, _MOST_DEPTH)))
    return " ".join(found.split()).rstrip(".") or None


def _find(content: JSON, depth: int) -> Iterator[str]:
    """Yield the error messages in C{content}, the general one before those in lists."""
    if isinstance(content, str):
        if content.strip():
            yield content[: 2 * MOST_MESSAGE]
    elif depth and isinstance(content, Mapping):
        yield from _find_in_table(content, depth)
    elif depth and isinstance(content, Sequence):
        for each in content[:_MOST_LISTED]:
            yield from _find(each, depth - 1)


def _find_in_table(table: Mapping[str, JSON], depth: int) -> Iterator[str]:
    named = {name.lower(): value for name, value in table.items()}
    text = next((value for name in _TEXTS if isinstance(value := named.get(name), str) and value.strip()), None)
    if text is not None:
        yield _place(named, text)
    elif isinstance(error := named.get("error"), str) and error.strip():
        yield error[: 2 * MOST_MESSAGE]
    for name in _WHOLES:
        value = named.get(name)
        if isinstance(value, Mapping) and name == "errors":
            yield from _find_by_field(value, depth - 1)
        elif isinstance(value, Mapping | Sequence) and not isinstance(value, str):
            yield from _find(value, depth - 1)
    if len(table) == 1 and not named.keys() & {*_TEXTS, *_WHOLES}:  # the root element of XML
        yield from _find(next(iter(table.values())), depth - 1)


def _find_by_field(errors: Mapping[str, JSON], depth: int) -> Iterator[str]:
    """Yield the messages of a table whose keys are field names, each with its field before it."""
    for field, value in list(errors.items())[:_MOST_LISTED]:
        for each in list(_find(value, depth))[:1]:
            yield f"{field[:100]}: {each}"


def _place(named: Mapping[str, JSON], text: str) -> str:
    """Return the text, with the name of its field before it if a member names one."""
    cut = text[: 2 * MOST_MESSAGE]
    for name in _PLACES:
        value = named.get(name)
        place = ".".join(map(str, value[:8])) if isinstance(value, list) else value
        if isinstance(place, str) and 0 < len(place) <= 100:
            return f"{place}: {cut}"
    return cut
