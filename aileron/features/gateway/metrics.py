"""The gateway's metrics for C{/metrics}."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from .values import Histogram, Traffic

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


def describe_traffic(providers: Mapping[str, Traffic]) -> Iterator[Metric]:
    """Return the metric families of the traffic of each provider."""
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
    """Return each bound as text, with the number of waits up to this bound."""
    bounds = [*(str(bound) for bound in histogram.bounds), "+Inf"]
    return list(zip(bounds, map(float, accumulate(histogram.counts)), strict=True))
