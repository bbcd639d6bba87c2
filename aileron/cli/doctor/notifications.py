"""Whether the operator is told of what waits, where they want to be."""

from __future__ import annotations

from collections.abc import Iterator

from aileron.cli._errors import Trouble
from aileron.cli._surroundings import Surroundings
from aileron.home import Discovery

from .findings import Finding, wrong


def notifications(around: Surroundings, found: Discovery | None) -> Iterator[Finding]:
    """Each channel whose last attempt failed."""
    if found is None:
        return
    try:
        status = around.probe(found.url, "/v1/status", found.launch_key)
    except Trouble:
        return  # that it does not answer is a finding of its own
    for name in status.get("notifications", {}).get("failing", ()):
        yield wrong(f"You are not told by the notification {name} at present.", "See why: aileron notification list")
