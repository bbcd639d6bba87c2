"""A person's steps and the machine's seconds up to one decision in a browser: C{python -m bench decision}."""

from __future__ import annotations

from bench import table
from bench.browsing import run_case

WAYS = {
    "add": "stopped daemon, add a passkey",
    "words": "stopped daemon, two words",
    "touch": "stopped daemon, passkey",
    "needed": "stopped daemon, passkey required",
    "lapsed_words": "page that only watches, two words",
    "lapsed": "page that only watches, passkey",
}


def report(seconds: float) -> None:
    """Print the steps and seconds of each way to one decision.

    :param seconds: is not used, since each way is gone a fixed number of times.
    """
    module = "bench.measured_decision"
    found = {**run_case(f"{module}.ColdFigures"), **run_case(f"{module}.LapsedFigures")}
    for way, words in WAYS.items():
        steps = found[way]["steps"]
        told = ", ".join(f"{steps[each]} {each}" for each in ("commands", "prompts", "typed", "presses", "touches"))
        table.row(f"decision: {words}", f"{found[way]['seconds']:.1f} s", told)
