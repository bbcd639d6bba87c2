"""The key C{own_tools} of C{config.yaml}."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from attrs import frozen

from aileron.base.yaml_keys import Key, WholeNumber, absolute_path, items, line_of, match_text, section

if TYPE_CHECKING:
    from yaml import Node

HOLD_SECONDS = 25
"""How long a connection is held while its run waits, unless set. Some tools give up after 30 seconds."""

MOST_HOLD_SECONDS = 300
_MOST_SERVICES, _MOST_PROJECTS = 20, 64
_SERVICE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def _read_services(node: Node, name: str, line: int) -> tuple[str, ...]:
    found = items(node, name, line, _MOST_SERVICES, "services")
    problem = f"{name} must have names of services, as `aileron own-tools list` shows them"
    return tuple(dict.fromkeys(match_text(each, _SERVICE, line_of(each), problem)[0] for each in found))


def _read_projects(node: Node, name: str, line: int) -> tuple[str, ...]:
    found = items(node, name, line, _MOST_PROJECTS, "directories")
    return tuple(str(absolute_path(each, f"an item of {name}", line_of(each))) for each in found)


@frozen
class OwnToolsSettings:
    """The settings of the feature.

    :ivar hold_seconds: how long the connection of a write is held while its run waits.
    :ivar services: the services that a launch opens if it names none.
    :ivar projects: the directories in which a launch opens C{services}, also below them. Empty for every directory.
    """

    hold_seconds: int = HOLD_SECONDS
    services: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()

    def find_services(self, directory: str) -> tuple[str, ...]:
        """Return the services that a launch in a directory opens if it names none."""
        inside = any(PurePath(directory).is_relative_to(each) for each in self.projects)
        return self.services if inside or not self.projects else ()


OWN_TOOLS = section(
    OwnToolsSettings,
    {
        "hold_seconds": Key(
            WholeNumber(MOST_HOLD_SECONDS),
            "seconds for which the connection of an agent's tool is held while its write waits for approval "
            "(some tools give up after 30)",
            HOLD_SECONDS,
        ),
        "services": Key(
            _read_services,
            "the services that `aileron launch --sandbox` opens if the option --own-tools is missing",
            "none",
        ),
        "projects": Key(_read_projects, "the directories, with all below them, in which it does so", "all"),
    },
)
