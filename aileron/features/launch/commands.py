"""C{aileron launch}: runs an agent in its own session, or shows what a launch would run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import click
from attrs import asdict, frozen

from aileron.base.json import JSON
from aileron.cli.context import CliContext, Links, pass_cli
from aileron.cli.errors import CommandError
from aileron.cli.output import block, heading, note, say, say_json, values
from aileron.home.discovery import Discovery, live_discovery

from . import completion
from .access import SandboxAccess, access_options

if TYPE_CHECKING:
    from aileron.features.own_tools.declared import DeclaredTools
    from aileron.features.sandbox.layout import SandboxLayout

    from ._launch import Enclose, Restriction
    from ._preview import LaunchPreview
    from ._services import SessionServices
    from .agent import Agent
    from .registration import Invocation

MOST_WAIT_SECONDS = 3585


@frozen
class _Wishes:
    """Two options of C{aileron launch}, each of which is on, off, or None for its default.

    :ivar prompts: see L{Launcher.launch}.
    :ivar wake: see L{Launcher.launch}.
    """

    prompts: bool | None
    wake: bool | None


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--in-band",
    is_flag=True,
    help="Run any program that cannot use MCP: actions are added to its requests to OpenAI and Anthropic.",
)
@click.option("--lean", is_flag=True, help="List only a few actions as tools; the agent searches for the others.")
@click.option("--no-bell", is_flag=True, help="Do not announce pending approvals in this terminal.")
@click.option("--no-gateway", is_flag=True, help="Do not route the agent's LLM traffic through the gateway.")
@click.option(
    "--prompts/--no-prompts",
    default=None,
    help="List the agent's own permission prompts in the inbox, or do not. By default if you sit at the agent, and its "
    "own dialog stays open too.",
)
@click.option(
    "--wake/--no-wake",
    default=None,
    help="Resume the agent after it has ended, when an action is decided that it left pending; or do not even tell it "
    "while it is idle.",
)
@click.option("--print", "only_print", is_flag=True, help="Show what would run, without starting anything.")
@click.option("--json", "as_json", is_flag=True, help="With --print: as JSON, for programs.")
@click.option(
    "--sandbox",
    is_flag=True,
    help="Run the agent without access to Aileron's home, to browsers, and to any network but Aileron.",
)
@access_options
@click.option("--profile", metavar="NAME", help="Let the agent use only the actions of this profile in config.yaml.")
@click.option(
    "--wait",
    type=click.IntRange(0, MOST_WAIT_SECONDS),
    metavar="SECONDS",
    help="How long a call waits for your decision before the agent is told that it is pending.",
)
@click.argument("agent", shell_complete=completion.agents)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@pass_cli
def launch(
    cli: CliContext,
    /,
    agent: str,
    arguments: tuple[str, ...],
    access: SandboxAccess,
    profile: str | None,
    wait: int | None,
    prompts: bool | None,
    wake: bool | None,
    **options: bool,
) -> None:
    """Run an agent in a session of its own.

    ARGUMENTS are passed to the agent, and its exit code is returned. The daemon is started if necessary.
    The agent's own configuration is not changed.
    """
    from aileron.client import LEAN, wait_variables

    from .registration import Invocation

    chosen = _choose(agent, in_band=options["in_band"])
    if options["in_band"] and options["no_gateway"]:
        raise click.UsageError("--in-band needs the gateway: leave out --no-gateway.")
    if options["as_json"] and not options["only_print"]:
        raise click.UsageError("--json requires --print, before the agent's name.")
    wanted = {"sandbox": options["sandbox"], "inband": options["in_band"], **access.features()}
    _refuse_off(cli, **wanted, profiles=profile is not None, prompts=prompts is True, wake=wake is True)
    services = _find_services(cli, access)
    theirs = arguments[1:] if arguments[:1] == ("--",) else arguments
    if options["in_band"] and wait is not None:
        raise click.UsageError("--wait does not apply to --in-band.")
    waits = {} if wait is None else wait_variables(wait)
    environ = {**cli.environ, **(LEAN if options["lean"] else {}), **waits}
    invocation = Invocation(theirs, environ, os.getcwd())
    layout = _layout(cli, chosen, invocation) if options["sandbox"] else None
    restriction, wishes = _read_restriction(cli, profile, invocation), _Wishes(prompts, wake)
    if options["only_print"]:
        _show_plan(cli, chosen, invocation, access, restriction, wishes, services, **options)
    else:
        code = cli.drive(
            lambda links: _launch(
                cli,
                links,
                chosen,
                invocation,
                layout,
                access,
                restriction,
                wishes,
                **options,
            )
        )
        click.get_current_context().exit(code)


def _find_services(cli: CliContext, access: SandboxAccess) -> Sequence[DeclaredTools]:
    """Return the services that the user lets the agent's own tools use.

    :raises CommandError: if no connector declares one, or more than one does.
    """
    if not access.services:
        return ()
    from aileron.features.own_tools.declared import find_declared

    return [find_declared(cli, each) for each in access.services]


def _choose(name: str, *, in_band: bool) -> Agent:
    """Return the agent with a name. In in-band mode, any program is allowed.

    :raises UsageError: if there is no such agent.
    """
    from .agents import find_agents
    from .in_band import in_band_agent

    if in_band:
        return in_band_agent(name)
    agents = find_agents()
    if name not in agents:
        raise click.UsageError(
            f"Unknown agent. Use one of: {', '.join(sorted(agents))}. For any other program, use --in-band."
        )
    return agents[name]


async def _launch(
    cli: CliContext,
    links: Links,
    agent: Agent,
    invocation: Invocation,
    layout: SandboxLayout | None,
    access: SandboxAccess,
    restriction: Restriction,
    wishes: _Wishes,
    **options: bool,
) -> int:
    from ._services import SessionServices
    from .building import find_daemon, make_launcher, say_line

    launcher = make_launcher(cli, links, rings=not options["no_bell"])
    services = SessionServices(access, invocation.environment, partial(find_daemon, cli, links), say_line)
    enclose = None if layout is None else _enclosing(layout, invocation.environment, services, say_line)
    return await launcher.launch(
        agent,
        invocation,
        through_gateway=not options["no_gateway"],
        enclose=enclose,
        restriction=restriction,
        prompts=wishes.prompts,
        wake=wishes.wake,
    )


def _read_restriction(cli: CliContext, profile: str | None, invocation: Invocation) -> Restriction:
    """Return what restricts the session's actions: the option, and C{.aileron.toml} of the project.

    :raises InvalidRequest: if the project's file is invalid.
    """
    from aileron.home.project import find_selection

    from ._launch import Restriction

    if "profiles" in cli.features.off:
        return Restriction(profile)
    found = find_selection(invocation.directory, invocation.environment.get("HOME", "/"))
    return Restriction(profile) if found is None else Restriction(profile, found[1], found[0])


_OPTIONS = {"inband": "in-band", "own_tools": "own-tools", "profiles": "profile"}
"""Options whose names differ from those of their features, by feature."""


def _refuse_off(cli: CliContext, **wanted: bool) -> None:
    """Check that no option of a disabled feature was given.

    :param wanted: True for each feature whose option was given.
    :raises CommandError: if one was given.
    """
    for name in cli.features.off:
        if wanted.get(name):
            cause = cli.features.find_switched_off(name)
            told = f"The option --{_OPTIONS.get(name, name)} is off: config.yaml has the feature {cause} off."
            raise CommandError(told, "Turn it on: change features in config.yaml, then: aileron config trust")


def _enclosing(
    layout: SandboxLayout,
    environ: Mapping[str, str],
    services: SessionServices,
    say: Callable[[str], None],
) -> Enclose:
    """Return the function that opens for a session what its sandboxes may reach.

    :raises NotFound: if no program for sandboxes is installed.
    :raises Forbidden: if the system does not allow sandboxes.
    """
    from twisted.internet import reactor

    from aileron.features.sandbox.project import SandboxProject
    from aileron.features.sandbox.sandbox import find_sandbox

    from ._enclosing import LaunchSandbox

    sandbox, project = find_sandbox(reactor, environ), SandboxProject(layout, environ, say)
    return LaunchSandbox(sandbox, project, services, environ, say).open


def _layout(cli: CliContext, agent: Agent, invocation: Invocation) -> SandboxLayout:
    """Return the files that a sandboxed agent can see.

    :raises InvalidRequest: if the agent must not work in this directory.
    :raises NotFound: if a program is not installed.
    """
    from aileron.features.sandbox.layout import SandboxLayout, installed_programs

    from .plan import find_programs

    agent_path = find_programs(agent, invocation.environment, sys.executable).agent
    layout = SandboxLayout(
        home=invocation.environment.get("HOME", "/"),
        state=str(cli.home.root),
        project=invocation.directory,
        own=agent.own_directories(invocation.environment),
        own_files=agent.own_paths(invocation.environment),
        settings=agent.settings_directories(invocation.environment),
        programs=(
            *installed_programs(),
            *(os.path.dirname(each) for each in (agent_path, os.path.realpath(agent_path))),
        ),
    )
    layout.arguments()  # raises InvalidRequest if the layout would expose protected directories
    return layout


def _show_plan(
    cli: CliContext,
    agent: Agent,
    invocation: Invocation,
    access: SandboxAccess,
    restriction: Restriction,
    wishes: _Wishes,
    services: Sequence[DeclaredTools],
    **options: bool,
) -> None:
    """Print the preview of a launch.

    :raises Forbidden: if the vault's passphrase is in the environment.
    :raises NotFound: if a program is not installed.
    :raises InvalidRequest: if the user's own settings cannot be extended.
    """
    from ._preview import preview_launch
    from .building import facts_of

    found, sandbox = live_discovery(cli.home), options["sandbox"]
    facts, through_gateway = facts_of(cli, found), not options["no_gateway"]
    described = preview_launch(
        agent,
        invocation,
        facts,
        sys.executable,
        through_gateway=through_gateway,
        sandboxed=sandbox,
        prompts=wishes.prompts,
        wake=wishes.wake,
    )
    tools = _preview_tools(cli, agent, invocation, restriction, found)
    if options["as_json"]:
        about: dict[str, JSON] = {
            "agent": agent.name,
            "tools": tools,
            "daemon": found is not None,
            "sandbox": sandbox,
            "egress": list(access.egress),
            "own_tools": [_describe_service(each) for each in services],
        }
        say_json({**about, **asdict(described)})
    else:
        _show(agent.name, described, access.egress, sandbox=sandbox)
        _show_services(services)
        _show_tools(tools, restriction)
    if found is None:
        note("The daemon is not running; a launch would start it. The address shown is its last known one.")


def _preview_tools(
    cli: CliContext, agent: Agent, invocation: Invocation, restriction: Restriction, found: Discovery | None
) -> Mapping[str, JSON] | None:
    """Return the profile and actions that the session would have, or None if no daemon runs or profiles are off.

    :return: C{{profile, actions, hidden}}.
    """
    if found is None or "profiles" in cli.features.off:
        return None
    claims: dict[str, JSON] = {"agent": agent.claim or agent.name, "working_dir": invocation.directory}
    body = {**claims, **restriction.claims()}

    async def ask(links: Links) -> Mapping[str, JSON]:
        return await links.daemon(found.url, found.launch_key).post("profiles", "preview", body=body)

    return cli.drive(ask)


def _show_tools(tools: Mapping[str, JSON] | None, restriction: Restriction) -> None:
    heading("Actions that the agent may use")
    if restriction.path:
        say("  restricted by {path}", path=restriction.path)
    if tools is None:
        say("  known once the daemon runs")
        return
    names = ", ".join(cast("list[str]", tools["actions"])) or "none"
    values({"profile": str(tools["profile"]) or "none", "actions": names, "hidden": str(tools["hidden"])}, "  ")


def _describe_service(found: DeclaredTools) -> Mapping[str, JSON]:
    about: Mapping[str, JSON] = {"connector": found.about.name, "hosts": list(found.tools.hosts)}
    return {"service": found.tools.service, **about, "variables": dict(found.tools.variables)}


def _show_services(services: Sequence[DeclaredTools]) -> None:
    """Print the services that the agent's own tools could use, if there are any."""
    if services:
        heading("Own tools")
    for each in services:
        placeholders = ", ".join(f"{name}={value}" for name, value in sorted(each.tools.variables.items()))
        say("  {service}", service=each.tools.service)
        values({"hosts": ", ".join(each.tools.hosts), "placeholders": placeholders}, "    ")


def _show(agent: str, described: LaunchPreview, egress: tuple[str, ...], *, sandbox: bool) -> None:
    heading("Command for {agent}", agent=agent)
    for word in described.argv:
        block(word, "  ")
    reach = ", ".join(egress) or "none"
    values({"working directory": described.directory, "sandbox": "yes" if sandbox else "no"}, "  ")
    if sandbox:
        values({"hosts beside Aileron": reach}, "  ")
    heading("Variables removed from the environment")
    say("  {names}", names=", ".join(described.removed) or "none")
    heading("Variables added to the environment")
    _texts(described.added)
    heading("Temporary files, deleted when the agent ends")
    _texts(described.files)
    heading("Gateway")
    if described.gateway is None:
        say("  not used")
    else:
        values({"address": described.gateway["url"], **described.gateway["upstreams"]}, "  ")
    heading("Messages")
    for line in described.notes or ("none",):
        say("  {line}", line=line)


def _texts(texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        say("  {name}", name=name)
        block(text, "    ")
    if not texts:
        say("  none")
