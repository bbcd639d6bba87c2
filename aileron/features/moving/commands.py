"""C{aileron import}: turns the MCP servers in an agent's settings into connectors with secrets in the vault."""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import frozen

from aileron.base.addresses import may_be_private, read_origin
from aileron.base.json import JSON
from aileron.base.toml import read_toml
from aileron.cli.actions.connector import CONNECTORS
from aileron.cli.actions.copying import add_ready
from aileron.cli.actions.trusting import TrustRequest, choose, trust, yes
from aileron.cli.context import CliContext, Links
from aileron.cli.errors import CommandError
from aileron.cli.output import block, heading, note, say, say_json, table
from aileron.cli.session import OperatorCommand, operator, operator_command, refuse_paused
from aileron.cli.vault.binding import service_of
from aileron.cli.vault.command import ensure_open_vault
from aileron.credentials import ApiKey
from aileron.features.importing.mcp_servers import find_server
from aileron.features.launch import completion
from aileron.home.paths import prepare
from aileron.home.private_files import atomic_write, read_private
from aileron.redaction import Redactor

from .tools import add_listing, choose_tools

if TYPE_CHECKING:
    from aileron.client import Operator
    from aileron.features.launch.servers import ServerEntry, ServerSettings

    from .server_packages import InstalledServer

_KEYS = {"environment": "variable", "header": "header", "query": "query"}
_UNCHANGED = {"PYTHONDONTWRITEBYTECODE": "1"}
"""The variable with which Python writes no bytecode, so that the installed files of a package stay unchanged."""

_READERS = "the program and everything that it starts"
_NOT_OF_A_NAME = re.compile(r"[^a-z0-9]+")


@frozen
class _ServerMove:
    """A server in an agent's settings, and the connector that replaces it."""

    file: ServerSettings
    entry: ServerEntry
    connector: str
    file_name: str


class _AgentType(click.ParamType):  # type: ignore[type-arg]  # click 8.1 knows of none
    """The name of an agent whose settings can be read. The names are looked up only when the parameter is used."""

    name = "agent"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self._names():
            self.fail(f"{value!r} is not one of {', '.join(self._names())}.", param, ctx)
        return value

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"{{{'|'.join(self._names())}}}"

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"Choose from: {', '.join(self._names())}"

    def _names(self) -> list[str]:
        from aileron.features.launch.agents import find_server_sources

        return sorted(find_server_sources())


@click.command("import")
@click.argument("agent", type=_AgentType(), shell_complete=completion.server_sources)
@click.option("--write", is_flag=True, help="Also remove the servers from the agent's settings. A backup is kept.")
@yes
@operator_command
def import_servers(command: OperatorCommand, /, agent: str, write: bool, yes: bool) -> None:
    """Move the MCP servers in AGENT's settings behind Aileron.

    The command lists the servers and the names of their secrets. Each server that you choose becomes a connector for
    you to trust, and its secret goes into the vault. With --json it only lists them.
    """
    from aileron.features.launch.agents import find_server_sources
    from aileron.features.launch.registration import Invocation
    from aileron.features.launch.servers import read_servers

    cli = command.cli
    found = read_servers(find_server_sources()[agent], Invocation((), cli.environ, str(Path.cwd())))
    if command.as_json:
        say_json({"files": [_as_json(file) for file in found]})
        return
    moves = _list(cli, found)
    if not moves:
        say("There is no server to move.")
    elif not yes and not cli.interactive():
        note("To move them, run this command in a terminal, or add --yes.")
    else:
        refuse_paused(cli, "moved")
        chosen = moves if yes else choose(cli, "Servers to move", moves, "all")
        _move(command, chosen, sure=yes)
        for file in found:
            _remove_entries(cli, file, [each.entry for each in chosen if each.file is file], write=write)


def _as_json(file: ServerSettings) -> Mapping[str, JSON]:
    servers: list[JSON] = []
    for each in file.entries:
        told: dict[str, JSON] = {"name": each.keys[-1], "transport": each.transport, "shown": each.shown}
        secrets: list[JSON] = [{"place": one.place, "name": one.name, "plain": one.is_plain} for one in each.secrets]
        servers.append({**told, "secrets": secrets, "problems": list(each.problems)})
    return {"path": str(file.path), "problem": file.problem or None, "servers": servers}


def _list(cli: CliContext, found: Sequence[ServerSettings]) -> Sequence[_ServerMove]:
    """Print the servers, and return those that can be moved, in the order of their numbers."""
    moves = dict[str, _ServerMove]()
    for file in found:
        heading("{path}", path=file.path)
        if file.problem:
            note("  Left alone: {problem}", problem=file.problem)
        rows = list[tuple[object, ...]]()
        for each in file.entries:
            if not each.problems:
                move = _plan_move(cli, file, each, moves)
                moves[move.connector] = move
            number = "" if each.problems else len(moves)
            plain = {True: "in plain text", False: "in a variable"}
            secrets = ", ".join(f"{one.name} ({plain[one.is_plain]})" for one in each.secrets)
            rows.append((number, each.keys[-1], each.transport, each.shown, secrets or None))
        if rows:
            table(("NO", "NAME", "TRANSPORT", "COMMAND OR URL", "SECRETS"), rows)
        for each in file.entries:
            _explain_move(each)
    return tuple(moves.values())


def _explain_move(entry: ServerEntry) -> None:
    """Print why a server cannot be moved. If it can, print which programs will be able to read its secret."""
    name = entry.keys[-1]
    if entry.problems:
        note("  {name} is not moved. {problem}", name=name, problem=entry.problems[0])
        return
    if entry.package is not None:
        name_of = entry.package.name
        note(
            "  If you move {name}, {package} is installed once and pinned; none of its code runs for that.",
            name=name,
            package=name_of,
        )
    for each in entry.secrets:
        if each.place == "environment":
            note("  If you move {name}, {who} can read {secret}, as now.", name=name, who=_READERS, secret=each.name)


def _plan_move(cli: CliContext, file: ServerSettings, entry: ServerEntry, taken: Collection[str]) -> _ServerMove:
    """Return the move of a server, with a name for its connector that is made of the server's name.

    If a connector to another server has that name, a number is added.

    :param taken: the connector names of earlier moves.
    """
    plain = _NOT_OF_A_NAME.sub("-", entry.keys[-1].lower()).strip("-") or "server"
    shorts = (f"{plain}{ending}" for ending in chain(("",), (f"-{number}" for number in count(2))))
    moves = (_ServerMove(file, entry, f"local://me/{short}", f"{short}.toml") for short in shorts)
    return next(each for each in moves if each.connector not in taken and _is_free(cli, each))


def _is_free(cli: CliContext, move: _ServerMove) -> bool:
    """Return whether the connector's name is unused, or used by a connector to the same server."""
    there = read_private(cli.home.connectors / move.file_name)
    try:
        return there is None or _is_same(read_toml(there.decode()).values.get("mcp"), cli, move)
    except ValueError:
        return False


def _is_same(there: object, cli: CliContext, move: _ServerMove) -> bool:
    """Return whether a connector file's table C{[mcp]} describes the server that is to be moved.

    :param there: the table of the existing connector file.
    """
    run = move.entry.package
    if run is None:
        return there == _tables(cli, move)["mcp"]
    package = there.get("package") if isinstance(there, Mapping) else None
    return isinstance(package, Mapping) and (package.get("registry"), package.get("name")) == (run.registry, run.name)


def _move(command: OperatorCommand, moves: Sequence[_ServerMove], *, sure: bool) -> None:
    """Write the connectors, ask the person to trust them, and store the secrets in the vault.

    :raises CommandError: if a package cannot be installed, or the person does not trust the files.
    """
    import tomlkit

    cli, paths = command.cli, list[Path]()
    prepare(cli.home)
    # first, so that nothing is moved if an installation fails
    installed = {each.connector: _install(cli, each) for each in moves}
    key = ensure_open_vault(cli) if command.passphrase_fd is None else None
    for each in moves:
        tables = _tables(cli, each, installed[each.connector])
        paths.append(add_ready(cli.home, CONNECTORS, each.file_name, tomlkit.dumps(tables)))
        if "directory" in tables["mcp"]:
            Path(str(tables["mcp"]["directory"])).mkdir(mode=0o700, parents=True, exist_ok=True)

    servers = [find_server(cli, move.connector) for move in moves]
    listings = {} if sure else {server.name: add_listing(cli, server) for server in servers}
    paths += filter(None, listings.values())

    async def work(links: Links) -> None:
        async with operator(cli, links, command.passphrase_fd, key) as client:
            await trust(cli, client, TrustRequest("connector", paths=tuple(paths), sure=sure))
            await _bind(client, moves)
            for server in servers:
                if listings.get(server.name) is not None:
                    await choose_tools(cli, links, client, server)

    cli.drive(work)
    for server in servers:
        if listings.get(server.name) is None:
            note("To use {name}, choose its tools: aileron connector import {name}", name=server.name)


async def _bind(client: Operator, moves: Sequence[_ServerMove]) -> None:
    """Store the secrets in the vault, except for connectors that already have a credential.

    Print what is bound.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    bound = {each["connector"] for each in (await client.get("bindings"))["items"]}
    for each in moves:
        for secret in each.entry.secrets:
            if each.connector in bound:
                note("{name} already has a credential, which was kept.", name=each.connector)
                continue
            body = {"connector": each.connector, "service": service_of(each.connector), "secret": secret.value}
            made = await client.post("bindings", "setup", body=body)
            say("{name} is bound to {connector}.", name=made["name"], connector=each.connector)


def _install(cli: CliContext, move: _ServerMove) -> InstalledServer | None:
    """Install the package of a server. If there is no package, or the connector exists already, return None.

    :raises CommandError: if the package cannot be installed, or a variable loads other code. Nothing was moved.
    """
    from aileron.connectors import LOADING_VARIABLES

    from .server_packages import PackageInstaller

    run = move.entry.package
    if run is None or (cli.home.connectors / move.file_name).exists():
        return None
    for name in sorted(LOADING_VARIABLES & move.entry.environment.keys()):
        raise CommandError(
            f"{run.name} was not installed: its variable {name} loads code that is not part of it. Nothing was moved.",
            "Remove the variable from the agent's settings, or leave this server out.",
        )
    return PackageInstaller(cli.environ, Path(_data(cli), "aileron-packages")).install(run, service_of(move.connector))


def _tables(
    cli: CliContext, move: _ServerMove, installed: InstalledServer | None = None
) -> Mapping[str, Mapping[str, JSON]]:
    """Return the tables of a connector's file, by name.

    :param installed: the installed package of the server, or None to write the command of the agent's settings.
    """
    entry = move.entry
    head: dict[str, JSON] = {"name": move.connector, "version": "1.0.0", "kind": "mcp"}
    server: dict[str, JSON] = {"url": entry.shown}
    if entry.command:
        server = {"command": list(entry.command), "directory": _directory(cli, move)}
        environment = dict(entry.environment)
        if installed is not None:
            server["command"] = list(installed.command)
            environment |= _UNCHANGED if installed.package["registry"] == "pypi" else {}
        server |= {"environment": environment} if environment else {}
        server |= {"inherit": ["PATH", "HOME"], "network": True}
        server |= {} if installed is None else {"package": dict(installed.package)}
    elif may_be_private(read_origin(entry.shown).host):
        head["private_network"] = True
    tables: dict[str, Mapping[str, JSON]] = {"connector": head, "mcp": server}
    for secret in entry.secrets:
        more: dict[str, JSON] = {"format": secret.form} if secret.place == "header" else {}
        if secret.place == "environment":
            more["readable_by"] = _READERS
        tables["credential"] = {"kind": ApiKey.name, _KEYS[secret.place]: secret.name, **more}
    return tables


def _directory(cli: CliContext, move: _ServerMove) -> str:
    """Return the only directory that a program can write.

    This is the directory that the agent's settings name, the current directory for a project's settings that name none,
    or else a directory of the server's own in the user's data.
    """
    if move.entry.directory or move.file.source.project:
        return os.path.realpath(move.entry.directory)
    return os.path.join(_data(cli), "aileron-servers", service_of(move.connector))


def _data(cli: CliContext) -> str:
    """Return the directory for data of the user's programs (C{XDG_DATA_HOME})."""
    return os.path.realpath(cli.environ.get("XDG_DATA_HOME") or f"{cli.environ.get('HOME', '')}/.local/share")


def _remove_entries(cli: CliContext, file: ServerSettings, entries: Sequence[ServerEntry], *, write: bool) -> None:
    """Remove servers from an agent's settings if C{write}, with a backup. Otherwise print what to remove.

    :raises CommandError: if another program has changed the file meanwhile.
    """
    path, before = file.path, file.data.decode("utf-8")
    after = before
    for each in entries:
        try:
            after = file.source.syntax.remove(after, each.keys)
        except ValueError as error:
            note("Remove {name} from {path} yourself: {error}.", name=".".join(each.keys), path=path, error=error)
    if after == before:
        return
    if not write:
        heading("Remove this from {path}, or run the command again with --write", path=path)
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "now", "then", lineterm="", n=0)
        secrets = {
            part for each in file.entries for one in each.secrets for part in (one.value, *one.value.splitlines())
        }
        block(Redactor.of(*(secrets - {""})).text("\n".join(lines)))
    elif read_private(path, len(file.data) + 1) != file.data:
        raise CommandError(
            f"{path} was changed by another program meanwhile, and was left as it is.", "Run the same command again."
        )
    else:
        backup = path.with_name(f"{path.name}.before-aileron-{int(cli.wall())}")
        atomic_write(backup, file.data, replace=False)
        atomic_write(path, after.encode(), stat.S_IMODE(path.stat().st_mode))
        say("{path} was changed. Backup, which still has the secrets: {backup}", path=path, backup=backup)
