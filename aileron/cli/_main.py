"""The root of the command line: it imports a command when it is called, and prints errors as sentences."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import takewhile
from typing import TYPE_CHECKING

import click

from aileron import __version__

from ._tree import COMMANDS, FEATURE_COMMANDS, FRONT, OLD_NAMES, OLD_WITHIN, PARTS, hidden_within, hide, within
from .context import CliContext, pass_cli, real_context
from .errors import FAILED, CommandError, report
from .output import set_width

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_TURN_ON = "Turn it on: change features in config.yaml, then: aileron config trust"
_NEARLY, _MOST_MEANT = 0.9, 3
_ALL = "aileron.all"
_ABOUT = {
    **dict.fromkeys(("approve", "deny", "open"), "approval"),
    **dict.fromkeys(("pause", "resume"), "session"),
}
"""The groups that list the objects of other commands."""


class LazyGroup(click.Group):
    """The group of all commands, which imports a command when it is called, and also accepts old names."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order in which the help lists them."""
        return list(COMMANDS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options, and return the arguments that are left.

        C{--all} counts anywhere before a command, even after C{--help}.
        """
        own = takewhile(lambda each: each.startswith("-"), args)
        ctx.meta[_ALL] = "--all" in own
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section of the help: the usual ones, or all."""
        everything = ctx.meta.get(_ALL)
        for title, part in PARTS.items():
            shown = [(name, self.get_command(ctx, name)) for name in part if everything or name in FRONT]
            room = 2 * formatter.width
            with formatter.section(title):
                formatter.write_dl([(name, each.get_short_help_str(room)) for name, each in shown if each is not None])
        if not everything:
            formatter.write_paragraph()
            formatter.write_text("All commands: aileron --help --all")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names and options without importing every command."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command's name as typed, the command, and the arguments that are left for it.

        :raises CommandError: if the command's feature is off.
        :raises click.UsageError: if the name is unknown. The error suggests similar names.
        """
        if not ctx.resilient_parsing:
            refuse_off(ctx.find_object(CliContext), args)
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            meant = () if args[0].startswith("-") else self._find_meant(ctx, args[0])
            if not meant:
                raise
            told = " or ".join(f"'{each}'" for each in meant)
            raise click.UsageError(f"No such command '{args[0]}'. Did you mean {told}?", ctx) from None

    def _find_meant(self, ctx: click.Context, name: str) -> Sequence[str]:
        """Return the commands that the person may have meant by C{name}, or nothing if there are none or too many.

        A command of a group is returned with its group, such as C{approval deny} for C{deny}.
        """
        within: dict[str, list[str]] = {}
        for group in COMMANDS:
            command = self.get_command(ctx, group)
            for each, found in command.commands.items() if isinstance(command, click.Group) else ():
                if not found.hidden:
                    within.setdefault(each, []).append(f"{group} {each}")
        named = {**within, **{each: [each] for each in COMMANDS}}
        near = get_close_matches(name, named, n=1, cutoff=_NEARLY)
        meant = named[near[0]] if near else get_close_matches(name, COMMANDS, n=1)
        return meant if len(meant) <= _MOST_MEANT else ()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command and the commands that features add to its group, or return None if the name is unknown."""
        old = OLD_NAMES.get(cmd_name)
        place = COMMANDS.get(cmd_name) if old is None else old.place
        if place is None:
            return None
        command = _import_command(place)
        if isinstance(command, click.Group):
            _add_of_features(command, command.name or cmd_name)
        return command


def _add_of_features(group: click.Group, name: str) -> None:
    """Add to a group the commands of features that belong to it, under current and earlier names."""
    for within_name, place in within(name).items():
        if within_name not in group.commands:
            group.add_command(_import_command(place), within_name)
    for old, place in hidden_within(name).items():
        if old not in group.commands:
            hide(group, _import_command(place), old)


def _import_command(place: str) -> click.Command:
    module, name = place.split(":")
    command = getattr(import_module(module, __package__), name)
    if not isinstance(command, click.Command):
        raise TypeError(f"{place} is no command")
    return command


def refuse_off(cli: CliContext | None, words: Sequence[str]) -> None:
    """Refuse a command of a feature that is off.

    :param words: the words of the command line, without options before the command.
    :raises CommandError: if the command's feature is off.
    """
    name, *others = words or ("",)
    called = " ".join([*(OLD_NAMES[name].now if name in OLD_NAMES else name).split(), *others][:2])
    called = OLD_WITHIN.get(called, called)
    named = [each for each in (called.partition(" ")[0], called) if each in FEATURE_COMMANDS]
    if cli is None or not named:
        return
    off = cli.features.off_commands()
    for feature in filter(off.__contains__, named):
        told = f"The command aileron {feature} is off: config.yaml has the feature {off[feature]} off."
        raise CommandError(told, _TURN_ON)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(__version__, message="aileron %(version)s")
@click.option("--all", is_flag=True, hidden=True, expose_value=False)
@click.option("--width", type=click.IntRange(0, 1000), default=0, hidden=True, expose_value=False, callback=set_width)
@pass_cli
@click.pass_context
def aileron(ctx: click.Context, cli: CliContext) -> None:
    """Let coding agents act on real services: without keys, and only as you approve.

    Start with `aileron demo`, or with `aileron setup`. Without a command, `aileron` shows the
    current state and what to do next. `aileron --help --all` lists all commands.
    """
    if ctx.invoked_subcommand is None:
        from .daemon.status import overview

        overview(cli)


def run(arguments: Sequence[str], cli: CliContext) -> int:
    """Run one command and return its exit code: 0, 1 for any error, 2 usage, 75 pending, 130 interrupted.

    :param arguments: the command line without the program's name.
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
    """Return the command that lists the objects of this command's group, or an empty string if there is none."""
    name = next((each for each in arguments if each in COMMANDS or each in OLD_NAMES), "")
    group = aileron.get_command(click.Context(aileron), name)
    name = OLD_NAMES[name].now if name in OLD_NAMES else name
    if name in _ABOUT:
        return f"aileron {_ABOUT[name]} list"
    return f"aileron {name} list" if isinstance(group, click.Group) and "list" in group.commands else ""


def _let_go_of_output() -> None:
    # The reader of our output disconnected: buffered output must not fail again at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
