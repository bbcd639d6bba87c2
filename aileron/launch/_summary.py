"""What a session came to, told at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_MINUTE, _HOUR = 60, 3600


def summary_of(session: Mapping[str, Any]) -> Iterator[str]:
    """The lines, of what the daemon says of a session that ended; none of a daemon that says nothing of it."""
    summary = session.get("summary")
    if not isinstance(summary, Mapping):
        return
    calls = _many(summary["calls"], "call")
    told = [f"{summary[name]} {words}" for name, words in _PARTS if summary[name]]
    yield f"session {session.get('id')} ended after {_lasted(summary['seconds'])}: {', '.join([calls, *told])}"
    traffic = session.get("gateway")
    if isinstance(traffic, Mapping):
        requests = _many(traffic["requests"], "request")
        yield f"to its models: {requests}, {traffic['input_tokens']} tokens in, {traffic['output_tokens']} out"
    if summary["waiting"]:
        yield "what waits can still be decided: aileron approval list"
    if summary["in_doubt"]:
        yield "what is in doubt may have happened: aileron runs list"


_PARTS = (
    ("approvals", "approved"),
    ("denials", "denied"),
    ("effects", "done"),
    ("in_doubt", "in doubt"),
    ("waiting", "waiting for you"),
)


def _many(number: int, thing: str) -> str:
    return f"{number or 'no'} {thing}{'' if number == 1 else 's'}"


def _lasted(seconds: int) -> str:
    if seconds < _MINUTE:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, _MINUTE)
    if seconds < _HOUR:
        return f"{minutes} min {rest} s"
    return f"{minutes // _MINUTE} h {minutes % _MINUTE} min"
