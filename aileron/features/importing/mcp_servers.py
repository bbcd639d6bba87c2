"""MCP servers as connectors: writes their first files, and compares their tools with the reviewed ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from aileron.base.addresses import may_be_private, read_url
from aileron.base.json import JSON
from aileron.base.toml import read_toml
from aileron.cli.actions.copying import Sort, note_faults, write_files
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.output import heading, note, progress, say
from aileron.cli.session import as_session
from aileron.home.private_files import atomic_write, read_private
from aileron.model.errors import Forbidden, NotFound

if TYPE_CHECKING:
    from aileron.client import Daemon, DaemonAnswer

    from .tools import ServerTools

LIST_SECONDS = 120
_MOST_BYTES = 4 * 1024 * 1024
_CONNECTOR = """\
[connector]
name = "{name}"
version = "1.0.0"
kind = "mcp"
{private}
[mcp]
url = {url}

# TODO(import): If the server needs a credential, choose one of these tables:
#
# [credential]
# kind = "oauth2"
# discover = true
#
# [credential]
# kind = "api_key"
# header = "Authorization"
# format = "Bearer {{key}}"
"""
_LISTING = """\
+++
name = "{action}"
version = "1.0.0"

[[requires.connectors]]
name = "{name}"
version = "{version}"
capabilities = ["list_tools"]

[[execute]]
id = "list_tools"
connector = "{name}"
op = "list_tools"

[approval]
required = {required}
+++
# List the tools of {name}

Returns the tools that this MCP server offers now, with what each does and its arguments. It calls none of them.
"""


@frozen
class ServerConnector:
    """The file of a connector to an MCP server, in the home.

    :ivar values: the file's parsed contents.
    """

    path: Path
    text: str
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The connector's name."""
        return str(self.values["connector"]["name"])

    @property
    def short(self) -> str:
        """The last part of the connector's name."""
        return self.name.rpartition("/")[2]

    @property
    def listing(self) -> str:
        """The name of the action that lists the server's tools."""
        return _listing_of(self.short)

    @property
    def reviewed(self) -> Path:
        """The file of reviewed descriptions. It is not trusted: only descriptions that match a pin are used."""
        return self.path.with_suffix(".tools.json")


def _listing_of(short: str) -> str:
    return f"{short}-list-tools"


def begin_server(url: str, name: str | None, output: Path, connectors: Sort, *, force: bool) -> None:
    """Write a connector file without operations and the action that lists the server's tools. Print the next commands.

    :param name: the connector's name, or None to derive it from the host.
    :raises CommandError: if the URL is invalid, or a file already exists.
    """
    from .readers import connector_name

    try:
        host = read_url(url).origin.host
    except ValueError as error:
        raise CommandError(f"The server's URL {error}; nothing was written.") from None
    name = name or connector_name(host)
    short = name.rpartition("/")[2]
    private = "private_network = true\n" if url.startswith("http://") or may_be_private(host) else ""
    files = {
        output / f"{short}{connectors.suffix}": _CONNECTOR.format(name=name, url=json.dumps(url), private=private),
        output / f"{_listing_of(short)}.md": _listing(name, "1.0.0", required=False),
    }
    write_files(files, replaced=files if force else ())
    for path in files:
        say("Written: {path}", path=path)
    connector, listing = files
    note_faults(connectors.faults(connector))
    heading("Complete the connector file, then run")
    for command in (
        f"aileron connector add {connector}",
        f"aileron action add {listing}",
        f"aileron credential setup {name}    (if it needs a credential)",
        f"aileron connector import {name}",
    ):
        say("  {command}", command=command)


def listing_action(server: ServerConnector) -> str:
    """Return the text of an action file whose action lists a server's tools, and needs no approval."""
    return _listing(server.name, str(server.values["connector"].get("version")), required=False)


def _listing(name: str, version: str, *, required: bool) -> str:
    action = _listing_of(name.rpartition("/")[2])
    return _LISTING.format(action=action, name=name, version=version, required=json.dumps(required))


def needs_approval(cli: CliContext, server: ServerConnector) -> bool:
    """Return whether listing a server's tools needs approval. It never does unless the server is a local program.

    It does if the program gets a credential and the file declares neither C{readable_by} nor C{api}, or if the program
    should run in a sandbox and this machine supports none.
    """
    program, credential = server.values["mcp"], server.values.get("credential")
    if "command" not in program:
        return False
    if credential is not None and "readable_by" not in credential and "api" not in program:
        return True
    if program.get("sandbox") == "none":
        return False
    try:
        return not cli.features.find_sandboxes(cli.reactor(), cli.environ)
    except (NotFound, Forbidden):
        return True


def find_server(cli: CliContext, name: str) -> ServerConnector:
    """Find the connector file of an MCP server in the home.

    :raises CommandError: if there is no connector of kind mcp with that name.
    """
    for path in sorted(cli.home.connectors.glob("*.toml")):
        data = read_private(path, _MOST_BYTES)
        try:
            text = (data or b"").decode("utf-8")
            found = ServerConnector(path, text, read_toml(text).values)
            if found.name == name and found.values["connector"].get("kind") == "mcp":
                return found
        except (ValueError, KeyError, TypeError):
            continue  # another command reports files with errors
    raise CommandError(
        f"Your home has no connector {name} of kind mcp. No server was contacted.",
        "Add its file with aileron connector add FILE, or begin one: aileron connector import https://… --mcp",
    )


def read_tools(cli: CliContext, server: ServerConnector, reads: Sequence[str]) -> ServerTools | None:
    """Run the action that lists a server's tools; return the tools, or None if the action has not been added yet.

    :param reads: the tools that the user declares read-only.
    :raises CommandError: if the server did not list its tools.
    :raises DaemonFault: if the run failed.
    """
    body = _ask_for_tools(cli, server)
    return None if body is None else parse_tools(server, body, reads)


def parse_tools(server: ServerConnector, body: Mapping[str, JSON], reads: Sequence[str] = ()) -> ServerTools:
    """Return the tools of a server from the daemon's answer to the action that lists them.

    :param reads: the tools that the user declares read-only.
    :raises CommandError: if the answer has no tools, or not all tools of C{reads}.
    """
    from .tools import ServerTools

    result: Any = body.get("result") or {}
    found: Mapping[str, Any] = result.get("output", {})
    tools = found.get("tools")
    if not isinstance(tools, list):
        raise CommandError(
            f"{server.name} has not listed its tools yet; nothing was written.",
            f"See the run: aileron run show {body.get('run_id')}",
        )
    names = {each.get("name") for each in tools}
    if unknown := [each for each in reads if each not in names]:
        raise CommandError(
            f"{server.name} has no tool {unknown[0]}; nothing was written.", "List its tools without --read."
        )
    if "more" in found:
        note("{name} has too many tools. Only the first {most} were read.", name=server.name, most=len(tools))
    operations = server.values.get("operations", {})
    pinned = {name: table for name, table in operations.items() if isinstance(table, Mapping)}
    return ServerTools(server.name, tuple(tools), pinned, frozenset(reads), is_whole="more" not in found)


def _ask_for_tools(cli: CliContext, server: ServerConnector) -> Mapping[str, JSON] | None:
    """Run the action that lists a server's tools; return its answer, or None if the action has not been added yet.

    :raises DaemonFault: if the run failed.
    :raises CommandError: if no daemon runs.
    """
    from aileron.client import DaemonFault

    async def ask(daemon: Daemon) -> DaemonAnswer:
        return await daemon.run(server.listing, {}, wait_seconds=LIST_SECONDS)

    if needs_approval(cli, server):
        words = (
            "{name} is started only after an approval. If this command waits, approve {action} within {most} minutes."
        )
        note(words, name=server.name, action=server.listing, most=LIST_SECONDS // 60)
    try:
        with progress(f"Asking {server.name} for its tools"):
            return as_session(cli, ask).body
    except DaemonFault as fault:
        if fault.fault.kind != "not_found":
            raise
    return None


def write_listing(cli: CliContext, server: ServerConnector, path: Path, *, force: bool) -> bool:
    """Write the action that lists a server's tools, unless the file exists. Return whether it was written.

    :param force: replace an existing file.
    """
    if path.exists() and not force:
        return False
    version, required = str(server.values["connector"].get("version")), needs_approval(cli, server)
    write_files({path: _listing(server.name, version, required=required)}, replaced=(path,) if force else ())
    return True


def print_changes(server: ServerConnector, tools: ServerTools) -> None:
    """Print how pinned tools differ from their reviewed descriptions."""
    from .tools import CHANGED

    changes = list(tools.changes(_reviewed(server)))
    for each in changes:
        if each.state == CHANGED:
            heading(f"Changed since it was reviewed: {each.operation}")
        else:
            heading(f"No longer offered by the server: {each.operation}")
        for line in each.lines:
            say("  {line}", line=line)
    if changes:
        note("These tools are not called until you review them. To accept one as it is now, add --op NAME --force.")


def keep_reviewed(server: ServerConnector, tools: ServerTools) -> None:
    """Store the current descriptions and the reviewed ones that are still pinned, for the next comparison.

    If they are too long, store nothing.
    """
    pins = {str(table.get("pin")) for table in tools.pinned.values()}
    kept = {pin: each for pin, each in _reviewed(server).items() if pin in pins}
    kept |= {str(each["pin"]): {key: value for key, value in each.items() if key != "pin"} for each in tools.tools}
    data = json.dumps(kept, ensure_ascii=False).encode("utf-8", "replace")
    if len(data) <= _MOST_BYTES:
        atomic_write(server.reviewed, data, replace=server.reviewed.exists())


def _reviewed(server: ServerConnector) -> Mapping[str, Mapping[str, JSON]]:
    try:
        found = json.loads(read_private(server.reviewed, _MOST_BYTES) or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
