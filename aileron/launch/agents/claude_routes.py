"""Whether what Claude Code says to its models goes through the gateway, and by which variables."""

from __future__ import annotations

import json
from collections.abc import Mapping

from attrs import field, frozen

from .bypass import unproxied
from .claude_settings import BASE_URL, Settings
from .iagent import KEY_HEADER, STAND_IN_KEY, Gateway, Upstream

_HEADERS = "ANTHROPIC_CUSTOM_HEADERS"
_AUTH_TOKEN = "ANTHROPIC_AUTH_TOKEN"
_ADDRESSES = (BASE_URL, "CLAUDE_CODE_API_BASE_URL")
_OTHERS = tuple(
    f"CLAUDE_CODE_USE_{name}"
    for name in ("BEDROCK", "VERTEX", "FOUNDRY", "ANTHROPIC_AWS", "ANTHROPIC_GOOGLE_CLOUD", "MANTLE", "GATEWAY")
)
_SOCKET = "ANTHROPIC_UNIX_SOCKET"
_YES = ("1", "true", "yes", "on")
_NO_UPSTREAM = Upstream("")
_ALONE = "aileron: what claude says to its models is left alone:"


@frozen
class Routes:
    """What comes of it.

    :ivar variables: for Claude Code's environment.
    :ivar arguments: that make them win over the user's settings; without a secret.
    :ivar notes: what the user is to be told, a line each.
    """

    variables: Mapping[str, str] = field(factory=dict, repr=False)
    arguments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def routed(settings: Settings, gateway: Gateway | None) -> Routes:
    """Send it through C{gateway}, with whatever login the user has, or say why not.

    :param gateway: L{None}: leave it alone.
    """
    if gateway is None:
        return Routes()
    if (reason := _elsewhere(settings, gateway)) is not None:
        return Routes(notes=(f"{_ALONE} {reason}",))
    variables = _variables(settings, gateway)
    won = {name: value for name, value in variables.items() if name in _set_in_settings(settings)}
    if (reason := _overruled(settings, won)) is not None:
        return Routes(notes=(f"{_ALONE} {reason}",))
    arguments = (f"--settings={json.dumps({'env': won})}",) if won else ()
    return Routes(variables, arguments, ("aileron: through the gateway: anthropic",))


def _elsewhere(settings: Settings, gateway: Gateway) -> str | None:
    """Why it is not the gateway's, if so."""
    for place in settings.places:
        if place.variables is None:
            return f"{place.name} cannot be read, and may name a base URL."
    return _other_service(settings) or _other_address(settings, gateway)


def _other_service(settings: Settings) -> str | None:
    for variable in _OTHERS:
        for place, value in settings.values(variable):
            if value.lower() in _YES:
                return f"{variable} ({place}) has it use another service."
    for place, value in settings.values(_SOCKET):
        if value:
            return f"{_SOCKET} ({place}) has it use another service."
    return None


def _other_address(settings: Settings, gateway: Gateway) -> str | None:
    for variable in _ADDRESSES:
        for place, value in settings.values(variable):
            if not _is_ours(value, gateway):
                return (
                    f"{place} sends it elsewhere. For the gateway to take it there, name that address "
                    "in config.yaml as gateway.providers.anthropic.base_url"
                )
    return None


def _is_ours(address: str, gateway: Gateway) -> bool:
    """Whether it is where the gateway is or sends: ours of another launch, or configured for both."""
    upstream = gateway.upstreams.get("anthropic", _NO_UPSTREAM)
    bare = address.rstrip("/")
    return bare in ("", gateway.url, upstream.base_url) or bare.startswith(f"{gateway.url}/s/")


def _variables(settings: Settings, gateway: Gateway) -> Mapping[str, str]:
    environment = settings.environment
    told = {name: value for place in settings.places for name, value in (place.variables or {}).items()}
    injected = gateway.upstreams.get("anthropic", _NO_UPSTREAM).injected
    stand_in = {_AUTH_TOKEN: STAND_IN_KEY} if injected and not settings.has_login() else {}
    past = unproxied({**environment, **told}, gateway.url)
    if _HEADERS in told:
        # They would win over ours, and what wins over them stands where every user of the machine can read it.
        return {BASE_URL: f"{gateway.url}/s/{gateway.key}", **stand_in, **past}
    headers = _headers(environment.get(_HEADERS, ""), gateway.key)
    return {BASE_URL: gateway.url, _HEADERS: headers, **stand_in, **past}


def _headers(theirs: str, key: str) -> str:
    """The user's own header lines and the gateway key's; one of another launch goes."""
    kept = [line for line in theirs.splitlines() if line.partition(":")[0].strip().lower() != KEY_HEADER.lower()]
    return "\n".join((*kept, f"{KEY_HEADER}: {key}"))


def _set_in_settings(settings: Settings) -> set[str]:
    return {name for place in settings.places for name in place.variables or {}}


def _overruled(settings: Settings, won: Mapping[str, str]) -> str | None:
    """Why the settings cannot be won over, if so."""
    for place in settings.places:
        if place.last and won.keys() & (place.variables or {}).keys():
            return f"{place.name} sets {', '.join(sorted(won.keys() & (place.variables or {}).keys()))}."
    if won and any(place.name == "--settings" for place in settings.places):
        return f"your settings set {', '.join(sorted(won))}, and --settings stands where that could be won over."
    if "/s/" in won.get(BASE_URL, ""):
        return f"your settings set both {BASE_URL} and {_HEADERS}: leave out the first, the gateway goes there anyway."
    return None
