"""Completes names in a shell: fast, silent, without a passphrase and without an audit event.

The names come from the home's files, which every program of the user can read, and from the daemon's status. IDs are
completed by L{aileron.cli.ids}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

import click
from click.shell_completion import get_completion_class

from aileron.home.private_files import read_private
from aileron.model.errors import STATUS, AileronError
from aileron.model.runs import RunState

from .context import CliContext
from .errors import CommandError

Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]

_MAX_BYTES = 1024 * 1024
_MOST = 500
_NAME = re.compile(rb"""^name *= *["']([^"'\n]+)["'] *$""", re.MULTILINE)
# No character with a meaning for the shell.
_plain = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}").fullmatch


_VARIABLE = "_AILERON_COMPLETE"


def completer(find: Callable[[CliContext], Iterable[str]]) -> Completer:
    """Return a completer of the names that C{find} returns. If C{find} fails, nothing is completed."""

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        cli = context.find_object(CliContext)
        found: list[str] = []
        if cli is not None:
            with suppress(AileronError, CommandError, OSError):
                found.extend(find(cli))
        return sorted({name for name in found if name.startswith(incomplete) and _plain(name)})

    return complete


def _actions(cli: CliContext) -> Iterator[str]:
    return _read_names(cli.home.actions.glob("*.md"))


def _connectors(cli: CliContext) -> Iterator[str]:
    return _read_names(cli.home.connectors.glob("*.toml"))


def _all_connectors(cli: CliContext) -> Iterator[str]:
    names = (each.name.partition(".") for each in files("aileron").joinpath("connectors", "builtin").iterdir())
    yield from (f"builtin://{name}" for name, _, ending in names if ending == "toml")
    yield from _connectors(cli)


def _bindable(cli: CliContext) -> Iterator[str]:
    yield from _all_connectors(cli)
    found = cli.running()
    status = cli.probe(found.url, "/v1/status", found.launch_key)
    yield from cli.features.list_targets(status)


def _services(_cli: CliContext) -> Iterable[str]:
    return [each.name for each in files("aileron").joinpath("connectors", "builtin", "actions").iterdir()]


def name_in(path: Path) -> str | None:
    """Return the value of C{name} in an action or connector file.

    Return None if the file has no name, or is not a regular file.
    """
    with suppress(AileronError):
        found = _NAME.search(read_private(path, _MAX_BYTES) or b"")
        return found and found[1].decode("utf-8", "replace")
    return None


def _read_names(paths: Iterable[Path]) -> Iterator[str]:
    return filter(None, map(name_in, sorted(paths)[:_MOST]))


actions = completer(_actions)
connectors = completer(_connectors)
all_connectors = completer(_all_connectors)
bindable = completer(_bindable)
services = completer(_services)
states = completer(lambda _: (state.value for state in RunState))
failures = completer(lambda _: STATUS)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and names in your shell.

    Add to the startup file of bash: eval "$(aileron completion bash)", or the same with zsh. For fish:
    aileron completion fish | source
    """
    scripts = get_completion_class(shell)
    if scripts is None:
        raise click.UsageError(f"Completion is not available for {shell}.")
    click.echo(scripts(context.find_root().command, {}, "aileron", _VARIABLE).source())
