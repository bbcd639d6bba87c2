"""Shell completion of services for agents' own tools."""

from __future__ import annotations

from collections.abc import Iterable

from aileron.cli.completion import completer
from aileron.cli.context import CliContext


def _services(cli: CliContext) -> Iterable[str]:
    from .declared import list_declared

    return [each.tools.service for each in list_declared(cli)]


services = completer(_services)
