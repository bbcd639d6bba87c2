"""The commands by name: the module of each, its section of the help, and its names in earlier versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy

import click
from attrs import frozen

from aileron.features import FeatureSet
from aileron.model.features import Command

_TITLES = ("Start", "Decide", "Services", "Inspect", "Maintain")
"""The sections of the help, in order."""

_CORE: Mapping[str, Command] = {
    "mcp": Command("._clients:mcp", "Start", 50),
    "open": Command(".vault.open:open_pages", "Decide", 10, front=True),
    "watch": Command(".approvals.watch:watch", "Decide", 20, front=True),
    "approve": Command(".approvals.approval:approve", "Decide", 30, front=True),
    "deny": Command(".approvals.approval:deny", "Decide", 40, front=True),
    "approval": Command(".approvals.approval:approval", "Decide", 50),
    "passkey": Command(".vault.passkey:passkey", "Decide", 55, old=("operator passkey",)),
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
    "store": Command(".records.store:store", "Maintain", 45),
    "upgrade": Command(".daemon.upgrade:upgrade", "Maintain", 50),
    "operator": Command(".vault.operator:operator", "Maintain", 60),
    "completion": Command(".completion:completion", "Maintain", 70),
    "version": Command(".daemon.status:version", "Maintain", 80),
}
"""The commands of the core."""

_OF_FEATURES = FeatureSet().commands()
_ALL = {**_CORE, **_OF_FEATURES}

FEATURE_COMMANDS = frozenset(name for name, each in _OF_FEATURES.items() if not each.now)
"""The commands of features, by their full names."""


def _list_part(title: str) -> Iterator[str]:
    """Return the names of the commands in one section of the help, in order."""
    names = (name for name, each in _ALL.items() if each.part == title)
    return iter(sorted(names, key=lambda name: _ALL[name].rank))


PARTS: Mapping[str, Mapping[str, str]] = {
    title: {name: _ALL[name].place for name in _list_part(title)} for title in _TITLES
}
"""The sections of the help, each with its commands."""

FRONT = frozenset(name for name, each in _ALL.items() if each.front)
"""The commands that C{aileron --help} lists. C{aileron --help --all} lists all."""

COMMANDS: Mapping[str, str] = {name: place for part in PARTS.values() for name, place in part.items()}


@frozen
class OldName:
    """A command's name in an earlier version. It works, but the help does not list it.

    :ivar place: the module and name, as in L{PARTS}.
    :ivar now: the current name.
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
"""The current names of a group's commands by their old names, which the group or L{hidden_within} provides."""


def hide(group: click.Group, command: click.Command, name: str) -> None:
    """Add a command to a group under the name that it had in an earlier version. The help does not list it."""
    hidden = copy(command)
    hidden.hidden = True
    group.add_command(hidden, name)


def within(group: str) -> Mapping[str, str]:
    """Return the commands that features add to a group: the module of each, by its name in the group."""
    return _find_within(group, {name: each.place for name, each in _OF_FEATURES.items() if not each.now})


def hidden_within(group: str) -> Mapping[str, str]:
    """Return the commands that features had in a group in an earlier version: the module of each, by its old name."""
    return _find_within(group, {old: each.place for old, each in _OLD.items()})


def _find_within(group: str, places: Mapping[str, str]) -> Mapping[str, str]:
    start = f"{group} "
    return {name.removeprefix(start): place for name, place in places.items() if name.startswith(start)}
