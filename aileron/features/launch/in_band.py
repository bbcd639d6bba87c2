"""In-band mode: programs that do not support MCP get actions inside their LLM traffic."""

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
    """The environment variables that set the address and key of one provider's API.

    :ivar addresses: the variables for the address. Programs read one or the other, so all are set.
    :ivar path: the path of the API at the daemon.
    :ivar key: the variable for the key.
    :ivar end: the end of the path in the user's own value, such as C{/v1}.
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
    """Return the description of a program that reads its API's address from the environment.

    :param command: the program's name or path.
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
    """Return an empty registration: the gateway adds the tools to the program's requests."""
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
    """Yield the providers for which the user has set another address, each with the explanation for the user."""
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
