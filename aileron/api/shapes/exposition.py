"""The daemon's metrics in the text format of Prometheus. Every label has a bounded set of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from aileron.api.dependencies import Dependencies
from aileron.model.reactor import LongTurns
from aileron.model.vault import VaultState


def exposition(deps: Dependencies, kept: Mapping[str, int]) -> bytes:
    """Return all metrics, including those of the process.

    :param kept: counts of stored things by name, or empty if the store does not respond.
    """
    registry = CollectorRegistry()
    registry.register(_DaemonCollector(deps, kept))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


@frozen(eq=False)  # the registry stores it by its hash
class _DaemonCollector(Collector):
    deps: Dependencies
    kept: Mapping[str, int]

    def collect(self) -> Iterator[Metric]:
        yield from _daemon(self.deps, self.kept)
        long_turns = self.deps.long_turns()
        if long_turns is not None:
            yield from _reactor(long_turns)
        yield from self.deps.features.metrics()


def _daemon(deps: Dependencies, kept: Mapping[str, int]) -> Iterator[Metric]:
    offering, paused = deps.submission.offering(), {pause.session_id for pause in deps.limits.pauses()}
    uptime_seconds = (deps.now() - deps.started_at).total_seconds()
    yield InfoMetricFamily("aileron_build", "What runs.", {"version": deps.version})
    yield GaugeMetricFamily("aileron_uptime_seconds", "Since the daemon's start.", uptime_seconds)
    vault = GaugeMetricFamily("aileron_vault_state", "1 for the state that the vault is in.", labels=["state"])
    for state in VaultState:
        vault.add_metric([state.value], state is deps.vault.state())
    yield vault
    yield GaugeMetricFamily("aileron_actions", "Actions that are offered.", len(offering.offers))
    yield GaugeMetricFamily("aileron_load_errors", "Files that did not load.", len(offering.load_errors))
    yield GaugeMetricFamily("aileron_store_up", "Whether the store answers.", bool(kept))
    yield GaugeMetricFamily("aileron_paused", "Whether everything is paused.", None in paused)
    yield GaugeMetricFamily("aileron_paused_sessions", "Sessions that are paused for themselves.", len(paused - {None}))
    if kept:
        yield GaugeMetricFamily("aileron_pending_approvals", "Approvals that wait.", kept["pending_approvals"])
        yield GaugeMetricFamily("aileron_sessions", "Sessions that have not ended.", kept["sessions"])


def _reactor(long_turns: LongTurns) -> Iterator[Metric]:
    stalls = CounterMetricFamily(
        "aileron_reactor_stalls", "Turns of the reactor over 250 ms: all others waited.", labels=["kind"]
    )
    stalls.add_metric(["busy"], long_turns.busy)
    stalls.add_metric(["blocked"], long_turns.blocked)
    yield stalls
    yield GaugeMetricFamily(
        "aileron_reactor_longest_stall_seconds", "The longest of these turns.", long_turns.longest_seconds
    )
