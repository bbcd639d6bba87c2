"""Who may import whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ._source import Imported, Source

_GROUND = frozenset({"addresses", "interfaces", "values", "errors"})
_AGENT_SIDE = frozenset({"client", "home"})
_DAEMON_SIDE = frozenset({"home", "manifests", "connectors", "vault", "audit", "store", "runner"})

ALLOWED: Mapping[str, frozenset[str]] = {
    "addresses": frozenset(),
    "values": frozenset({"addresses"}),
    "errors": frozenset({"addresses", "values"}),
    "interfaces": frozenset({"addresses", "values", "errors"}),
    "home": _GROUND,
    "hardening": _GROUND,
    "blocking": _GROUND,
    "drafting": _GROUND,
    "disk": frozenset(),
    "files": frozenset(),
    "toml": frozenset(),
    "waiting": frozenset(),
    "bridge": frozenset(),
    "comparison": frozenset(),
    "outgoing": frozenset(),
    "credentials": _GROUND,
    "tables": _GROUND | {"toml"},
    "manifests": _GROUND | {"files", "tables", "toml"},
    "connectors": _GROUND
    | {"bridge", "comparison", "credentials", "files", "outgoing", "redaction", "tables", "toml", "waiting"},
    "importing": _GROUND | {"manifests", "redaction"},
    # The vault's file is read and replaced like every other private file of the home.
    "packages": _GROUND | {"connectors", "files", "home", "manifests", "tables", "toml"},
    "vault": _GROUND | {"credentials", "home", "waiting"},
    "audit": _GROUND,
    "store": _GROUND | {"disk", "waiting"},
    "runner": _GROUND | {"comparison", "manifests", "waiting"},
    "http1": frozenset(),
    "redaction": _GROUND,
    "notices": _GROUND | {"outgoing"},
    "gateway": _GROUND | {"http1", "redaction", "waiting"},
    "egress": _GROUND | {"home", "tables", "toml"},
    # A client of the gateway like others: the gateway knows nothing of it.
    "inband": _GROUND | {"http1"},
    "review": _GROUND,
    "api": _GROUND | {"credentials", "http1", "review"},
    "web": _GROUND | {"api", "drafting", "review"},
    "client": _GROUND | {"outgoing"},
    "mcp": _GROUND | _AGENT_SIDE | {"bridge", "waiting"},
    "launch": _GROUND | _AGENT_SIDE | {"files", "redaction", "toml"},
    "demo": _GROUND | _AGENT_SIDE | {"blocking"},
    # The command line is where the other commands' rooms, and the daemon in the foreground, are started from.
    "cli": _GROUND
    | _AGENT_SIDE
    | {"blocking", "credentials", "disk", "drafting", "hardening", "launch", "demo", "daemon", "redaction"}
    | {"importing", "packages", "proving", "review", "toml"},
    # A runner of its own, composed as the daemon composes it, over a service of the same process.
    "proving": _GROUND
    | {"bridge", "credentials", "home", "manifests", "connectors", "redaction"}
    | {"vault", "store", "runner", "testing"},
    # Where the installed commands begin, before anything is loaded.
    "_start": frozenset({"cli", "mcp"}),
    "__main__": frozenset({"_start"}),
    "testing": _GROUND | _DAEMON_SIDE | {"credentials", "client", "waiting"},
    "daemon": _GROUND
    | _DAEMON_SIDE
    | {"bridge", "credentials", "hardening", "notices", "packages"}
    | {"api", "egress", "gateway", "inband", "web", "mcp"},
}
"""For each room the rooms whose door it may import; the table of doc/architecture.md as data."""

OFFLINE_DOORS: Mapping[str, frozenset[str]] = {
    "cli": frozenset(
        {
            "aileron.vault.keys",
            "aileron.vault.archive",
            "aileron.actions.check",
            "aileron.connectors.check",
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
            "aileron.connectors.find_foreign_modules",
            "aileron.connectors.LOADING_VARIABLES",
            "aileron.connectors.NotTried",
            "aileron.connectors.build_request",
            "aileron.connectors.SshTransport",
            "aileron.audit.verify",
            "aileron.store.copy",
        }
    ),
    # The vault of a proof is made in a home of its own.
    "proving": frozenset({"aileron.vault.keys"}),
    # A declared program runs in the sandbox that agents run in.
    "daemon": frozenset(
        {
            "aileron.features.sandbox.layout.SandboxLayout",
            "aileron.features.sandbox.program.build_program_sandbox",
            "aileron.features.sandbox.sandbox.find_sandbox",
            "aileron.features.sandbox.layout.installed_programs",
        }
    ),
}
"""Single names that a room may import although their room is closed to it: they work without what is around them."""

_ONLY_INSIDE_FUNCTIONS: Mapping[str, frozenset[str]] = {
    # Klein installs a reactor when it is imported: twistd must have chosen one before.
    "daemon": frozenset({"api", "gateway", "inband", "web", "mcp", "launch"}),
    # "aileron version" need not load an agent, and only the commands that need them load the others.
    "cli": frozenset({"daemon", "demo", "importing", "launch", "proving"}),
}


def arrows(source: Source) -> Iterator[str]:
    """Find imports of a room that is closed to this one, or past another room's door."""
    room = _room(source.name)
    for imported in source.imports:
        target = _target(imported)
        if target and target != room and (fault := _fault(room, target, imported)):
            yield f"{source.name}:{imported.line} {fault}"


def _room(module: str) -> str:
    return module.removeprefix("aileron").removeprefix(".").split(".")[0]


def _target(imported: Imported) -> str | None:
    """Name the room that an import enters, if it is one of ours."""
    parts = imported.path.split(".")
    if parts[0] != "aileron" or len(parts) == 1:
        return None
    return None if parts[1].startswith("__") else parts[1]


def _fault(room: str, target: str, imported: Imported) -> str | None:
    if imported.path in OFFLINE_DOORS.get(room, ()) or imported.module in OFFLINE_DOORS.get(room, ()):
        return None
    if target not in ALLOWED.get(room, frozenset()):
        return f"{room or 'aileron'} may not import {target}"
    if imported.module.count(".") > 1 or (imported.name or "").startswith("_"):
        return f"{imported.path} is past the door of {target}"
    if imported.at_module_level and target in _ONLY_INSIDE_FUNCTIONS.get(room, ()):
        return f"{room} may import {target} only inside a function"
    return None
