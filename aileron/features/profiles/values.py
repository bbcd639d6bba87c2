"""Profiles, and which actions their selectors match."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from attrs import field, frozen

from aileron.base.patterns import matches_glob
from aileron.model.actions import Offer
from aileron.model.sessions import ActionSelection


@frozen
class ActionProfile:
    """A named choice of actions that sessions may use.

    :ivar selection: the actions that a session with this profile may use.
    :ivar agents: the agents' names, with C{*} for any characters, to whose sessions the profile applies by default. If
        there are none, it applies to every agent in C{projects}.
    :ivar projects: absolute paths of directories. The profile applies by default to sessions in and below them. If
        there are none, it applies to C{agents} in every directory.
    """

    name: str
    selection: ActionSelection
    agents: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()

    def applies_to(self, agent: str, directory: str) -> bool:
        """Return whether the profile applies by default to sessions of this agent in this directory."""
        if not self.agents and not self.projects:
            return False
        named = not self.agents or any(matches_glob(pattern, agent) for pattern in self.agents)
        return named and (not self.projects or any(_is_within(directory, each) for each in self.projects))


@frozen
class ProfileSettings:
    """The operator's profiles.

    :ivar profiles: the profiles by name, in the order of the file.
    """

    profiles: Mapping[str, ActionProfile] = field(factory=dict)

    def find(self, name: str) -> ActionProfile | None:
        """Return the profile with this name, or None."""
        return self.profiles.get(name)

    def find_default(self, agent: str, directory: str) -> ActionProfile | None:
        """Return the first profile that applies by default to this agent and directory, or None."""
        return next((each for each in self.profiles.values() if each.applies_to(agent, directory)), None)


def selects(selection: ActionSelection, offer: Offer) -> bool:
    """Return whether a selection (a choice of actions to allow and to deny) allows an action."""
    allowed = not selection.allow or any(matches(selector, offer) for selector in selection.allow)
    return allowed and not any(matches(selector, offer) for selector in selection.deny)


def matches(selector: str, offer: Offer) -> bool:
    """Return whether an action is one of those that a selector in a profile stands for.

    C{tag:WORD} matches a tag, C{connector:NAME} a connector that a step uses, C{effect:read} an action that only reads,
    C{effect:write} every other action, and any other selector the action's name. C{*} stands for any characters.
    """
    kind, _, rest = selector.partition(":")
    action = offer.action
    if kind == "effect":
        return offer.read_only == (rest == "read")
    if kind == "tag":
        return any(matches_glob(rest, tag) for tag in action.tags)
    if kind == "connector":
        return any(matches_glob(rest, pin.name) for pin in action.connectors)
    return matches_glob(selector, action.name)


def _is_within(directory: str, project: str) -> bool:
    """Return whether an absolute directory is C{project} or below it. A path with C{..} is within nothing."""
    path = PurePath(directory)
    return path.is_absolute() and ".." not in path.parts and path.is_relative_to(project)
