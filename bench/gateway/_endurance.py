"""Whether the gateway stays as it is over 100,000 requests of all kinds."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from attrs import frozen

from bench.table import row

from ._contenders import Pinned, ours
from ._processes import Server, cores, raise_descriptor_limit
from ._tools import Load, Tools, Upstream, compiled

REQUESTS = 100_000
PARTS = 10
_SECONDS = 600
_SETTLED_SECONDS = 1.0


@frozen
class Held:
    """What the daemon has at one moment.

    :ivar descriptors: those of connections that are kept for the upstream apart.
    """

    resident_bytes: int
    descriptors: int


def endure(seconds: float) -> None:
    """The rows; how long it takes is what it takes."""
    on, descriptors = cores(), raise_descriptor_limit()
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        tools = compiled(Path(directory), on.tools)
        pinned = Pinned(Path(directory), on.measured, descriptors)
        with tools.upstream() as upstream, ours(pinned, upstream) as server:
            fresh = _held(server, upstream)
            after = [_worked(server, upstream, tools) for _ in range(PARTS)]
    early, late = after[0], after[-1]
    times = late.resident_bytes / early.resident_bytes
    row(f"resident after {REQUESTS} requests", f"{late.resident_bytes / 1e6:.1f} MB", f"{times:.2f} x after a tenth")
    compared = f"{fresh.descriptors} before the first; connections kept upstream apart"
    row("descriptors then", f"{late.descriptors}", compared)


def kinds(requests: int) -> list[Load]:
    """Requests on connections that are kept, streams, and requests on connections of their own.

    Each load ends when its last request is answered: the others that are under way are broken off.
    """
    streams = short = requests // 10
    return [
        Load("j2048", 32, _SECONDS, 0, most=requests - streams - short),
        Load("s10,150,2000", 100, _SECONDS, 0, most=streams),
        Load("j300", 16, _SECONDS, 0, most=short, renew=True),
    ]


def _worked(server: Server, upstream: Upstream, tools: Tools) -> Held:
    for load in kinds(REQUESTS // PARTS):
        found = tools.load(server.port, load)
        if found["errors"]:
            raise RuntimeError(f"answers that are no success: {found}")
    time.sleep(_SETTLED_SECONDS)
    return _held(server, upstream)


def _held(server: Server, upstream: Upstream) -> Held:
    return Held(server.resident_bytes(), server.descriptors() - upstream.open_connections())
