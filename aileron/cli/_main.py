"""The root of the command line: it imports a command when that is asked for, and turns errors into sentences."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from aileron import __version__

from ._context import CliContext, pass_cli, real_context
from ._errors import FAILED, report
from ._output import set_width

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_COMMANDS = {
    "demo": ".daemon.launch:demo",
    "setup": ".actions.setup:setup",
    "connect": ".actions.connect:connect",
    "import": ".actions.moving:import_servers",
    "launch": ".daemon.launch:launch",
    "open": ".vault.open:open_pages",
    "watch": ".approvals.watch:watch",
    "approve": ".approvals.approval:approve",
    "deny": ".approvals.approval:deny",
    "approval": ".approvals.approval:approval",
    "grant": ".approvals.grant:grant",
    "pause": ".approvals.limits:pause",
    "resume": ".approvals.limits:resume",
    "cap": ".approvals.limits:cap",
    "egress": ".approvals.egress:egress",
    "status": ".daemon.status:status",
    "gateway": ".daemon.status:gateway",
    "action": ".actions.action:action",
    "runs": ".records.runs:runs",
    "audit": ".records.audit:audit",
    "vault": ".vault.command:vault",
    "binding": ".vault.binding:binding",
    "notification": ".vault.notification:notification",
    "connector": ".actions.connector:connector",
    "sync": ".actions.packages:sync",
    "prove": ".actions.prove:prove_connectors",
    "config": ".actions.trusting:config",
    "sessions": ".records.sessions:sessions",
    "mcp": "._clients:mcp",
    "daemon": ".daemon.command:daemon",
    "logs": ".daemon.logs:logs",
    "backup": ".daemon.backup:backup",
    "upgrade": ".daemon.upgrade:upgrade",
    "doctor": ".doctor.command:doctor",
    "operator": ".vault.operator:operator",
    "completion": "._completion:completion",
    "version": ".daemon.status:version",
}

_NEARLY, _MOST_MEANT = 0.9, 3


class LazyGroup(click.Group):
    """A group that knows its commands by name.

    :param commands_at: for each command the module that has it, and what it is called there, as C{module:name}.
    """

    def __init__(self, *args: Any, commands_at: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names, in the order in which they were given."""
        return list(self._at)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names and options; a shell that waits for them is not kept by the imports of all."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name) for name in self._at if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the ones that were probably meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            meant = () if args[0].startswith("-") else self._find_meant(ctx, args[0])
            if not meant:
                raise
            told = " or ".join(f"'{each}'" for each in meant)
            raise click.UsageError(f"No such command '{args[0]}'. Did you mean {told}?", ctx) from None

    def _find_meant(self, ctx: click.Context, name: str) -> Sequence[str]:
        """Find what is called so, or nearly so, within a group, as C{approve} is; else the command nearest to it."""
        within: dict[str, list[str]] = {}
        for group in self._at:
            command = self.get_command(ctx, group)
            for each in command.list_commands(ctx) if isinstance(command, click.Group) else ():
                within.setdefault(each, []).append(f"{group} {each}")
        near = get_close_matches(name, within.keys() - self._at.keys(), n=1, cutoff=_NEARLY)
        found = within[near[0]] if near else get_close_matches(name, self._at, n=1)
        return found if len(found) <= _MOST_MEANT else ()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; L{None}: there is no such name."""
        place = self._at.get(cmd_name)
        if place is None:
            return None
        module, name = place.split(":")
        command = getattr(import_module(module, __package__), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{place} is no command")
        return command


@click.group(
    cls=LazyGroup,
    commands_at=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(__version__, message="aileron %(version)s")
@click.option("--width", type=click.IntRange(0, 1000), default=0, hidden=True, expose_value=False, callback=set_width)
@pass_cli
@click.pass_context
def aileron(ctx: click.Context, cli: CliContext) -> None:
    """Let coding agents act on real services: without keys, and only as you approve.

    Start with `aileron demo`, or with `aileron setup`. Without a command, `aileron` shows the
    current state and what to do next.
    """
    if ctx.invoked_subcommand is None:
        from .daemon.status import overview

        overview(cli)


def run(arguments: Sequence[str], cli: CliContext) -> int:
    """Run one command; its exit code: 0, 1 for anything wrong, 2 usage, 75 pending, 130 interrupted.

    :param arguments: without the program's name.
    """
    try:
        code = aileron.main(args=list(arguments), prog_name="aileron", standalone_mode=False, obj=cli)
    except BrokenPipeError:
        _let_go_of_output()
        return FAILED
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the command line's rim: never a traceback
        return report(error, _listing(arguments))
    return code if isinstance(code, int) else 0


def main() -> None:
    """Run the C{aileron} command."""
    sys.exit(run(sys.argv[1:], real_context()))


def _listing(arguments: Sequence[str]) -> str:
    """Return the command that lists what the group of this command is about; empty: there is none."""
    name = next((each for each in arguments if each in _COMMANDS), "")
    group = aileron.get_command(click.Context(aileron), name)
    return f"aileron {name} list" if isinstance(group, click.Group) and "list" in group.commands else ""


def _let_go_of_output() -> None:
    # The reader of our output is gone: what is still buffered must not fail once more at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
