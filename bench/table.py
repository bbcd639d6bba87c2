"""The table: what was measured, what came out, and against what to hold it."""

from __future__ import annotations

import os
import platform

ROUNDS = 3
"""How often each figure is taken, in turn with what it is compared to; the table has medians."""


def heading() -> None:
    """What ran where."""
    load = os.getloadavg()[0]
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}; medians of {ROUNDS} rounds\n")
    row("", "measured", "compared")
    print("-" * 132)


def row(what: str, value: str, compared: str = "") -> None:
    """One line."""
    print(f"{what:54} {value:>13}   {compared}", flush=True)
