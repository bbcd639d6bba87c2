"""What is measured of one contender, a load at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from attrs import frozen

from ._processes import Server
from ._tools import Figures, Load, Tools, Upstream

IDLE_STREAMS = 2_000
_PATIENCE_SECONDS = 60
_QUIET_SECONDS = 0.3


@frozen
class Measured:
    """Figures by name, and how many requests went wrong."""

    figures: Mapping[str, float]
    errors: int


@frozen
class Bench:
    """What each measurement needs besides the server.

    :ivar seconds: that count of each.
    """

    tools: Tools
    upstream: Upstream
    seconds: float

    def idle_streams(self, server: Server) -> Measured:
        """What it holds when it has only just served, and for each stream that says nothing."""
        errors = int(self._load(server, Load("j2048", 1, 0.2))["errors"])
        before = server.resident_bytes()
        with self.tools.loading(server.port, Load("h600000", IDLE_STREAMS, _PATIENCE_SECONDS, ramp=2.0)):
            self._wait(lambda: self.upstream.answers_under_way() >= IDLE_STREAMS)
            time.sleep(_QUIET_SECONDS)
            missing = max(IDLE_STREAMS - self.upstream.answers_under_way(), 0)
            held = server.resident_bytes() - before
        return Measured({"idle": before / 1e6, "stream": held / IDLE_STREAMS / 1e3}, errors + missing)

    def small(self, server: Server) -> Measured:
        """2 KB each way, 32 connections, each the next request as soon as it has the answer to the last."""
        before = server.cpu_seconds()
        found = self._load(server, Load("j2048", 32, self.seconds))
        cpu = (server.cpu_seconds() - before) / max(found["total"], 1) * 1e3
        return Measured({"per_second": found["per_second"], "cpu": cpu}, int(found["errors"]))

    def tls(self, server: Server) -> Measured:
        """The same, of a server whose upstream speaks TLS on connections that are kept."""
        found = self.small(server)
        return Measured({"tls_cpu": found.figures["cpu"]}, found.errors)

    def one(self, server: Server) -> Measured:
        """The same on one connection."""
        found = self._load(server, Load("j2048", 1, self.seconds))
        return Measured({"one_p50": found["answer_p50"]}, int(found["errors"]))

    def first_byte(self, server: Server) -> Measured:
        """50 streams of 20 events in a fifth of a second, over and over."""
        found = self._load(server, Load("s20,150,20000", 50, self.seconds, ramp=0.2))
        return Measured({f"first_{part}": found[f"first_byte_{part}"] for part in ("p50", "p99")}, int(found["errors"]))

    def busy(self, server: Server) -> Measured:
        """500 streams of 100 events a second each."""
        before = server.cpu_seconds()
        found = self._load(server, Load("s200,150,20000", 500, self.seconds, warm_up=1.0, ramp=1.0))
        cpu = (server.cpu_seconds() - before) / max(found["all_events"], 1) * 1e6
        times = {f"event_{part}": found[f"event_{part}"] for part in ("p50", "p99")}
        return Measured({**times, "event_cpu": cpu}, int(found["errors"]))

    def _load(self, server: Server, load: Load) -> Figures:
        """What the client found, when nobody has anything left to do from the load before."""
        self._wait(lambda: not self.upstream.answers_under_way())
        time.sleep(_QUIET_SECONDS)
        return self.tools.load(server.port, load)

    def _wait(self, ready: Callable[[], bool]) -> None:
        stop = time.monotonic() + _PATIENCE_SECONDS
        while not ready() and time.monotonic() < stop:
            time.sleep(0.05)


PLAIN = (Bench.idle_streams, Bench.small, Bench.one, Bench.first_byte, Bench.busy)
"""What is measured by plain HTTP, what a process holds first: then it has done nothing else."""

OF_PROCESS = ("idle", "stream", "cpu", "event_cpu")
"""Those that say nothing where there is no process between client and mock."""
