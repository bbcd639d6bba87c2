"""The gateway's counts, as they are told to the operator, and to a session of its own."""

from __future__ import annotations

from operator import attrgetter
from typing import cast

from aileron.api._dependencies import Dependencies
from aileron.values import INLINE, JSON, OMITTED, Ending, GatewayTotals, Member, Traffic, Usage

from .schemas import CALLS, COUNT, TEXT, list_of, made_of
from .values import ANSWERS, to_json

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
    """Tell what was counted; nothing where nobody counts."""
    return GatewayTotals() if deps.totals is None else deps.totals.snapshot()


def totals_json(counted: GatewayTotals) -> dict[str, JSON]:
    """All calls since the daemon's start, and those of each provider."""
    providers: list[dict[str, JSON]] = [
        {"name": name, **to_json(traffic)} for name, traffic in counted.providers.items()
    ]
    return {**{name: sum(cast("int", each[name]) for each in providers) for name in CALLS}, "providers": providers}


def session_traffic(deps: Dependencies, session_id: str) -> dict[str, JSON]:
    """Return the member C{gateway} of a session, where there is something to tell."""
    traffic = None if deps.totals is None else deps.totals.of_session(session_id)
    return {} if traffic is None else {"gateway": {name: to_json(traffic)[name] for name in CALLS}}


ANSWERS.differ(
    Traffic,
    begun=Member("requests"),
    usage=INLINE,
    told=OMITTED,
    first_byte=OMITTED,
    added=OMITTED,
    whole=OMITTED,
    computed={"under_way": attrgetter("under_way")},
)
ANSWERS.differ(Usage, input=Member("input_tokens"), output=Member("output_tokens"), cached=Member("cached_tokens"))
