"""Reads the MCP servers, with their secrets, that a user has set up in agents' settings."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from attrs import field, frozen

from aileron.base.addresses import read_base_url
from aileron.base.files import Unreadable, read_file
from aileron.redaction import holds_secret, is_secret

from .editing import JSONC, Keys, Syntax
from .formats import MAX_BYTES, to_text
from .layers import Finder, Location, files, part_of, project_files
from .registration import Invocation
from .runners import NotInstallable, PackageRun, read_package_run

HERE = "*"
"""A placeholder in keys of settings for the working directory or one of its parents."""

MASK = "****"
ARGUMENT, ENVIRONMENT, HEADER, QUERY = "argument", "environment", "header", "query"
"""The places of values in a server's entry."""

_TEXTS = {
    "env": ENVIRONMENT,
    "environment": ENVIRONMENT,
    "envs": ENVIRONMENT,
    "headers": HEADER,
    "http_headers": HEADER,
}
_SCHEME = re.compile(r"((?:Bearer|Basic|Token) )?(.*)", re.IGNORECASE | re.DOTALL)
_REFERENCE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^}$]*))?\}|\{env:(\w+)\}|\$\{[^${}]*\}|\{file:[^{}]*\}")
_OWN_NAME, _OWN_PROGRAM = "aileron", "aileron-mcp"


@frozen
class ServerSource:
    """Settings files in which an agent stores MCP servers.

    :ivar keys: the paths in the file to objects of servers by name.
    :ivar project: whether the files belong to a project, not to the user.
    """

    find: Finder
    keys: tuple[Keys, ...] = (("mcpServers",),)
    syntax: Syntax = JSONC
    project: bool = False


@frozen
class ServerSecret:
    """A secret in a server's entry.

    :ivar place: the kind of place: L{ARGUMENT}, L{ENVIRONMENT}, L{HEADER} or L{QUERY}.
    :ivar form: the text that is sent, with C{{key}} for the value.
    :ivar is_plain: whether the file contains the secret, not a reference to a variable.
    """

    place: str
    name: str
    value: str = field(repr=False)
    form: str
    is_plain: bool


@frozen
class ServerEntry:
    """One MCP server in an agent's settings.

    :ivar keys: the path to the entry in its file. The last key is the server's name.
    :ivar shown: the command or URL, without secrets.
    :ivar command: the program's path and its arguments; empty if the server has a URL.
    :ivar environment: the variables that are not secret.
    :ivar problems: sentences with the reasons why no connector can replace the server.
    :ivar package: the package that the command fetches at each start, or None if it fetches none.
    """

    keys: Keys
    shown: str
    command: tuple[str, ...]
    directory: str
    environment: Mapping[str, str]
    secrets: tuple[ServerSecret, ...]
    problems: tuple[str, ...]
    package: PackageRun | None = None

    @property
    def transport(self) -> str:
        """Return the name of the transport: C{stdio} or C{http}."""
        return "stdio" if self.command else "http"


@frozen
class ServerSettings:
    """A settings file with its servers.

    :ivar problem: why the file cannot be read; empty if it was read.
    """

    path: Path
    source: ServerSource
    data: bytes = field(default=b"", repr=False)
    entries: tuple[ServerEntry, ...] = ()
    problem: str = ""


def read_servers(sources: Iterable[ServerSource], invocation: Invocation) -> list[ServerSettings]:
    """Read an agent's existing settings files for an invocation, each file once."""
    found: dict[Path, ServerSettings] = {}
    for source in sources:
        for place in source.find(invocation):
            if isinstance(place, Path) and place not in found and os.path.lexists(place):
                found[place] = _read_file(place, source, invocation)
    return list(found.values())


def _read_file(path: Path, source: ServerSource, invocation: Invocation) -> ServerSettings:
    try:
        data = read_file(str(path), MAX_BYTES).data
        values = source.syntax.parse(data.decode("utf-8")) if len(data) <= MAX_BYTES else None
    except Unreadable as error:
        return ServerSettings(path, source, problem=error.problem)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, Mapping):
        return ServerSettings(path, source, problem=f"it is not valid {source.syntax.name}")
    return ServerSettings(path, source, data, tuple(_read_entries(values, source, invocation)))


def _read_entries(values: Mapping[str, Any], source: ServerSource, invocation: Invocation) -> Iterator[ServerEntry]:
    directory, environment = Path(invocation.directory), invocation.environment
    known = {**environment, "workspaceFolder": str(directory), "userHome": environment.get("HOME", "/")}
    for pattern in source.keys:
        for here in map(str, (directory, *directory.parents)) if HERE in pattern else ("",):
            keys = tuple(here if key == HERE else key for key in pattern)
            for name, value in part_of(values, *keys).items():
                entry = part_of(value)
                has_server = any(entry.get(key) for key in ("command", "cmd", "url", "uri"))
                if has_server and name != _OWN_NAME and _OWN_PROGRAM not in map(os.path.basename, _argv(entry)):
                    yield _read_entry((*keys, str(name)), entry, known)


def _argv(entry: Mapping[str, Any]) -> list[str]:
    parts = (entry.get("command") or entry.get("cmd") or [], entry.get("args") or [])
    return [to_text(each) for part in parts for each in (part if isinstance(part, list) else [part])]


def _read_entry(keys: Keys, entry: Mapping[str, Any], known: Mapping[str, str]) -> ServerEntry:
    secrets, shown, problems = list[ServerSecret](), list[str](), list[str]()
    plain: dict[str, dict[str, str]] = {ENVIRONMENT: {}, HEADER: {}, QUERY: {}}
    command = list[str]()
    for place, name, text in _parts(entry):
        values = {each[0]: known.get(each[1] or each[3] or "", each[2]) for each in _REFERENCE.finditer(text)}
        problems += [f"It uses {each}, which is not set here." for each, value in values.items() if value is None]
        value = _REFERENCE.sub(lambda each: known.get(each[1] or each[3] or "", each[2]) or "", text)
        hidden = is_secret(name, value)
        if hidden and (scheme := _SCHEME.fullmatch(value)):
            secrets.append(ServerSecret(place, name, scheme[2], f"{scheme[1] or ''}{{key}}", is_plain=not values))
        elif place != ARGUMENT:
            plain[place][name] = value
        if place == ARGUMENT:
            command.append(value)
            shown.append(MASK if hidden else value)
    obstacles = {
        "It uses HTTP with server-sent events, which came before streamable HTTP.": entry.get("type") == "sse",
        "Its variables are in another file.": entry.get("envFile"),
        "Its directory is given by a variable.": _REFERENCE.search(str(entry.get("cwd") or "")),
        "It takes a secret as an argument, which every process can read.": ARGUMENT in [each.place for each in secrets],
        f"It has {len(secrets)} secrets, and a connector has one credential.": len(secrets) > 1,
    }
    problems += [problem for problem, stands in obstacles.items() if stands]
    problems += [f"It is sent {name}, which a connector cannot send." for name in (*plain[HEADER], *plain[QUERY])]
    package = None
    if command:
        program = shutil.which(command[0], path=known.get("PATH"))
        problems += [] if program else [f"The program {shown[0]} is not found on PATH."]
        package, problem = _read_package(command)
        problems += [problem] if problem else []
        command[0], where = os.path.abspath(program or command[0]), shlex.join(shown)
    else:
        where, problem = _read_url(_address(entry))
        problems += [problem] if problem else []
    return ServerEntry(
        keys=keys,
        shown=where,
        command=tuple(command),
        directory=str(entry.get("cwd") or ""),
        environment=plain[ENVIRONMENT],
        secrets=tuple(secrets),
        problems=tuple(problems),
        package=package,
    )


def _read_package(command: Sequence[str]) -> tuple[PackageRun | None, str]:
    """Return the package that a command fetches (or None), and why it cannot be installed (or an empty text)."""
    try:
        return read_package_run(command), ""
    except NotInstallable as error:
        return None, str(error)


def _parts(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the arguments, variables, headers and query parameters in a server's entry, in any agent's format.

    Each is a place, a name, and a text that may refer to variables.
    """
    for before, each in pairwise(("", *_argv(entry))):
        name, equals, _ = each.partition("=")
        flag = before if before.startswith("-") and not each.startswith("-") else ""
        yield ARGUMENT, name if equals else flag, each
    for key, place in _TEXTS.items():
        values = part_of(entry, key).items()
        yield from ((place, str(name), to_text(value)) for name, value in values if value is not None)
    for names in (entry.get("env_vars"), entry.get("env_keys")):
        yield from ((ENVIRONMENT, str(each), f"${{{each}}}") for each in (names if isinstance(names, list) else ()))
    for name, variable in part_of(entry, "env_http_headers").items():
        yield HEADER, str(name), f"${{{variable}}}"
    if variable := entry.get("bearer_token_env_var"):
        yield HEADER, "Authorization", f"Bearer ${{{variable}}}"
    yield from ((QUERY, name, text) for name, text in parse_qsl(_address(entry).partition("?")[2]))


def _address(entry: Mapping[str, Any]) -> str:
    return str(entry.get("url") or entry.get("uri") or "")


def _read_url(text: str) -> tuple[str, str]:
    """Return a server's URL without its query, and an empty text.

    If the URL is invalid or has a secret in its path, return L{MASK} and a sentence with the problem.
    """
    bare = text.partition("?")[0]
    if holds_secret(unquote(bare)):
        return MASK, "Its URL has a secret in its path."
    try:
        url = read_base_url(bare).url
    except ValueError as error:
        return MASK, f"Its URL {error}."
    return (bare if bare == f"{url}/" else url), ""


_CODE = Location("$XDG_CONFIG_HOME/Code/User", "~/.config/Code/User")
_MAC_CODE, _SERVERS = Location("~/Library/Application Support/Code/User"), (("servers",),)
EDITORS: Mapping[str, tuple[ServerSource, ...]] = {
    "cursor": (
        ServerSource(files(Location("~/.cursor"), "mcp.json")),
        ServerSource(project_files(".cursor/mcp.json", root=".git"), project=True),
    ),
    "vscode": (
        *(ServerSource(files(each, "mcp.json"), _SERVERS) for each in (_CODE, _MAC_CODE)),
        ServerSource(project_files(".vscode/mcp.json", root=".git"), _SERVERS, project=True),
    ),
}
"""The sources of editors, which are not launched from a terminal, by name."""
