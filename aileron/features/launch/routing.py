"""Helpers to route an agent's LLM traffic through the gateway, and the messages to the user about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aileron.base.addresses import read_origin
from aileron.base.text import visible

from .layers import AgentSettings
from .registration import Registration

KEY_HEADER = "X-Aileron-Gateway-Key"
"""The header with the session's gateway key, for agents that can send one."""

KEY_VARIABLE = "AILERON_GATEWAY_KEY"
"""The variable with that key, for agents whose settings can refer to a variable."""

STAND_IN_KEY = "the-gateway-has-it"
"""The agent's key for a provider whose real key the gateway inserts, so that the agent does not ask for one."""

_PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
_EXCEPTIONS = ("no_proxy", "NO_PROXY")


def bypass_proxy(environment: Mapping[str, str], url: str, *, ports: bool = True) -> Mapping[str, str]:
    """Return the variables that exempt C{url} from the user's HTTP proxy; empty if the user has no proxy.

    The gateway uses plain HTTP on the loopback interface. An agent's runtime would send even that to C{HTTP_PROXY}
    (Claude Code's also to C{HTTPS_PROXY}), with the user's key and prompts unencrypted.

    :param ports: whether the agent supports exceptions with a port. If not, the whole host is exempted.
    """
    if not any(environment.get(name) for name in _PROXIES):
        return {}
    # Programs read one or the other spelling.
    spelt = [name for name in _EXCEPTIONS if name in environment] or _EXCEPTIONS[1:]
    origin = read_origin(url)
    address = origin.authority if ports else origin.host
    return {name: ",".join(part for part in (environment.get(name, ""), address) if part) for name in spelt}


def find_unreadable(settings: AgentSettings, key: str = "") -> str | None:
    """Return a sentence that names settings which cannot be read and may set base URLs, or None if all are readable.

    :param key: the settings' key that must be an object, if set; empty for none.
    """
    place = settings.unreadable(key)
    return None if place is None else f"{visible(place)} cannot be read, and may set base URLs."


def explain_elsewhere(place: str, provider: str) -> str:
    """Return the explanation why a provider is not routed (C{place} sets another address) and what to do about it."""
    return (
        f"{visible(place)} sets another address. To route it through the gateway, set that address, without /v1, "
        f"in config.yaml as gateway.providers.{provider}.base_url"
    )


def note_routes(agent: str, through: Iterable[str], kept: Mapping[str, str]) -> tuple[str, ...]:
    """Return the messages about an agent's providers, one per line.

    :param through: the providers that use the gateway.
    :param kept: the reasons of the providers that do not, by name.
    """
    names = ", ".join(through)
    alone = (f"aileron: {agent}'s {visible(name)} does not use the gateway: {reason}" for name, reason in kept.items())
    return (*([f"aileron: through the gateway: {names}"] if names else []), *alone)


def leave_alone(agent: str, reason: str) -> Registration:
    """Return a registration that routes none of an agent's providers, with the reason as a message."""
    return Registration(notes=(f"aileron: {agent}'s providers do not use the gateway: {reason}",))
