"""Makes the headline of an imported operation, by which its approvals will be shown.

The headline consists of the method, the summary and the arguments that name the object of the operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.model.connectors import READ
from aileron.model.titles import MOST_TITLE, is_removal, to_words

from .description import BODY, PATH, QUERY, ApiOperation, ApiParameter

_MOST_WORDS = 60
_NAMES = ("title", "name", "subject", "summary", "key", "text", "message", "query")
_BLANKS = re.compile(r"\s+")


def write_presentation(operation: ApiOperation) -> dict[str, JSON] | None:
    """Return the table C{present} of an operation, or None if the operation only reads or is not an HTTP request."""
    if operation.effect == READ or not operation.method:
        return None
    removes = operation.destructive and (operation.method == "DELETE" or is_removal(operation.name))
    titles = list(dict.fromkeys(_write_titles(operation)))
    return {"kind": "delete" if removes else "request", "headline": titles[0] if len(titles) == 1 else [*titles]}


def _write_titles(operation: ApiOperation) -> Iterator[str]:
    """Yield headlines: first with all arguments that name the object, then with fewer, for calls that omit some."""
    words = _choose_words(operation)
    place = "/".join(f"${{in.{each.name}}}" for each in operation.parameters if each.place == PATH)
    about = f"{words}: {place}" if place else words
    if len(about) > MOST_TITLE:
        about = words
    named = next((each for each in _NAMES for one in operation.parameters if one.name == each and _is_named(one)), "")
    whole = f"{about}: ${{in.{named}}}"
    if named and len(whole) <= MOST_TITLE:
        yield whole
    yield about


def _is_named(parameter: ApiParameter) -> bool:
    return parameter.place in (BODY, QUERY) and parameter.schema.get("type") in ("string", "integer", "number")


def _choose_words(operation: ApiOperation) -> str:
    """Return the summary if it is short, else the operation's name as words."""
    summary = visible(_BLANKS.sub(" ", operation.title)).strip().rstrip(".:")
    if not summary or len(summary) > _MOST_WORDS or "${" in summary:
        summary = to_words(operation.name)[:_MOST_WORDS] or operation.name[:_MOST_WORDS]
    return summary[:1].upper() + summary[1:]
