"""Lists the tools of an MCP server that was just moved, and asks which ones to add and trust, within the same login."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from aileron.base.json import JSON
from aileron.cli.actions.connector import CONNECTORS
from aileron.cli.actions.copying import add_ready
from aileron.cli.actions.files import ACTIONS
from aileron.cli.actions.trusting import TrustRequest, ask, tell, trust
from aileron.cli.context import CliContext, Links
from aileron.cli.errors import CommandError, report
from aileron.cli.output import heading, note, progress, say, table
from aileron.cli.session import session
from aileron.features.importing.commands import check_written
from aileron.features.importing.mcp_servers import (
    LIST_SECONDS,
    ServerConnector,
    keep_reviewed,
    listing_action,
    needs_approval,
    parse_tools,
)
from aileron.home.private_files import atomic_write

if TYPE_CHECKING:
    from aileron.client import Operator
    from aileron.features.importing.description import OperationSummary
    from aileron.features.importing.tools import ServerTools


def add_listing(cli: CliContext, server: ServerConnector) -> Path | None:
    """Write the action that lists a server's tools, and return its path, or None if the call would need an approval.

    :raises CommandError: if the action's file has errors.
    """
    if needs_approval(cli, server):
        return None
    return add_ready(cli.home, ACTIONS, f"{server.listing}.md", listing_action(server))


async def choose_tools(cli: CliContext, links: Links, operator: Operator, server: ServerConnector) -> None:
    """List the tools of a server, ask which ones agents may use, and ask the person to trust their files.

    If the server does not list its tools, or the person declines, the server gets no tools, and a note says so.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    try:
        tools = parse_tools(server, await _ask_server(cli, links, server))
        chosen = _choose(cli, tools)
        if chosen:
            await _add(cli, operator, server, tools, chosen)
            return
    except CommandError as error:
        report(error)
    note("To choose tools later: aileron connector import {name}", name=server.name)


async def _ask_server(cli: CliContext, links: Links, server: ServerConnector) -> Mapping[str, JSON]:
    from aileron.client import DaemonFault

    with progress(f"Asking {server.name} for its tools"):
        async with session(cli, links) as daemon:
            try:
                return (await daemon.run(server.listing, {}, wait_seconds=LIST_SECONDS)).body
            except DaemonFault as fault:
                raise CommandError(
                    f"{server.name} did not list its tools; nothing was written. {fault.fault.message}"
                ) from None


def _choose(cli: CliContext, tools: ServerTools) -> Sequence[OperationSummary]:
    operations = tools.list_operations()
    rows = [(number, each.path, each.words) for number, each in enumerate(operations, 1)]
    heading("Tools of {name}", name=tools.title)
    table(("NO", "TOOL", "WHAT IT SAYS"), rows)

    def read(text: str) -> Sequence[OperationSummary]:
        numbered = {str(number): each for number, each in enumerate(operations, 1)}
        numbers = {"all": [*numbered], "none": []}.get(text, text.replace(" ", "").split(","))
        if not {*numbers} <= {*numbered}:
            raise ValueError("must be numbers of the list, separated by commas, or all, or none")
        return [each for number, each in numbered.items() if number in numbers]

    return ask(cli, "Tools that agents may use", read, "none") if operations else ()


def _confirm_reads(cli: CliContext, tools: ServerTools, chosen: Sequence[OperationSummary]) -> frozenset[str]:
    """Return the tools that run without an approval: those that claim to be read-only, if the person agrees."""
    keys = {each.key for each in chosen}
    claimed = [str(each["name"]) for each in tools.tools if each["name"] in keys and _claims_to_read(each)]
    if not claimed:
        return frozenset()
    heading("The server says of these tools that they only read")
    for name in claimed:
        say("  {name}", name=name)
    agreed = cli.ask("Run them without your approval? [y/N] ").strip().lower() in {"y", "yes"}
    return frozenset(claimed if agreed else ())


def _claims_to_read(tool: Mapping[str, JSON]) -> bool:
    hints = tool.get("annotations")
    return isinstance(hints, Mapping) and hints.get("readOnlyHint") is True


async def _add(
    cli: CliContext,
    operator: Operator,
    server: ServerConnector,
    tools: ServerTools,
    chosen: Sequence[OperationSummary],
) -> None:
    """Write the operations into the connector file and an action for each, and ask the person to trust these files.

    :raises CommandError: if none of the operations can be called, or the person declined.
    """
    from aileron.features.importing.files import write_connector

    reviewed = evolve(tools, reads=_confirm_reads(cli, tools, chosen))
    written = write_connector(reviewed.describe(server.name, tuple(chosen)), existing=server.text)
    written = evolve(written, connector=evolve(written.connector, name=server.path.name))
    for name, reason in written.refused.items():
        note("Not added: {name}: {reason}", name=name, reason=reason)
    if not written.actions:
        raise CommandError("None of these tools can be called. Nothing was written.")
    check_written(written, CONNECTORS)
    fresh = [path for each in written.actions if not (path := cli.home.actions / each.name).exists()]
    atomic_write(server.path, written.connector.text.encode())
    paths = [add_ready(cli.home, ACTIONS, each.name, each.text) for each in written.actions]
    for mark in written.marks:
        note("  {mark}", mark=mark)
    try:
        tell(await trust(cli, operator, TrustRequest("action", paths=(server.path, *paths))))
    except CommandError:  # an untrusted change of the connector file would disable the server
        atomic_write(server.path, server.text.encode())
        for path in fresh:
            path.unlink(missing_ok=True)
        raise
    keep_reviewed(server, reviewed)
