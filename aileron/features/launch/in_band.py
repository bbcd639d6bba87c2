"""Programs that cannot speak MCP: launched in in-band mode, they get actions inside their own LLM traffic."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from aileron.base.text import visible

from . import routing
from .agent import Agent
from .agents import find_agents
from .layers import AgentSettings
from .registration import GatewayAccess, McpServer, Providers, Registration

_NAME_CHARACTERS = 64
_NO_NAME = re.compile(r"[^\w.+-]")


@frozen
class _ApiVariables:
    """The variables by which programs of one provider's API are told where it is, and its key.

    :ivar addresses: each may count; those that the user has not set are set all the same.
    :ivar path: of the API's own base URL, below the daemon's address.
    :ivar end: what the user's own value has at its end.
    """

    provider: str
    addresses: tuple[str, ...]
    path: str
    key: str
    end: str = ""


_DIALECTS = (
    _ApiVariables("openai", ("OPENAI_BASE_URL", "OPENAI_API_BASE"), "/inband/openai/v1", "OPENAI_API_KEY", "/v1"),
    _ApiVariables("anthropic", ("ANTHROPIC_BASE_URL",), "/inband/anthropic", "ANTHROPIC_API_KEY"),
)


def in_band_agent(command: str) -> Agent:
    """Describe a program that takes its API's address from the environment, whatever else it is.

    :param command: its name, or its path.
    """
    name = os.path.basename(command)
    known = find_agents().get(name)
    return Agent(
        name=command,
        claim=_NO_NAME.sub("_", name).lstrip("_.+-")[:_NAME_CHARACTERS] or "program",
        register=_register_nothing,
        route=_route,
        draws=(lambda _arguments: False) if known is None else known.draws,
        sources=(),
        own=() if known is None else known.own,
        settings=() if known is None else known.settings,
        in_band=True,
    )


def _register_nothing(
    _settings: AgentSettings, _server: McpServer, _providers: Providers, _directory: str
) -> Registration:
    """Register no tools: the program's requests get them on their way."""
    return Registration()


def _route(settings: AgentSettings, gateway: GatewayAccess) -> Registration:
    environment, kept = settings.environment, dict(_find_kept(settings.environment, gateway))
    through = [each for each in _DIALECTS if each.provider not in kept]
    variables: dict[str, str] = dict(routing.bypass_proxy(environment, gateway.url)) if through else {}
    for each in through:
        variables |= dict.fromkeys(each.addresses, f"{gateway.url_with_key}{each.path}")
        if gateway.upstream(each.provider).injected and not environment.get(each.key):
            variables[each.key] = routing.STAND_IN_KEY
    return Registration(variables=variables, notes=tuple(_note(through, kept)))


def _find_kept(environment: Mapping[str, str], gateway: GatewayAccess) -> Iterator[tuple[str, str]]:
    """Find the providers that the user sends elsewhere, each with the reason why it is left alone."""
    for each in _DIALECTS:
        set_elsewhere = [
            name
            for name in each.addresses
            if environment.get(name) and not gateway.is_own(each.provider, environment[name], each.end)
        ]
        if set_elsewhere:
            yield each.provider, routing.explain_elsewhere(set_elsewhere[0], each.provider)


def _note(through: list[_ApiVariables], kept: Mapping[str, str]) -> Iterator[str]:
    if through:
        names = " and ".join(each.provider for each in through)
        yield (
            f"aileron: in-band mode: your actions are added as tools to requests to {names}. "
            "Aileron reads and changes these requests and their responses."
        )
    for provider, reason in kept.items():
        yield f"aileron: no actions in requests to {visible(provider)}: {reason}"
