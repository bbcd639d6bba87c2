"""C{aileron cap}, C{pause} and C{resume}: limits on how often runs start, and pauses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from aileron.base.json import JSON
from aileron.cli import completion as _completion
from aileron.cli import options as _options
from aileron.cli.errors import CommandError
from aileron.cli.ids import id_option
from aileron.cli.output import Columns, heading, note, table_of, time_at, when
from aileron.cli.session import OperatorCommand, operator_command, reading_command
from aileron.cli.things import LIVE_SESSION

if TYPE_CHECKING:
    from aileron.client import Operator

_ACTION = click.argument("action", required=False, shell_complete=_completion.actions)
_PER_SESSION = click.option("--per-session", is_flag=True, help="Count each session separately.")
_ARGUMENT = click.option("--argument", metavar="NAME", help="Count each value of this argument separately.")
_MOST = click.IntRange(1, 1_000_000)
_NOTHING = "No limits of your own."
_WHICH = ("action", "argument", "per_session", "window")


@click.group()
def cap() -> None:
    """Limit how often actions may run, in addition to the limits in their files."""


@cap.command("list")
@_options.exact_times
@reading_command
def list_caps(command: OperatorCommand, /) -> None:
    """List your own limits."""
    command.list(command.get("caps"), _COLUMNS, _NOTHING)


@cap.command("set")
@_ACTION
@click.option("--per-hour", type=_MOST, help="Limit per hour.")
@click.option("--per-day", type=_MOST, help="Limit per day.")
@_PER_SESSION
@_ARGUMENT
@operator_command
def set_cap(command: OperatorCommand, /, **limits: Any) -> None:
    """Set a limit for ACTION, or without one for all actions together."""
    if limits["per_hour"] is None and limits["per_day"] is None:
        raise click.UsageError("Specify a limit: --per-hour N, --per-day N, or both.")
    command.list(command.post("caps", body=_read_given(limits)), _COLUMNS, _NOTHING)


@cap.command("remove")
@_ACTION
@click.option("--per-hour", "window", flag_value="per_hour", help="The limit per hour.")
@click.option("--per-day", "window", flag_value="per_day", help="The limit per day.")
@_PER_SESSION
@_ARGUMENT
@operator_command
def remove_cap(command: OperatorCommand, /, **which: Any) -> None:
    """Remove one of your own limits."""
    if which["window"] is None:
        raise click.UsageError("Specify which limit: --per-hour or --per-day.")
    body = _read_given(which)

    async def look(operator: Operator) -> None:
        for item in (await operator.get("caps"))["items"]:
            if all((item[name] or None) == (body.get(name) or None) for name in _WHICH):
                return
        raise CommandError("You have set no such limit. Nothing was changed.", "List them: aileron cap list")

    command.list(command.ask(lambda operator: operator.delete("caps", body=body), look), _COLUMNS, _NOTHING)


def _read_given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options in the daemon's format.

    :raises click.UsageError: if there is an argument without an action.
    """
    if options["argument"] is not None and options["action"] is None:
        raise click.UsageError("--argument requires an action.")
    return {name: value for name, value in options.items() if value is not None}


def _counted_by(item: Mapping[str, Any]) -> str:
    parts = (f"value of {item['argument']}" if item["argument"] else "", "session" if item["per_session"] else "")
    return ", ".join(filter(None, parts))


_COLUMNS: Columns = {
    "ACTION": lambda item: item["action"] or "(all actions)",
    "LIMIT": "most",
    "WINDOW": lambda item: item["window"].replace("per_", "an " if item["window"] == "per_hour" else "a "),
    "COUNTED BY": _counted_by,
    "SET": time_at("set_at"),
}


_SESSION = id_option("--session", LIVE_SESSION, "Only this session.")


@click.command()
@_SESSION
@click.option("--reason", help="Reason; shown to agents.")
@reading_command
def pause(command: OperatorCommand, /, session: str | None, reason: str | None) -> None:
    """Pause everything: no call is accepted, and nothing can be approved.

    It stays paused across restarts until you resume it. Runs that have started are
    listed and continue; approved runs that have not started wait.
    """
    body: dict[str, JSON] = {"session": session, "reason": reason}
    answer = command.read(lambda operator: operator.post("pause", body=body))
    command.say(
        answer,
        "Paused since {since}. No run starts until you resume.",
        since=when(answer["pause"]["since"], relative=False),
    )
    if command.as_json:
        return
    if not answer.get("saved", True):
        note("The pause is not saved yet: the database cannot be written. A restart now would lift it.")
    if not answer.get("listed", True):
        note("The database cannot be read, so runs in progress, which continue, are not listed.")
    _list("In progress; these continue", answer["under_way"])
    note("Resume: aileron resume{of}", of=f" --session {session}" if session else "")


@click.command()
@_SESSION
@operator_command
def resume(command: OperatorCommand, /, session: str | None) -> None:
    """Accept calls again. Runs approved before the pause need your approval once more.

    A session that was paused separately stays paused: resume it with --session.
    """
    answer = command.ask(lambda operator: operator.post("resume", body={"session": session}), _find(session))
    command.say(answer, "Resumed.")
    if not command.as_json:
        _list("Approved before the pause; approve each again with aileron approve", answer["asked_anew"])


def _find(session: str | None) -> Callable[[Operator], Awaitable[object]] | None:
    """Return a function that checks that the session exists, and raises an error if not. None if C{session} is None."""
    return None if session is None else lambda operator: operator.get("sessions", session)


def _list(title: str, runs: Sequence[Mapping[str, Any]]) -> None:
    if runs:
        heading(title)
        table_of({"ID": "id", "ACTION": "action", "REQUESTED": time_at("received_at")}, runs)
