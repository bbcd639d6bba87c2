"""Who may import whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ._source import Imported, Source

_GROUND = frozenset({"base", "model"})
_CORE = frozenset(
    {
        "home",
        "hardening",
        "actions",
        "vault",
        "credentials",
        "redaction",
        "store",
        "audit",
        "connectors",
        "review",
        "runner",
        "features",
    }
)
_SURFACES = frozenset({"api", "web", "mcp", "cli", "client"})
ALLOWED: Mapping[str, frozenset[str]] = {
    "base": frozenset(),
    "model": frozenset({"base"}),
    "home": _GROUND,
    "hardening": _GROUND,
    "credentials": _GROUND,
    "redaction": _GROUND,
    "audit": _GROUND,
    "store": _GROUND,
    "review": _GROUND,
    "actions": _GROUND,
    "connectors": _GROUND | {"credentials", "redaction"},
    "vault": _GROUND | {"credentials", "home"},
    "runner": _GROUND | {"actions", "review"},
    # The collection of features, and what they are made of; it names none.
    "features": _GROUND | _CORE - {"features"},
    "api": _GROUND | {"credentials", "features", "review"},
    "web": _GROUND | {"actions", "api", "features", "review"},
    "client": _GROUND,
    "mcp": _GROUND | {"client", "home"},
    # The command line is where the daemon in the foreground is started from.
    "cli": _GROUND
    | {"actions", "client", "credentials", "daemon", "features", "hardening", "home", "redaction", "review"},
    # Where the installed commands begin, before anything is loaded.
    "_start": frozenset({"cli", "mcp"}),
    "__main__": frozenset({"_start"}),
    "daemon": _GROUND | _CORE | {"api", "web", "mcp"},
    "testing": _GROUND | _CORE | _SURFACES,
}
"""For each room the rooms that it may import; the table of doc/architecture.md as data."""

FEATURES: Mapping[str, frozenset[str]] = {
    "backup": frozenset(),
    "claims": frozenset({"gateway"}),
    "demo": frozenset(),
    "egress": frozenset(),
    "gateway": frozenset(),
    "importing": frozenset(),
    "inband": frozenset({"gateway"}),
    "key_sources": frozenset(),
    "launch": frozenset({"egress", "gateway", "own_tools", "profiles", "prompts", "sandbox", "wake"}),
    "mcp_http": frozenset(),
    "moving": frozenset({"importing", "launch"}),
    "notices": frozenset(),
    "oidc": frozenset({"people", "phone"}),
    "own_tools": frozenset({"egress", "sandbox"}),
    "packages": frozenset(),
    "people": frozenset({"phone"}),
    "phone": frozenset(),
    "portable": frozenset(),
    "profiles": frozenset(),
    "provider_tools": frozenset({"gateway"}),
    "prompts": frozenset(),
    "proving": frozenset(),
    "push": frozenset({"notices"}),
    "sandbox": frozenset(),
    "service": frozenset(),
    "setup": frozenset({"importing", "launch"}),
    "spending": frozenset({"gateway"}),
    "tracing": frozenset(),
    "wake": frozenset(),
}
"""For each feature the features that it names; each may import every core room and surface."""

_OF_FEATURES = _GROUND | _CORE | _SURFACES

OFFLINE_DOORS: Mapping[str, frozenset[str]] = {
    "cli": frozenset(
        {
            "aileron.vault.keys",
            "aileron.connectors.check",
            "aileron.connectors.KindTable",
            "aileron.connectors.load_kinds",
            "aileron.connectors.make_schema",
            "aileron.connectors.read_descriptions",
            "aileron.connectors.replay",
            "aileron.connectors.find_specimens",
            "aileron.connectors.Specimen",
            "aileron.connectors.HttpExchange",
            "aileron.connectors.HttpFetch",
            "aileron.connectors.system_transport",
            "aileron.connectors.HostKey",
            "aileron.connectors.HttpTransport",
            "aileron.connectors.RemoteRepository",
            "aileron.connectors.digest_tree",
            "aileron.connectors.NotTried",
            "aileron.connectors.build_request",
            "aileron.connectors.SshTransport",
            "aileron.audit.verify",
            "aileron.store.copy",
            "aileron.store.moving",
        }
    ),
}
"""Single names that a room may import although their room is closed to it: they work without what is around them."""

_ONLY_INSIDE_FUNCTIONS: Mapping[str, frozenset[str]] = {
    # Klein installs a reactor when it is imported: twistd must have chosen one before.
    "daemon": frozenset({"api", "web", "mcp"}),
    # Most commands need no daemon.
    "cli": frozenset({"daemon"}),
}

_ONE_DOOR = frozenset({"runner"})
"""Rooms of which others import the door alone: their modules are private though no underscore says so."""


def arrows(source: Source) -> Iterator[str]:
    """Find imports of a room that is closed to this one, or of another room's private module."""
    room = _room(source.name)
    for imported in source.imports:
        target = _room(imported.path) if imported.path.startswith("aileron.") else ""
        if target and not target.startswith("__") and target != room and (fault := _fault(room, target, imported)):
            yield f"{source.name}:{imported.line} {fault}"


def _room(module: str) -> str:
    """Name the room of a module: the first part below the package, for a feature the first two."""
    first, *others = [*module.split(".")[1:], ""]
    is_feature = first == "features" and others[0] in FEATURES
    return f"{first}.{others[0]}" if is_feature else first


def _fault(room: str, target: str, imported: Imported) -> str | None:
    if imported.path in OFFLINE_DOORS.get(room, ()) or imported.module in OFFLINE_DOORS.get(room, ()):
        return None
    if not _is_open(room, target):
        return f"{room or 'aileron'} may not import {target}"
    inside = imported.path.removeprefix(f"aileron.{target}").split(".")
    hidden = target in _ONE_DOOR and imported.module != f"aileron.{target}"
    if hidden or any(part.startswith("_") for part in inside):
        return f"{imported.path} is private to {target}"
    if imported.at_module_level and target in _ONLY_INSIDE_FUNCTIONS.get(room, ()):
        return f"{room} may import {target} only inside a function"
    return None


def _is_open(room: str, target: str) -> bool:
    feature = target.removeprefix("features.")
    own = room.removeprefix("features.")
    if own != room:
        return feature in FEATURES[own] if feature != target else target in _OF_FEATURES
    if feature != target:
        return False
    return target in ALLOWED.get(room, frozenset())
