"""Shell completion of agents' names."""

from __future__ import annotations

from collections.abc import Iterable

from aileron.cli.completion import completer
from aileron.cli.context import CliContext


def _agents(_cli: CliContext) -> Iterable[str]:
    from .agents import find_agents

    return find_agents()


def _server_sources(_cli: CliContext) -> Iterable[str]:
    from .agents import find_server_sources

    return find_server_sources()


agents = completer(_agents)
server_sources = completer(_server_sources)
