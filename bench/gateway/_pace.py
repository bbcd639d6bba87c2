"""Whether the gateway has become slower: its processor time beside that of a relay in C that never changes.

It says nothing about what a relay could reach; that is the large table's.  It takes a minute and needs a C compiler, so
that every release can be held to it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from bench.table import row

from ._contenders import Pinned, ours, yardstick
from ._daemon import AILERON
from ._processes import Server, cores, raise_descriptor_limit
from ._tools import Load, Tools, compiled

REQUESTS = 20_000
ROUNDS = 20
LIMIT = 1.1
"""Of the ratio that was recorded; what costs more has lost a tenth."""

RECORDED: Mapping[tuple[int, int], float] = {(3, 11): 1.0}
"""The gateway's processor time of a request beside the yardstick's, by the version of Python that runs it.

Recorded anew, by hand, where a change is meant to cost or to save something; see doc/benchmarks.md.
"""

_WARM_UP = 2_000
_LOAD = partial(Load, "j2048", 32, 120, 0)


class Slower(Exception):
    """The gateway takes more processor time than it may."""


def report(seconds: float) -> None:
    """Print the row; how long it takes is what it takes."""
    found = measure(AILERON)
    recorded = RECORDED.get(sys.version_info[:2])
    compared = "not recorded for this Python" if recorded is None else f"{recorded:.2f} recorded, at most {LIMIT:g} x"
    row(f"processor time of {REQUESTS} requests / yardstick", f"{found:.2f}", compared)


def check(aileron: Path, version: tuple[int, int]) -> str:
    """Measure a gateway, and judge it.

    :param aileron: the installed command.
    :param version: of the Python that runs it.
    :return: one line for people.
    :raises Slower: it has lost a tenth or more since its ratio was recorded, twice in a row.
    """
    recorded = RECORDED.get(version)
    if recorded is None:
        return f"the gateway's pace: not recorded for Python {version[0]}.{version[1]}, so not judged"
    found = measure(aileron)
    if found > recorded * LIMIT:  # another program may have been in the way
        found = measure(aileron)
    line = f"the gateway's pace: {found:.2f} x the yardstick, {recorded:.2f} recorded, at most {recorded * LIMIT:.2f}"
    if found > recorded * LIMIT:
        raise Slower(line)
    return line


def measure(aileron: Path) -> float:
    """Return the processor time of a request through the gateway beside that through the yardstick."""
    on, descriptors = cores(), raise_descriptor_limit()
    with tempfile.TemporaryDirectory(prefix="bench-") as directory, ExitStack() as stack:
        tools = compiled(Path(directory), on.tools)
        upstream = stack.enter_context(tools.upstream())
        pinned = Pinned(Path(directory), on.measured, descriptors, aileron)
        servers = [stack.enter_context(started(pinned, upstream)) for started in (ours, yardstick)]
        for server in servers:
            tools.load(server.port, _LOAD(most=_WARM_UP))
        return ratio([_round(tools, servers, number) for number in range(ROUNDS)])


def ratio(rounds: Sequence[Sequence[float]]) -> float:
    """Return the median over the rounds of the first figure beside the second."""
    return median(ours / theirs for ours, theirs in rounds)


def _round(tools: Tools, servers: Sequence[Server], number: int) -> list[float]:
    """Measure both, one right after the other, and first another one each time; seconds of a request of each."""
    order = range(len(servers)) if number % 2 else reversed(range(len(servers)))
    took = {at: _seconds(tools, servers[at]) for at in order}
    return [took[at] for at in range(len(servers))]


def _seconds(tools: Tools, server: Server) -> float:
    before = server.exact_cpu_seconds()
    found = tools.load(server.port, _LOAD(most=REQUESTS // ROUNDS))
    if found["errors"]:
        raise RuntimeError(f"answers that are no success: {found}")
    return (server.exact_cpu_seconds() - before) / found["total"]
