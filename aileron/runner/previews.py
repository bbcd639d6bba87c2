"""Renders what a service's answer to the read of a preview shows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from aileron.actions import look_up
from aileron.base.json import JSON, canonical, digest_of_bytes, plain
from aileron.model.actions import PreviewRule
from aileron.model.connectors import Outcome
from aileron.model.errors import ConnectorRuntimeError
from aileron.model.reviews import Cut, Preview, PreviewField, PreviewStatus

from .plan import make_unavailable

MOST_BYTES, MOST_BYTES_IN_ALL = 64 * 1024, 256 * 1024
MOST_CARRIED = 4096  # characters; it goes into a request


def render_preview(rule: PreviewRule, outcome: Outcome, carried: Collection[str]) -> Preview:
    """Render what C{rule} shows of an answer.

    :param carried: the paths that steps refer to.
    """
    if outcome.fault is not None:
        return make_unavailable(outcome.fault)
    found = {path: look_up(outcome.output, path) for path in carried}
    ties = {path: value for path, value in found.items() if _ties(value)}
    try:
        return Preview(PreviewStatus.SHOWN, tuple(_fields(rule, outcome.output)), None, ties)
    except (TypeError, ValueError, RecursionError):
        return make_unavailable(ConnectorRuntimeError("The answer is none that could be shown.").fault())


def _fields(rule: PreviewRule, output: JSON) -> Iterator[PreviewField]:
    left = MOST_BYTES_IN_ALL
    for label, path in rule.render:
        value = look_up(output, path)
        if value is None:
            yield PreviewField(label, None, missing=True, multiline=False)
            continue
        text, cut = _text(value, min(left, MOST_BYTES))
        left -= len(text.encode("utf-8"))
        multiline = label in rule.multiline or not isinstance(value, (str, bool, int, float))
        yield PreviewField(label, text, missing=False, multiline=multiline, cut=cut)


def _text(value: JSON, room: int) -> tuple[str, Cut | None]:
    """C{value} in words, cut to C{room} bytes."""
    text = value if isinstance(value, str) else json.dumps(plain(value), indent=2, ensure_ascii=False)
    data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
    if len(data) <= room:
        return data.decode("utf-8"), None
    return data[:room].decode("utf-8", "ignore"), Cut(len(data), digest_of_bytes(data))


def _ties(value: JSON) -> bool:
    """Tell whether a request can be tied to C{value}: a text or a number that means something and can be carried."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    try:
        return 2 < len(canonical(value)) <= MOST_CARRIED if isinstance(value, str) else bool(canonical(value))
    except ValueError:
        return False
