"""Reads the tokens and the cost of a response from its first and last bytes. Best effort: never raises an error.

Both dialects report tokens in an object named C{usage}: at the top level of a response that is not streamed, and in the
last events of a stream. Similar text, such as a tool call's argument of that name, is inside a string or nested deeper,
and is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from aileron.model.usage import Usage

FIRST_BYTES = 8 * 1024
LAST_BYTES = 16 * 1024

_NAME = b'"usage"'
_NAMED = re.compile(_NAME + rb"\s*:\s*(?=\{)").match
_model = re.compile(rb'"model"[ \t]{0,8}:[ \t]{0,8}"([^"\\\x00-\x1f]{1,128})"').search
_MOST_TRIED = 8  # each may cost a parse of the whole excerpt
_MOST_TOKENS, _MOST_DOLLARS, _MICRODOLLARS = 10**9, 10_000, 1_000_000
_COUNTED = (
    "prompt_tokens",
    "completion_tokens",
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_DATA = b"data:"
_DECODER = json.JSONDecoder()
# Prefixes for a text that starts with the object named "usage": the result parses if the object was at that level,
# and fails to parse if it was nested deeper.
_OUTERMOST = b'{"usage":'
_OF_RESPONSE = b'{"response":{"usage":'


class TextExcerpt(NamedTuple):
    """The stored excerpt of a text.

    :ivar first: its first bytes.
    :ivar last: its last bytes. If C{whole}, all text after C{first}.
    """

    first: bytes
    last: bytes
    whole: bool

    def __repr__(self) -> str:
        """Return the sizes only, without the text."""
        return f"<TextExcerpt of {len(self.first)} and {len(self.last)} bytes>"

    @classmethod
    def of(cls, text: bytes) -> TextExcerpt:
        """Return the excerpt of a text: all of it if it is short, otherwise its beginning and its end."""
        if len(text) <= FIRST_BYTES + LAST_BYTES:
            return cls(text, b"", True)
        return cls(text[:FIRST_BYTES], text[-LAST_BYTES:], False)

    @property
    def end(self) -> bytes:
        """The longest stored part that reaches to the end of the text without a gap."""
        return self.first + self.last if self.whole else self.last


def find_model(text: TextExcerpt) -> str:
    """Return the first model that a response names, or an empty text. A name in a text of the answer is escaped."""
    found = _model(text.first) or _model(text.last)
    return "" if found is None else found[1].decode("utf-8", "replace")


def usage_at_once(text: TextExcerpt) -> Usage | None:
    """Return the token counts in a JSON object, or None if it has none."""
    end = text.end
    for start in _places(end):
        usage = read_counts(_is_told(_load(_OUTERMOST + end[start:])))
        if usage is not None:
            return usage
    return None


def usage_streamed(text: TextExcerpt) -> Usage | None:
    """Return the token counts in an event stream, or None if it has none.

    Anthropic reports input tokens in the first event and output tokens in the last. A later number replaces an earlier
    one.
    """
    closing = next(filter(None, _closing(text.end)), {})
    return read_counts({**_opening(text.first), **{name: told for name, told in closing.items() if told is not None}})


def _opening(text: bytes) -> Mapping[str, Any]:
    start = text.find(_NAME)
    event = {} if start < 0 else _event(text, start)
    return _inside(event, "message") if event.get("type") == "message_start" else {}


def _closing(text: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the C{usage} objects of the last events of a stream, latest first."""
    for start in _places(text):
        event = _event(text, start)
        # A response's closing event contains the whole conversation and may be longer than the excerpt.
        yield _of_event(event) if event else _of_rest(text[start : _line_end(text, start)])


def _of_event(event: Mapping[str, Any]) -> Mapping[str, Any]:
    if str(event.get("type")).startswith("response."):
        return _inside(event, "response")
    return _is_told(event)


def _of_rest(rest: bytes) -> Mapping[str, Any]:
    return _inside(_load(_OF_RESPONSE + rest), "response") or _is_told(_load(_OUTERMOST + rest))


def _places(text: bytes) -> Iterator[int]:
    """Yield the positions of objects named C{usage}, latest first."""
    end = len(text)
    for _ in range(_MOST_TRIED):
        end = text.rfind(_NAME, 0, end)
        if end < 0:
            return
        named = _NAMED(text, end)
        if named is not None:
            yield named.end()


def _event(text: bytes, position: int) -> Mapping[str, Any]:
    """Return the event at C{position}, or an empty one if it is incomplete."""
    return _load(text[text.rfind(b"\n", 0, position) + 1 : _line_end(text, position)].removeprefix(_DATA))


def _line_end(text: bytes, position: int) -> int:
    end = text.find(b"\n", position)
    return len(text) if end < 0 else end


def _load(text: bytes) -> Mapping[str, Any]:
    """Parse C{text} as a JSON object. If it is not one, return an empty object."""
    try:
        value = _DECODER.decode(text.decode())  # json.loads without its detection of the encoding
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _is_told(holder: Mapping[str, Any]) -> Mapping[str, Any]:
    usage = holder.get("usage")
    return usage if isinstance(usage, dict) else {}


def _inside(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    holder = event.get(name)
    return _is_told(holder) if isinstance(holder, dict) else {}


def read_counts(told: Mapping[str, Any]) -> Usage | None:
    """Return the token counts in a C{usage} object of either dialect, or None if there are none.

    If one of them is no count, such as a negative number or one beyond belief, none of them is believed.
    """
    # guard of spending: numbers beyond belief count as no usage -> test_guard.ChargeTests.test_beyond_belief
    if any(not _is_count(told[name]) for name in _COUNTED if told.get(name) is not None):
        return None
    if "prompt_tokens" in told:
        return Usage(
            _number(told, "prompt_tokens"),
            _number(told, "completion_tokens"),
            _of_details(told, "prompt_tokens_details"),
            _cost(told),
        )
    if "input_tokens" not in told and "output_tokens" not in told:
        return None
    # Anthropic's input_tokens exclude cached tokens. OpenAI's include them.
    from_cache = _number(told, "cache_read_input_tokens")
    return Usage(
        _number(told, "input_tokens") + from_cache + _number(told, "cache_creation_input_tokens"),
        _number(told, "output_tokens"),
        from_cache or _of_details(told, "input_tokens_details"),
        _cost(told),
    )


def _of_details(told: Mapping[str, Any], name: str) -> int:
    details = told.get(name)
    return _number(details, "cached_tokens") if isinstance(details, dict) else 0


def _number(told: Mapping[str, Any], name: str) -> int:
    value: Any = told.get(name)
    return int(value) if _is_count(value) else 0


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST_TOKENS


def _cost(told: Mapping[str, Any]) -> int | None:
    """Return the cost in microdollars, from the dollars that OpenRouter reports, or None if it is not plausible."""
    value = told.get("cost")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_DOLLARS:
        return None  # NaN fails the comparison
    return round(value * _MICRODOLLARS)
