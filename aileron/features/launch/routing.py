"""Helpers by which agents send LLM traffic through the gateway, and the messages to the user about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aileron.base.addresses import read_origin
from aileron.base.text import visible

from .layers import AgentSettings
from .registration import Registration

KEY_HEADER = "X-Aileron-Gateway-Key"
"""In it a session's gateway key travels, where the agent can send one."""

KEY_VARIABLE = "AILERON_GATEWAY_KEY"
"""The variable from which an agent takes that key, where its own settings can name one."""

STAND_IN_KEY = "the-gateway-has-it"
"""For a provider whose key the gateway puts in, so that the agent asks for none."""

_PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
_EXCEPTIONS = ("no_proxy", "NO_PROXY")


def bypass_proxy(environment: Mapping[str, str], url: str, *, ports: bool = True) -> Mapping[str, str]:
    """Return the variables by which C{url}'s host and port go past the user's HTTP proxy; none where there is none.

    The gateway is plain HTTP on this machine.  An agent's runtime hands even that to C{HTTP_PROXY}, Claude Code's also
    to C{HTTPS_PROXY}, and with it, readable, the user's key and whatever the agent says.

    :param ports: whether the agent knows exceptions with a port; otherwise the host alone is one.
    """
    if not any(environment.get(name) for name in _PROXIES):
        return {}
    # Of the two spellings either may be the one that counts.
    spelt = [name for name in _EXCEPTIONS if name in environment] or _EXCEPTIONS[1:]
    origin = read_origin(url)
    address = origin.authority if ports else origin.host
    return {name: ",".join(part for part in (environment.get(name, ""), address) if part) for name in spelt}


def find_unreadable(settings: AgentSettings, key: str = "") -> str | None:
    """Explain why it cannot be told where the user sends LLM traffic; L{None}: it can.

    :param key: what it stands below, if it is an object.
    """
    place = settings.unreadable(key)
    return None if place is None else f"{visible(place)} cannot be read, and may set base URLs."


def explain_elsewhere(place: str, provider: str) -> str:
    """Explain why a provider that C{place} sends elsewhere is left alone, and what to do about it."""
    return (
        f"{visible(place)} sets another address. To route it through the gateway, set that address, without /v1, "
        f"in config.yaml as gateway.providers.{provider}.base_url"
    )


def note_routes(agent: str, through: Iterable[str], kept: Mapping[str, str]) -> tuple[str, ...]:
    """Tell what becomes of an agent's providers, a line each.

    :param through: those that go through the gateway.
    :param kept: why the others are left alone, by their names.
    """
    names = ", ".join(through)
    alone = (f"aileron: {agent}'s {visible(name)} does not use the gateway: {reason}" for name, reason in kept.items())
    return (*([f"aileron: through the gateway: {names}"] if names else []), *alone)


def leave_alone(agent: str, reason: str) -> Registration:
    """Touch none of an agent's providers, and tell why."""
    return Registration(notes=(f"aileron: {agent}'s providers do not use the gateway: {reason}",))
