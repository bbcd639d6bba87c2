"""The places that the gateway relays to, as they are told to the operator: whole, but for what is secret."""

from __future__ import annotations

import re

from aileron.api._endpoint import Schema
from aileron.values import JSON, OMITTED, GatewaySettings, Member, Provider, UpstreamSource

from .schemas import BOOLEAN, TEXT, list_of, made_of
from .values import ANSWERS, to_json

_SCHEME = re.compile(r"https?|socks(4a?|5h?)?", re.IGNORECASE)
_PLACE = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:[0-9]{1,5})?", re.IGNORECASE)
_AFTER = re.compile("[/?#]")
_EXCEPTION = re.compile(r"[][a-z0-9_.*:-]+(/[0-9]{1,3})?", re.IGNORECASE)
_UNREADABLE = "(unreadable)"

UPSTREAMS: dict[str, Schema] = {
    "providers": list_of(
        made_of(
            {
                "name": TEXT,
                "base_url": TEXT,
                "prefix": TEXT,
                "credential": {**BOOLEAN, "description": "Whether its key comes from the vault"},
                "source": {"enum": [each.value for each in UpstreamSource], "description": "Who said base_url"},
            }
        )
    ),
    "proxies": list_of(made_of({"variable": TEXT, "value": {**TEXT, "description": "Without user and password"}})),
}


def upstreams_json(settings: GatewaySettings) -> dict[str, JSON]:
    """Every provider, and what the environment says of proxies without user and password."""
    return {
        "providers": [to_json(each) for each in settings.providers],
        "proxies": [{"variable": name, "value": proxy_shown(name, text)} for name, text in settings.environment],
    }


ANSWERS.differ(Provider, dialect=OMITTED, credential=Member(write=lambda name: name is not None))


def proxy_shown(variable: str, text: str) -> str:
    """Return what a variable of the environment says of proxies, without user and password."""
    if variable != "no_proxy":
        return _proxy(text)
    found = text.replace(",", " ").split()
    return ",".join(each if _EXCEPTION.fullmatch(each) else _UNREADABLE for each in found)


def _proxy(text: str) -> str:
    """Scheme, host and port: nothing of what stands before the last C{@} or after the port; of what is odd nothing."""
    scheme, colons, rest = text.rpartition("://")
    place = _AFTER.split(rest.rpartition("@")[2], maxsplit=1)[0]
    proper = _PLACE.fullmatch(place) and (not colons or _SCHEME.fullmatch(scheme))
    return f"{scheme}{colons}{place}" if proper else _UNREADABLE
