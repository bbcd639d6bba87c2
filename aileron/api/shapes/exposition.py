"""The daemon's numbers in the text format of Prometheus: its names, its units, and no label without bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from attrs import frozen
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from aileron.api.dependencies import Dependencies
from aileron.features.gateway.shapes import totals
from aileron.features.gateway.values import Histogram, Traffic
from aileron.model.reactor import LongTurns
from aileron.model.vault import VaultState

_COUNTERS: Mapping[str, tuple[str, Callable[[Traffic], int]]] = {
    "request_body_bytes": ("Bytes of requests' bodies that went to the provider.", lambda each: each.sent_bytes),
    "response_body_bytes": (
        "Bytes of answers' bodies that came back, framing included.",
        lambda each: each.received_bytes,
    ),
    "input_tokens": ("Tokens that the provider read, cached or not, as it told them.", lambda each: each.usage.input),
    "cached_input_tokens": ("Of the input, tokens from the provider's cache.", lambda each: each.usage.cached),
    "output_tokens": ("Tokens that the provider wrote, as it told them.", lambda each: each.usage.output),
    "answers_told": ("Answers that told their tokens.", lambda each: each.told),
    "answers_untold": ("Answers whose tokens could not be told.", lambda each: each.untold),
}
_HISTOGRAMS: Mapping[str, tuple[str, Callable[[Traffic], Histogram]]] = {
    "first_byte_seconds": ("From a request's head to its answer's, at the gateway.", lambda each: each.first_byte),
    "added_seconds": ("Of that, what passed within the gateway, there and back.", lambda each: each.added),
    "duration_seconds": ("From a request's head to the end of its exchange.", lambda each: each.whole),
}


def exposition(deps: Dependencies, kept: Mapping[str, int]) -> bytes:
    """All metrics, and what the library tells of the process.

    :param kept: what was counted in the store, by name; empty: it does not answer.
    """
    registry = CollectorRegistry()
    registry.register(_DaemonCollector(deps, kept))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


@frozen(eq=False)  # the registry keeps it by its hash
class _DaemonCollector(Collector):
    deps: Dependencies
    kept: Mapping[str, int]

    def collect(self) -> Iterator[Metric]:
        yield from _daemon(self.deps, self.kept)
        long_turns = self.deps.long_turns()
        if long_turns is not None:
            yield from _reactor(long_turns)
        yield from _gateway(totals(self.deps).providers)


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


def _gateway(providers: Mapping[str, Traffic]) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "aileron_gateway_requests", "Exchanges that ended, by class of the answer.", labels=["provider", "code"]
    )
    endings = CounterMetricFamily(
        "aileron_gateway_endings", "Exchanges that ended, by how.", labels=["provider", "ending"]
    )
    under_way = GaugeMetricFamily("aileron_gateway_under_way", "Exchanges that have not ended.", labels=["provider"])
    for name, traffic in providers.items():
        for code, count in traffic.answers.items():
            requests.add_metric([name, code], count)
        for ending, count in traffic.endings.items():
            endings.add_metric([name, ending.value], count)
        under_way.add_metric([name], traffic.under_way)
    yield from (requests, endings, under_way)
    yield from _of_each(providers)


def _of_each(providers: Mapping[str, Traffic]) -> Iterator[Metric]:
    for name, (text, count) in _COUNTERS.items():
        counter = CounterMetricFamily(f"aileron_gateway_{name}", text, labels=["provider"])
        for provider, traffic in providers.items():
            counter.add_metric([provider], count(traffic))
        yield counter
    for name, (text, waits) in _HISTOGRAMS.items():
        histogram = HistogramMetricFamily(f"aileron_gateway_{name}", text, labels=["provider"])
        for provider, traffic in providers.items():
            found = waits(traffic)
            histogram.add_metric([provider], _buckets(found), found.seconds)
        yield histogram


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Each bound with how many waits did not exceed it."""
    bounds = [*(str(bound) for bound in histogram.bounds), "+Inf"]
    return list(zip(bounds, map(float, accumulate(histogram.counts)), strict=True))
