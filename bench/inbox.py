"""The keys and seconds of a person who decides twenty mixed requests in a browser: C{python -m bench inbox}."""

from __future__ import annotations

from statistics import median

from bench import table
from bench.browsing import run_case


def report(seconds: float) -> None:
    """Print how many keys and seconds the twenty requests took.

    :param seconds: is not used, since the requests are decided once.
    """
    found = run_case("bench.measured_inbox")
    keys: dict[str, list[int]] = found["keys"]
    decided = sum(map(len, keys.values()))
    pressed = sum(map(sum, keys.values()))
    table.row(f"inbox: keys for {decided} mixed requests", str(pressed), "120 before: 6 for each")
    for way, words in (
        ("approve", "a request that is approved"),
        ("deny", "a request that is denied"),
        ("confirm", "a red one that is approved"),
        ("edit", "one that is edited and approved"),
    ):
        table.row(f"inbox: keys for {words}", f"{median(keys[way]):g}", f"{len(keys[way])} of {decided}")
    table.row(
        f"inbox: {decided} requests, without reading",
        f"{found['seconds']:.1f} s",
        f"{found['seconds'] / decided:.2f} s each",
    )
