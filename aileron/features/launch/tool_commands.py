"""C{aileron own-tools run}: runs one command without a sandbox, with services of own tools for it."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import click

from aileron.cli.context import CliContext, Links, pass_cli
from aileron.features.own_tools import completion

from .access import SandboxAccess, read_hosts, read_services

if TYPE_CHECKING:
    from .registration import Invocation

_SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command("run", context_settings=_SETTINGS)
@click.option(
    "--services",
    metavar="LIST",
    shell_complete=completion.services,
    help="The services that the command may use, such as github. By default those of own_tools.services in "
    "config.yaml.",
)
@click.option(
    "--egress",
    metavar="LIST",
    help="Other hosts that the command may reach by the proxy, by presets or by name, as with aileron launch.",
)
@click.option("--no-bell", is_flag=True, help="Do not announce pending approvals in this terminal.")
@click.argument("command")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@pass_cli
def run(
    cli: CliContext,
    /,
    services: str | None,
    egress: str | None,
    command: str,
    arguments: tuple[str, ...],
    *,
    no_bell: bool,
) -> None:
    """Run one command, without a sandbox, that uses services without a key.

    ARGUMENTS are passed to the command, and its exit code is returned. The command is not confined: it can read your
    files and reach the network as any other.
    """
    from aileron.features.own_tools.declared import find_declared

    from .registration import Invocation

    named = () if services is None else read_services(services, "--services")
    access = SandboxAccess(read_hosts(egress), named, services is None)
    for each in access.services:
        find_declared(cli, each)
    invocation = Invocation(arguments, cli.environ, os.getcwd())
    code = cli.drive(lambda links: _run(cli, links, command, invocation, access, rings=not no_bell))
    click.get_current_context().exit(code)


async def _run(
    cli: CliContext, links: Links, command: str, invocation: Invocation, access: SandboxAccess, *, rings: bool
) -> int:
    from ._services import SessionServices
    from ._tool_command import ToolCommand, command_agent
    from .building import find_daemon, make_launcher, say_line

    launcher = make_launcher(cli, links, rings=rings)
    services = SessionServices(access, invocation.environment, partial(find_daemon, cli, links), say_line)
    tool = ToolCommand(launcher.reactor, services, invocation.environment, say_line)
    return await launcher.launch(
        command_agent(command), invocation, through_gateway=False, enclose=tool.open, prompts=False, wake=False
    )
