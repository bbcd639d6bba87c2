"""C{aileron cap}, C{pause} and C{resume}: how often something may begin, by your own word, or whether anything may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from aileron.cli import _completion
from aileron.cli._output import heading, note, table
from aileron.cli._session import OperatorCommand, operator_command

_ACTION = click.argument("action", required=False, shell_complete=_completion.actions)
_PER_SESSION = click.option("--per-session", is_flag=True, help="For each session apart.")
_ARGUMENT = click.option("--argument", metavar="NAME", help="For each value of this argument apart.")
_MOST = click.IntRange(1, 1_000_000)
_TITLES, _NOTHING = ("ACTION", "MOST", "WINDOW", "FOR EACH", "SET AT"), "You have set no limits of your own."


@click.group()
def cap() -> None:
    """Limit how often actions may begin, beside what their files say."""


@cap.command("list")
@operator_command
def list_caps(command: OperatorCommand, /) -> None:
    """List your own limits."""
    command.list(lambda operator: operator.caps(), _TITLES, _row, _NOTHING)


@cap.command("set")
@_ACTION
@click.option("--per-hour", type=_MOST, help="Most within an hour.")
@click.option("--per-day", type=_MOST, help="Most within a day.")
@_PER_SESSION
@_ARGUMENT
@operator_command
def set_cap(command: OperatorCommand, /, **limits: Any) -> None:
    """Limit ACTION, or without one all actions together."""
    if limits["per_hour"] is None and limits["per_day"] is None:
        raise click.UsageError("Say how often: --per-hour N, --per-day N, or both.")
    given = _read_given(limits)
    command.list(lambda operator: operator.set_caps(given), _TITLES, _row, _NOTHING)


@cap.command("remove")
@_ACTION
@click.option("--per-hour", "window", flag_value="per_hour", help="The limit within an hour.")
@click.option("--per-day", "window", flag_value="per_day", help="The limit within a day.")
@_PER_SESSION
@_ARGUMENT
@operator_command
def remove_cap(command: OperatorCommand, /, **which: Any) -> None:
    """Remove one of your own limits."""
    if which["window"] is None:
        raise click.UsageError("Say which: --per-hour or --per-day.")
    given = _read_given(which)
    command.list(lambda operator: operator.remove_cap(given), _TITLES, _row, _NOTHING)


def _read_given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was said, as the daemon reads it."""
    if options["argument"] is not None and options["action"] is None:
        raise click.UsageError("An argument is one of an action: name the action.")
    return {name: value for name, value in options.items() if value is not None}


def _row(item: Mapping[str, Any]) -> tuple[object, ...]:
    parts = (f"value of {item['argument']}" if item["argument"] else "", "session" if item["per_session"] else "")
    window = item["window"].replace("per_", "an " if item["window"] == "per_hour" else "a ")
    return (item["action"] or "(all together)", item["most"], window, ", ".join(filter(None, parts)), item["set_at"])


_SESSION = click.option("--session", help="Of this session only.")


@click.command()
@_SESSION
@click.option("--reason", help="Why; agents are told.")
@operator_command
def pause(command: OperatorCommand, /, session: str | None, reason: str | None) -> None:
    """Let nothing more begin: no call is taken, nothing can be approved.

    It stays so across restarts, until you resume it. What has begun is listed,
    and goes on; what is approved and has not begun waits.
    """
    answer = command.ask(lambda operator: operator.pause(session, reason))
    command.say(answer, "Paused since {since}. Nothing more begins.", since=answer["pause"]["since"])
    if command.as_json:
        return
    _list("Under way; this goes on", answer["under_way"])
    note("Go on with: aileron resume{of}", of=f" --session {session}" if session else "")


@click.command()
@_SESSION
@operator_command
def resume(command: OperatorCommand, /, session: str | None) -> None:
    """Take calls again; what was approved before waits until you approve it once more.

    A session that was paused for itself stays so: resume it by --session.
    """
    answer = command.ask(lambda operator: operator.resume(session))
    command.say(answer, "Resumed.")
    if not command.as_json:
        _list("Approved before, and not begun; release each with aileron approval approve", answer["asked_anew"])


def _list(title: str, runs: Sequence[Mapping[str, Any]]) -> None:
    if runs:
        heading(title)
        table(("ID", "ACTION", "ASKED AT"), [(run["id"], run["action"], run["received_at"]) for run in runs])
