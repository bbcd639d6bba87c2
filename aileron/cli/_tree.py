"""The commands by name: where each is, in which part of the help it stands, and the names of earlier versions."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import click
from attrs import frozen

from aileron.features import FeatureSet

_CORE: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "demo": "aileron.features.launch.commands:demo",
        "setup": "aileron.features.setup.commands:setup",
        "launch": "aileron.features.launch.commands:launch",
        "import": "aileron.features.moving.commands:import_servers",
        "mcp": "._clients:mcp",
    },
    "Decide": {
        "open": ".vault.open:open_pages",
        "watch": ".approvals.watch:watch",
        "approve": ".approvals.approval:approve",
        "deny": ".approvals.approval:deny",
        "approval": ".approvals.approval:approval",
        "grant": ".approvals.grant:grant",
        "cap": ".approvals.limits:cap",
        "pause": ".approvals.limits:pause",
        "resume": ".approvals.limits:resume",
    },
    "Services": {
        "action": ".actions.action:action",
        "connector": ".actions.connector:connector",
        "credential": ".vault.binding:binding",
        "package": "aileron.features.packages.commands:package",
        "config": ".actions.trusting:config",
    },
    "Inspect": {
        "status": ".daemon.status:status",
        "run": ".records.runs:runs",
        "session": ".records.sessions:sessions",
        "audit": ".records.audit:audit",
        "gateway": ".daemon.status:gateway",
        "log": ".daemon.logs:logs",
    },
    "Maintain": {
        "doctor": ".doctor.command:doctor",
        "vault": ".vault.command:vault",
        "daemon": ".daemon.command:daemon",
        "backup": "aileron.features.backup.commands:backup",
        "upgrade": ".daemon.upgrade:upgrade",
        "operator": ".vault.operator:operator",
        "completion": ".completion:completion",
        "version": ".daemon.status:version",
    },
}
"""The commands of the core by the parts of the help: the module that has one, and what it is called there."""

_OF_FEATURES = FeatureSet().commands()

FEATURE_COMMANDS = frozenset(_OF_FEATURES)
"""The commands of features, by all of their words."""

PARTS: Mapping[str, Mapping[str, str]] = {
    title: {**part, **{name: each.place for name, each in _OF_FEATURES.items() if each.part == title}}
    for title, part in _CORE.items()
}
"""The parts of the help, each with its commands."""

FRONT = frozenset(
    ("demo", "setup", "launch", "open", "watch", "approve", "deny", "action", "status", "doctor"),
) | {name for name, each in _OF_FEATURES.items() if each.front}
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


OLD_NAMES: Mapping[str, OldName] = {
    **{old: OldName(each.place, name) for name, each in _OF_FEATURES.items() if " " not in name for old in each.old},
    "binding": OldName(".vault.binding:binding", "credential"),
    "connect": OldName("aileron.features.setup.connect:connect", "setup --choose"),
    "logs": OldName(".daemon.logs:logs", "log"),
    "prove": OldName("aileron.features.proving.commands:prove_connectors", "connector prove"),
    "runs": OldName(".records.runs:runs", "run"),
    "sessions": OldName(".records.sessions:sessions", "session"),
    "sync": OldName("aileron.features.packages.installing:sync", "package sync"),
}

OLD_WITHIN: Mapping[str, str] = {
    **{old: name for name, each in _OF_FEATURES.items() if " " in name for old in each.old},
    "action install": "package install",
    "action update": "package update",
    "action uninstall": "package uninstall",
    "connector install": "package install",
    "connector update": "package update",
    "connector uninstall": "package uninstall",
    "approval forgive": "approval allow-retry",
    "daemon status": "status",
}
"""The same of commands of a group, which L{hide} adds to it."""


def hide(group: click.Group, command: click.Command, name: str) -> None:
    """Add a command to a group by a name of an earlier version."""
    hidden = copy(command)
    hidden.hidden = True
    group.add_command(hidden, name)


def within(group: str) -> Mapping[str, str]:
    """Return the commands that features add to a group: the place of each, by its name there."""
    found = {name.partition(" ")[::2]: each.place for name, each in _OF_FEATURES.items() if " " in name}
    return {name: place for (of, name), place in found.items() if of == group}
