"""Reads a request before it is sent: its model, how much it may answer, and its digest."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NamedTuple

MOST_HELD_BYTES = 8 * 1024 * 1024
"""The largest request that is read before it is sent. A larger one is refused."""

MOST_ANSWER = 4096
"""The most output tokens that are reserved for a request. Few answers are longer, whatever a request allows."""

_MEMBERS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_MODEL = b'"model"'
_LONGEST_MODEL = 128
_begins_with_model = re.compile(
    rb'\s{0,8}\{\s{0,8}"model"\s{0,8}:\s{0,8}"([A-Za-z0-9_./:@+-]{1,128})"\s{0,8}[,}]'
).match
_is_coded = re.compile(rb"\r\n(?i:content[-_]encoding):(?![ \t]*+(?i:identity)?[ \t]*+\r)").search


class RequestFacts(NamedTuple):
    """The facts about one request to a model that limits need.

    :ivar model: the model, or None if none could be read, or the request names two.
    :ivar answer: the maximum number of output tokens that the request allows, at most L{MOST_ANSWER}.
    :ivar length: the size of the body in bytes.
    :ivar digest: the digest of the path and the body, or None if it is not wanted.
    """

    model: str | None
    answer: int
    length: int
    digest: bytes | None


def read_request(head: bytes, body: bytes, *, digests: bool = True) -> RequestFacts:
    """Parse a complete request.

    :param body: the body without its framing.
    :param digests: whether the digest is wanted.
    """
    digest = hashlib.sha256(head.split(b"\r\n", 1)[0] + b"\0" + body).digest() if digests else None
    if _is_coded(head) is not None:
        return RequestFacts(None, MOST_ANSWER, len(body), digest)
    first = _begins_with_model(body)
    if first is not None and _is_plain(body):
        return RequestFacts(first[1].decode("ascii"), MOST_ANSWER, len(body), digest)
    said = _parse(body)
    allowed = [said[name] for name in _MEMBERS if type(said.get(name)) is int and said[name] > 0]
    return RequestFacts(_find_model(said), min([*allowed, MOST_ANSWER]), len(body), digest)


def _is_plain(body: bytes) -> bool:
    """Return whether C{"model"} occurs at most once in a body, and the body has no Unicode escapes that may hide it."""
    return body.count(_MODEL) <= 1 and b"\\u" not in body


def _find_model(said: dict[str, Any]) -> str | None:
    model = said.get("model")
    return model if isinstance(model, str) and 0 < len(model) <= _LONGEST_MODEL and model.isprintable() else None


def _parse(body: bytes) -> dict[str, Any]:
    """Parse a body as a JSON object. If it is not one, or names two models, return an empty object."""
    # One literal "model" cannot be two members, so the members of all objects are looked through only otherwise.
    hook = None if _is_plain(body) else _Members()
    try:
        said = json.loads(body.decode(), object_pairs_hook=hook)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(said, dict):
        return {}
    # guard of spending: of two models in one request none is believed -> test_request.RequestTests.test_two_models
    if hook is not None and hook.last_repeats:
        return {}
    return said


class _Members:
    """Makes objects of their members, and notes whether the last one, which is the outermost, names two models."""

    def __init__(self) -> None:
        self.last_repeats = False

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        said = dict(pairs)
        self.last_repeats = len(said) != len(pairs) and sum(name == "model" for name, _ in pairs) > 1
        return said
