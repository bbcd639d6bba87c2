"""Finds the services that connector files of a home declare for agents' own tools."""

from __future__ import annotations

from attrs import frozen

from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.model.connectors import ConnectorDescription
from aileron.model.own_tools import ToolDeclaration

from .action_file import name_action

LIST = "List the services: aileron own-tools list"


@frozen
class DeclaredTools:
    """A service that a connector file declares for agents' own tools."""

    about: ConnectorDescription
    tools: ToolDeclaration

    @property
    def action(self) -> str:
        """The name of the action by which tools use the service."""
        return name_action(self.tools.service)


def list_declared(cli: CliContext) -> list[DeclaredTools]:
    """Return the services that connector files declare for own tools, by name."""
    from aileron.connectors import read_descriptions

    described = (about for about, _ in read_descriptions(cli.home.connectors, cli.kinds))
    found = [DeclaredTools(about, about.own_tools) for about in described if about.own_tools is not None]
    return sorted(found, key=lambda each: (each.tools.service, each.about.name))


def find_declared(cli: CliContext, service: str) -> DeclaredTools:
    """Return the service with that name.

    :raises CommandError: if no connector declares it, or more than one does.
    """
    found = [each for each in list_declared(cli) if each.tools.service == service]
    if not found:
        raise CommandError(f"No connector declares own tools for {service}. Nothing was changed.", LIST)
    if len(found) > 1:
        names = " and ".join(each.about.name for each in found)
        raise CommandError(f"{names} both declare own tools for {service}. Nothing was changed.", LIST)
    return found[0]
