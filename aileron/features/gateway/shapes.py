"""The gateway in the operator's API: its upstreams, without secrets, and its counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import cast

from aileron.api.endpoint import Schema
from aileron.api.shapes.schemas import BOOLEAN, COUNT, TEXT, list_of, made_of
from aileron.api.shapes.values import ANSWERS, to_json
from aileron.base.converter import INLINE, OMITTED, Member
from aileron.base.json import JSON
from aileron.model.usage import Usage, UsageSum

from .values import Ending, GatewaySettings, GatewayTotals, Provider, ToolCount, ToolKind, Traffic, UpstreamSource
from .watching import RequestWatch

_SCHEME = re.compile(r"https?|socks(4a?|5h?)?", re.IGNORECASE)
_PLACE = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:[0-9]{1,5})?", re.IGNORECASE)
_AFTER = re.compile("[/?#]")
_EXCEPTION = re.compile(r"[][a-z0-9_.*:-]+(/[0-9]{1,3})?", re.IGNORECASE)
_UNREADABLE = "(unreadable)"
_NO_RULES = "off"

_CALLS: Mapping[str, Schema] = {
    "requests": COUNT,
    "input_tokens": {**COUNT, "description": "all that was read, cached or not"},
    "output_tokens": COUNT,
}
_CACHED: Schema = {**COUNT, "description": "Of the input, what came from the provider's cache"}
_COST: Mapping[str, Schema] = {
    "cost_microdollars": {**COUNT, "description": "Millionths of a US dollar; only where a provider reported a cost"}
}
SESSION = made_of(_CALLS, {"cached_tokens": _CACHED, **_COST})
"""The traffic of one session."""

UPSTREAMS: dict[str, Schema] = {
    "providers": list_of(
        made_of(
            {
                "name": TEXT,
                "base_url": TEXT,
                "prefix": TEXT,
                "credential": {**BOOLEAN, "description": "Whether its key comes from the vault"},
                "provider_tools": {**TEXT, "description": "off, note, refuse, or the rules of some kinds"},
                "source": {"enum": [each.value for each in UpstreamSource], "description": "Who said base_url"},
            }
        )
    ),
    "proxies": list_of(made_of({"variable": TEXT, "value": {**TEXT, "description": "Without user and password"}})),
}


def upstreams_json(settings: GatewaySettings, watch: RequestWatch | None) -> dict[str, JSON]:
    """Return the status members of every provider, and of the environment's proxies without user and password."""
    return {
        "providers": [{**to_json(each), "provider_tools": tool_rules(each, watch)} for each in settings.providers],
        "proxies": [{"variable": name, "value": proxy_shown(name, text)} for name, text in settings.environment],
    }


def tool_rules(provider: Provider, watch: RequestWatch | None) -> str:
    """Return a description of the rules for the tools that a provider runs."""
    return _NO_RULES if watch is None else watch.describe(provider)


ANSWERS.differ(Provider, dialect=OMITTED, of_features=OMITTED, credential=Member(write=lambda name: name is not None))


def proxy_shown(variable: str, text: str) -> str:
    """Return the value of a proxy variable of the environment, without user and password."""
    if variable != "no_proxy":
        return _proxy(text)
    found = text.replace(",", " ").split()
    return ",".join(each if _EXCEPTION.fullmatch(each) else _UNREADABLE for each in found)


def _proxy(text: str) -> str:
    """Return scheme, host and port without user, password and path, or C{(unreadable)} if the URL is malformed."""
    scheme, colons, rest = text.rpartition("://")
    place = _AFTER.split(rest.rpartition("@")[2], maxsplit=1)[0]
    proper = _PLACE.fullmatch(place) and (not colons or _SCHEME.fullmatch(scheme))
    return f"{scheme}{colons}{place}" if proper else _UNREADABLE


_PROVIDER = made_of(
    {
        "name": TEXT,
        **_CALLS,
        "cached_tokens": _CACHED,
        "untold": {**COUNT, "description": "Answers whose tokens could not be told"},
        "under_way": COUNT,
        "answers": made_of(dict.fromkeys(("none", "1xx", "2xx", "3xx", "4xx", "5xx"), COUNT)),
        "endings": made_of({ending.value: COUNT for ending in Ending}),
        "sent_bytes": COUNT,
        "received_bytes": COUNT,
    },
    _COST,
)
_TOOL = made_of({"provider": TEXT, "kind": {"enum": list(ToolKind)}, "requests": COUNT, "refused": COUNT})
TOTALS = made_of({**_CALLS, "providers": list_of(_PROVIDER), "provider_tools": list_of(_TOOL)})
STATUS = made_of({**UPSTREAMS, "totals": TOTALS})
"""The member C{gateway} of the daemon's status."""


def totals_json(counted: GatewayTotals, tools: Sequence[ToolCount] = ()) -> dict[str, JSON]:
    """Return the sums of all calls, the counts of each provider, and the counts of provider tools."""
    providers: list[dict[str, JSON]] = [
        {"name": name, **to_json(traffic)} for name, traffic in counted.providers.items()
    ]
    sums = {name: sum(cast("int", each[name]) for each in providers) for name in _CALLS}
    return {**sums, "providers": providers, "provider_tools": list(_tools_json(tools))}


def _tools_json(tools: Sequence[ToolCount]) -> Iterator[JSON]:
    """Yield the number of requests and refusals of each provider and kind of tool, summed over sessions and hosts."""
    sums: dict[tuple[str, str], list[int]] = {}
    for each in tools:
        found = sums.setdefault((each.provider, each.tool.kind.value), [0, 0])
        found[0] += each.requests
        found[1] += each.requests if each.refused else 0
    for (provider, kind), (requests, refused) in sorted(sums.items()):
        yield {"provider": provider, "kind": kind, "requests": requests, "refused": refused}


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
ANSWERS.differ(
    Usage,
    input=Member("input_tokens"),
    output=Member("output_tokens"),
    cached=Member("cached_tokens"),
    cost_microdollars=Member(optional=True),
)
ANSWERS.differ(UsageSum, usage=INLINE, calls=Member("requests"))
