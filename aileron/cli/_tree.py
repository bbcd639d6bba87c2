"""The commands by name: where each is, in which part of the help it stands, and the names of earlier versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy

import click
from attrs import frozen

from aileron.features import FeatureSet
from aileron.model.features import Command

_TITLES = ("Start", "Decide", "Services", "Inspect", "Maintain")
"""The parts of the help, in order."""

_CORE: Mapping[str, Command] = {
    "mcp": Command("._clients:mcp", "Start", 50),
    "open": Command(".vault.open:open_pages", "Decide", 10, front=True),
    "watch": Command(".approvals.watch:watch", "Decide", 20, front=True),
    "approve": Command(".approvals.approval:approve", "Decide", 30, front=True),
    "deny": Command(".approvals.approval:deny", "Decide", 40, front=True),
    "approval": Command(".approvals.approval:approval", "Decide", 50),
    "grant": Command(".approvals.grant:grant", "Decide", 60),
    "cap": Command(".approvals.limits:cap", "Decide", 70),
    "pause": Command(".approvals.limits:pause", "Decide", 80),
    "resume": Command(".approvals.limits:resume", "Decide", 90),
    "action": Command(".actions.action:action", "Services", 10, front=True),
    "connector": Command(".actions.connector:connector", "Services", 20),
    "credential": Command(".vault.binding:binding", "Services", 30, old=("binding",)),
    "config": Command(".actions.trusting:config", "Services", 50),
    "status": Command(".daemon.status:status", "Inspect", 10, front=True),
    "run": Command(".records.runs:runs", "Inspect", 20, old=("runs",)),
    "session": Command(".records.sessions:sessions", "Inspect", 30, old=("sessions",)),
    "audit": Command(".records.audit:audit", "Inspect", 40),
    "log": Command(".daemon.logs:logs", "Inspect", 60, old=("logs",)),
    "doctor": Command(".doctor.command:doctor", "Maintain", 10, front=True),
    "vault": Command(".vault.command:vault", "Maintain", 20),
    "daemon": Command(".daemon.command:daemon", "Maintain", 30),
    "upgrade": Command(".daemon.upgrade:upgrade", "Maintain", 50),
    "operator": Command(".vault.operator:operator", "Maintain", 60),
    "completion": Command(".completion:completion", "Maintain", 70),
    "version": Command(".daemon.status:version", "Maintain", 80),
}
"""The commands of the core."""

_OF_FEATURES = FeatureSet().commands()
_ALL = {**_CORE, **_OF_FEATURES}

FEATURE_COMMANDS = frozenset(name for name, each in _OF_FEATURES.items() if not each.now)
"""The commands of features, by all of their words."""


def _list_part(title: str) -> Iterator[str]:
    """Return the names of the commands that one part of the help lists, in order."""
    names = (name for name, each in _ALL.items() if each.part == title)
    return iter(sorted(names, key=lambda name: _ALL[name].rank))


PARTS: Mapping[str, Mapping[str, str]] = {
    title: {name: _ALL[name].place for name in _list_part(title)} for title in _TITLES
}
"""The parts of the help, each with its commands."""

FRONT = frozenset(name for name, each in _ALL.items() if each.front)
"""The commands of C{aileron --help}; C{aileron --help --all} has all of them."""

COMMANDS: Mapping[str, str] = {name: place for part in PARTS.values() for name, place in part.items()}


@frozen
class OldName:
    """A command by the name that it had in an earlier version. It works, and no help names it.

    :ivar place: as in L{PARTS}.
    :ivar now: what it is called now.
    """

    place: str
    now: str


_OLD: Mapping[str, OldName] = {
    **{old: OldName(each.place, name) for name, each in _ALL.items() for old in each.old},
    **{name: OldName(each.place, each.now) for name, each in _ALL.items() if each.now},
}

OLD_NAMES: Mapping[str, OldName] = {old: each for old, each in _OLD.items() if " " not in old}

OLD_WITHIN: Mapping[str, str] = {
    **{old: each.now for old, each in _OLD.items() if " " in old},
    "approval forgive": "approval allow-retry",
    "daemon status": "status",
}
"""The same of commands of a group, which the group or L{hidden_within} has."""


def hide(group: click.Group, command: click.Command, name: str) -> None:
    """Add a command to a group by a name of an earlier version."""
    hidden = copy(command)
    hidden.hidden = True
    group.add_command(hidden, name)


def within(group: str) -> Mapping[str, str]:
    """Return the commands that features add to a group: the place of each, by its name there."""
    return _find_within(group, {name: each.place for name, each in _OF_FEATURES.items() if not each.now})


def hidden_within(group: str) -> Mapping[str, str]:
    """Return the commands of features that were in a group in an earlier version: the place of each, by that name."""
    return _find_within(group, {old: each.place for old, each in _OLD.items()})


def _find_within(group: str, places: Mapping[str, str]) -> Mapping[str, str]:
    start = f"{group} "
    return {name.removeprefix(start): place for name, place in places.items() if name.startswith(start)}
