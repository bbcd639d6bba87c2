"""What the inbox costs on a phone: requests, bytes, and times by a slow network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench import table
from bench.browsing import run_case

_PARTS = {
    "painted_ms": ("first paint", ""),
    "scripts_ms": ("until the scripts have arrived", ""),
    "shown_ms": ("until the requests are shown", "at most 1000 ms; "),
}
_SLOW = "150 ms, 1.6 Mbit/s"


def report(seconds: float) -> None:
    """Print the figures of first loads of the inbox at the public name, with twelve pending approvals.

    :param seconds: is not used: each load is one round.
    """
    found = run_case("bench.measured_phone")
    loads: Sequence[Mapping[str, Any]] = found["slow"]
    rounds = f"median of {len(loads)} rounds"
    table.row("phone: requests of a first load", str(max(len(each["requests"]) for each in loads)), "at most 12")
    table.row("phone: KB of a first load, TLS included", f"{_middle(loads, 'kilobytes'):.1f}", f"at most 100; {rounds}")
    for part, (words, target) in _PARTS.items():
        slowest = max(float(each[part]) for each in loads)
        told = f"{target}{rounds}, the slowest {slowest:.0f} ms"
        table.row(f"phone: {words}, by {_SLOW}", f"{_middle(loads, part):.0f} ms", told)
        table.row(f"phone: {words}, by loopback", f"{_middle(found['quick'], part):.0f} ms", rounds)


def _middle(loads: Sequence[Mapping[str, Any]], name: str) -> float:
    return median(float(each[name]) for each in loads)
