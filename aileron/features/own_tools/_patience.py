"""Limits how long a request is held for tools that give up earlier than others, so that each gets an answer in time."""

from __future__ import annotations

from .values import ToolRequest

_PATIENCE = {"python-httpx/": 4.0, "pygithub/": 12.0}
"""Seconds for which a tool is held whose User-Agent begins like this. httpx gives up after 5, PyGithub after 15.

Measured with httpx 0.27 and PyGithub 2.
"""


def limit_hold(request: ToolRequest, most_seconds: float) -> float:
    """Return the seconds for which a request may be held: C{most_seconds}, or less if its tool gives up earlier."""
    agents = [value.lower() for name, value in request.headers if name.lower() == "user-agent"]
    known = (seconds for start, seconds in _PATIENCE.items() if any(each.startswith(start) for each in agents))
    return min(most_seconds, *known, most_seconds)
