"""What the inbox costs in a browser: requests, bytes, paint, silence and the way from a decision to its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench import table
from bench.browsing import run_case

_PARTS = {
    "shell_ms": "the page has arrived",
    "style_ms": "the style sheet has arrived",
    "scripts_ms": "the scripts have arrived",
    "shown_ms": "the requests are shown",
}


def report(seconds: float) -> None:
    """Print the figures of first loads of the inbox with twelve pending approvals, and of that page later.

    :param seconds: is not used, since an idle page is watched for longer.
    """
    found = run_case("bench.measured_pages")
    loads: Sequence[Mapping[str, Any]] = found["loads"]
    rounds = f"median of {len(loads)} rounds"
    table.row("pages: requests of a first load", str(max(len(each["requests"]) for each in loads)), "at most 12")
    table.row("pages: KB of a first load, at the socket", f"{_middle(loads, 'kilobytes'):.1f}", f"at most 58; {rounds}")
    fastest = min(each["painted_ms"] for each in loads)
    told = f"at most 100 ms; {rounds}, the fastest {fastest:.0f} ms"
    table.row("pages: first paint", f"{_middle(loads, 'painted_ms'):.0f} ms", told)
    for part, words in _PARTS.items():
        table.row(f"pages: until {words}", f"{_middle(loads, part):.0f} ms", rounds)
    table.row("pages: an idle page, at the socket", f"{found['idle']:.0f} B/s", "at most 200 B/s")
    table.row("pages: from a decision to its visible result", f"{found['decided_ms']:.0f} ms", "at most 200 ms")


def _middle(loads: Sequence[Mapping[str, Any]], name: str) -> float:
    return median(float(each[name]) for each in loads)
