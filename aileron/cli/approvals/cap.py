"""C{aileron cap}: how often something may begin, by your own word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from aileron.cli import _completion, _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._output import say, say_json, table
from aileron.cli._session import as_operator

_ACTION = click.argument("action", required=False, shell_complete=_completion.actions)
_PER_SESSION = click.option("--per-session", is_flag=True, help="For each session apart.")
_ARGUMENT = click.option("--argument", metavar="NAME", help="For each value of this argument apart.")
_MOST = click.IntRange(1, 1_000_000)


@click.group()
def cap() -> None:
    """Limit how often actions may begin, beside what their files say."""


@cap.command("list")
@_options.passphrase_fd
@_options.as_json
@pass_cli
def list_caps(cli: CliContext, /, passphrase_fd: int | None, as_json: bool) -> None:
    """List your own limits."""
    _show(as_operator(cli, passphrase_fd, lambda operator: operator.caps()), as_json)


@cap.command("set")
@_ACTION
@click.option("--per-hour", type=_MOST, help="Most within an hour.")
@click.option("--per-day", type=_MOST, help="Most within a day.")
@_PER_SESSION
@_ARGUMENT
@_options.passphrase_fd
@_options.as_json
@pass_cli
def set_cap(cli: CliContext, /, passphrase_fd: int | None, as_json: bool, **limits: Any) -> None:
    """Limit ACTION, or without one all actions together."""
    if limits["per_hour"] is None and limits["per_day"] is None:
        raise click.UsageError("Say how often: --per-hour N, --per-day N, or both.")
    given = _given(limits)
    _show(as_operator(cli, passphrase_fd, lambda operator: operator.set_caps(given)), as_json)


@cap.command("remove")
@_ACTION
@click.option("--per-hour", "window", flag_value="per_hour", help="The limit within an hour.")
@click.option("--per-day", "window", flag_value="per_day", help="The limit within a day.")
@_PER_SESSION
@_ARGUMENT
@_options.passphrase_fd
@_options.as_json
@pass_cli
def remove_cap(cli: CliContext, /, passphrase_fd: int | None, as_json: bool, **which: Any) -> None:
    """Remove one of your own limits."""
    if which["window"] is None:
        raise click.UsageError("Say which: --per-hour or --per-day.")
    given = _given(which)
    _show(as_operator(cli, passphrase_fd, lambda operator: operator.remove_cap(given)), as_json)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was said, as the daemon reads it."""
    if options["argument"] is not None and options["action"] is None:
        raise click.UsageError("An argument is one of an action: name the action.")
    return {name: value for name, value in options.items() if value is not None}


def _show(answer: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        say_json(answer)
    elif answer["items"]:
        table(("ACTION", "MOST", "WINDOW", "FOR EACH", "SET AT"), [_row(item) for item in answer["items"]])
    else:
        say("You have set no limits of your own.")


def _row(item: Mapping[str, Any]) -> tuple[object, ...]:
    parts = (f"value of {item['argument']}" if item["argument"] else "", "session" if item["per_session"] else "")
    window = item["window"].replace("per_", "an " if item["window"] == "per_hour" else "a ")
    return (item["action"] or "(all together)", item["most"], window, ", ".join(filter(None, parts)), item["set_at"])
