"""The key C{profiles} of C{config.yaml}."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aileron.base.yaml_keys import (
    Key,
    Keys,
    NotConfig,
    Section,
    absolute_path,
    entries,
    items,
    line_of,
    match_text,
    read_keys,
)
from aileron.model.sessions import SELECTOR, ActionSelection

from .values import ActionProfile, ProfileSettings

if TYPE_CHECKING:
    from yaml import Node

MOST_PROFILES, MOST_SELECTORS = 100, 64
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_SELECTOR = re.compile(SELECTOR)
_AGENT = re.compile(r"[\w*][\w .:@/+*-]{0,63}")


def read_selectors(node: Node, name: str, line: int) -> tuple[str, ...]:
    """Parse a list of selectors, each of which stands for some actions.

    :raises NotConfig: if the node is not a list of at most 64 selectors.
    """
    problem = f"{name} must have names such as ship-*, tag:release, connector:local://me/*, effect:read or effect:write"
    found = items(node, name, line, MOST_SELECTORS, "selectors")
    return tuple(match_text(each, _SELECTOR, line_of(each), problem)[0] for each in found)


def _read_agents(node: Node, name: str, line: int) -> tuple[str, ...]:
    found = items(node, name, line, MOST_SELECTORS, "names of agents")
    return tuple(match_text(each, _AGENT, line_of(each), f"{name} must have names of agents")[0] for each in found)


def _read_projects(node: Node, name: str, line: int) -> tuple[str, ...]:
    found = items(node, name, line, MOST_SELECTORS, "directories")
    return tuple(str(absolute_path(each, f"an item of {name}", line_of(each))) for each in found)


_OF_PROFILE: Keys = {
    "allow": Key(
        read_selectors,
        "the actions that a session with this profile may use: names with `*` for any characters, `tag:WORD`, "
        "`connector:NAME`, `effect:read` or `effect:write`",
        "all",
    ),
    "deny": Key(read_selectors, "the actions that it may not use, although `allow` has them", "none"),
    "agents": Key(_read_agents, "the agents for which the profile applies if a launch names none", "all"),
    "projects": Key(
        _read_projects, "the directories, with all below them, in which it applies if a launch names none", "all"
    ),
}


def _read_profiles(keys: Keys, node: Node, name: str, line: int) -> ProfileSettings:
    found = entries(node, name)
    if len(found) > MOST_PROFILES:
        raise NotConfig(f"{name} may have {MOST_PROFILES} profiles at most", line)
    return ProfileSettings({each: _read_profile(keys, each, *value) for each, value in found.items()})


def _read_profile(keys: Keys, name: str, node: Node, line: int) -> ActionProfile:
    if not _NAME.fullmatch(name):
        raise NotConfig("the name of a profile must match [a-z0-9][a-z0-9._-]*, with at most 64 characters", line)
    said = read_keys(node, f"profiles.{name}", keys)
    selection = ActionSelection(said.pop("allow", ()), said.pop("deny", ()))
    return ActionProfile(name, selection, **said)


KEYS: Mapping[str, Any] = {"profiles": Section(_read_profiles, _OF_PROFILE, ".<name>")}
