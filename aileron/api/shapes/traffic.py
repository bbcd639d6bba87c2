"""What the gateway counted, as it is told to the operator, and to a session of its own."""

from __future__ import annotations

from aileron.api._dependencies import Dependencies
from aileron.values import JSON, Ending, GatewayTotals, Traffic

from .schemas import CALLS, COUNT, TEXT, list_of, made_of

_PROVIDER = made_of(
    {
        "name": TEXT,
        **CALLS,
        "cached_tokens": {**COUNT, "description": "Of the input, what came from the provider's cache"},
        "untold": {**COUNT, "description": "Answers whose tokens could not be told"},
        "under_way": COUNT,
        "answers": made_of(dict.fromkeys(("none", "1xx", "2xx", "3xx", "4xx", "5xx"), COUNT)),
        "endings": made_of({ending.value: COUNT for ending in Ending}),
        "sent_bytes": COUNT,
        "received_bytes": COUNT,
    }
)
TOTALS = made_of({**CALLS, "providers": list_of(_PROVIDER)})


def totals(deps: Dependencies) -> GatewayTotals:
    """What was counted; nothing where nobody counts."""
    return GatewayTotals() if deps.totals is None else deps.totals.snapshot()


def totals_json(counted: GatewayTotals) -> dict[str, JSON]:
    """All calls since the daemon's start, and those of each provider."""
    providers = counted.providers.items()
    return {
        **_sums([traffic for _, traffic in providers]),
        "providers": [_provider_json(name, traffic) for name, traffic in providers],
    }


def session_traffic(deps: Dependencies, session_id: str) -> dict[str, JSON]:
    """The member C{gateway} of a session, where there is something to tell."""
    traffic = None if deps.totals is None else deps.totals.of_session(session_id)
    return {} if traffic is None else {"gateway": _sums([traffic])}


def _provider_json(name: str, traffic: Traffic) -> dict[str, JSON]:
    return {
        "name": name,
        **_sums([traffic]),
        "cached_tokens": traffic.usage.cached,
        "untold": traffic.untold,
        "under_way": traffic.under_way,
        "answers": dict(traffic.answers),
        "endings": {ending.value: count for ending, count in traffic.endings.items()},
        "sent_bytes": traffic.sent_bytes,
        "received_bytes": traffic.received_bytes,
    }


def _sums(found: list[Traffic]) -> dict[str, JSON]:
    return {
        "requests": sum(traffic.begun for traffic in found),
        "input_tokens": sum(traffic.usage.input for traffic in found),
        "output_tokens": sum(traffic.usage.output for traffic in found),
    }
