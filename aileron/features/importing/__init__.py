"""Importing: makes connector and action files from an API description, a curl command or the tools of an MCP server."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.features.feature import Feature
from aileron.model.features import Command


class Importing(Feature):
    """The feature with C{aileron connector import}, which makes connector files from descriptions of APIs."""

    name = "importing"
    summary = "Makes connectors of API descriptions, curl commands and MCP servers."

    def commands(self) -> Mapping[str, Command]:
        return {"connector import": Command("aileron.features.importing.commands:import_command")}


FEATURE = Importing()
