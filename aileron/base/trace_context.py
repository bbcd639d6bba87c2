"""The header C{traceparent} (W3C Trace Context), which names a place in a distributed trace."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import frozen

_TRACEPARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL).fullmatch
_LONGEST = 256


@frozen
class TraceParent:
    """A place in a trace: a span of it."""

    trace_id: str
    span_id: str
    sampled: bool = True

    @property
    def header(self) -> str:
        """The value of the header C{traceparent} for this place."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"


def read_traceparent(lines: Sequence[bytes]) -> TraceParent | None:
    """Parse the values of the header C{traceparent}, or return None if there is not exactly one valid value.

    Values of later versions are valid if they begin as those of version C{00} do.
    """
    match = _TRACEPARENT(lines[0]) if len(lines) == 1 and len(lines[0]) <= _LONGEST else None
    if match is None:
        return None
    version, trace_id, span_id, flags = (each.decode("ascii") for each in match.groups()[:4])
    if version == "ff" or (version == "00" and match[5] is not None):
        return None
    if not trace_id.strip("0") or not span_id.strip("0"):
        return None
    return TraceParent(trace_id, span_id, bool(int(flags, 16) & 1))
