"""C{aileron session}: agents' sessions, and the events of one session as they happen."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from aileron.base.text import duration
from aileron.cli import options as _options
from aileron.cli.approvals.deciding import deny_all_of
from aileron.cli.approvals.review import process
from aileron.cli.context import CliContext, Links, pass_cli
from aileron.cli.ids import id_argument
from aileron.cli.output import Columns, fields_of, note, say, say_json, time_at, values, when
from aileron.cli.session import OperatorCommand, plain_command, reading_command
from aileron.cli.things import LIVE_SESSION, SESSION
from aileron.cli.tokens import describe_tokens

if TYPE_CHECKING:
    from aileron.client import OpenedSession, Operator


@click.group("session")
def sessions() -> None:
    """List, watch, open and end agent sessions."""


@sessions.command("list")
@click.option("--live", is_flag=True, default=None, help="Only sessions that have not ended.")
@click.option("--all", "everything", is_flag=True, help="List the ended sessions of commands too, as --json does.")
@_options.paged
@_options.exact_times
@reading_command
def list_sessions(command: OperatorCommand, /, everything: bool, **filters: str | int | bool | None) -> None:
    """List sessions, newest first. Agent and directory are self-reported.

    Commands such as `aileron action run` open short sessions named cli. Those that have ended are left out; --all lists
    them.
    """
    commands = None if everything or command.as_json else False
    columns = {label.removesuffix(" code").upper(): each for label, each in _FIELDS.items()}
    command.list(
        command.get("sessions", query=_options.filter_query(**filters, commands=commands)), columns, "No sessions."
    )


@sessions.command("show")
@id_argument("session", SESSION)
@_options.exact_times
@reading_command
def show_session(command: OperatorCommand, /, session: str) -> None:
    """Show one session: what the agent reports, and the process that opened it."""
    found = command.get("sessions", session)
    fields = fields_of(_FIELDS, found)
    command.show(found, lambda _: values({**fields, **_more(found)}))


@sessions.command("open")
@click.argument("name")
@click.option("--hours", type=click.IntRange(1, 720), default=8, show_default=True, help="Maximum duration.")
@_options.as_json
@pass_cli
def open_session(cli: CliContext, name: str, hours: int, as_json: bool) -> None:
    """Open a session for an agent elsewhere, such as in a container, and print its credentials, once.

    Set the printed variables in the agent's environment. It can then list actions, request them and read its own
    results, until the session ends.
    """

    async def carry_out(links: Links) -> tuple[str, OpenedSession]:
        found = cli.running()
        daemon = links.daemon(found.url, found.launch_key)
        return found.url, await daemon.open_session(name, "", minutes=hours * 60)

    url, opened = cli.drive(carry_out)
    needs = {"AILERON_URL": url, "AILERON_TOKEN": opened.token}
    if as_json:
        say_json({"id": opened.id, **needs, "gateway_key": opened.gateway_key})
        return
    for variable, text in needs.items():
        say("{variable}={text}", variable=variable, text=text)
    note("Session {id} ends after {hours} h. To end it now: aileron session end {id}", id=opened.id, hours=hours)


@sessions.command("end")
@id_argument("session", LIVE_SESSION)
@click.option("--deny", is_flag=True, help="Also deny its pending requests.")
@click.option("--reason", help="With --deny: the reason.")
@plain_command
def end_session(command: OperatorCommand, /, session: str, deny: bool, reason: str | None) -> None:
    """End a session: its agent can request nothing more. Its pending requests stay pending."""
    if reason is not None and not deny:
        raise click.UsageError("--reason requires --deny.")
    if deny:
        denied = command.ask(
            lambda operator: deny_all_of(operator, session, reason),
            lambda operator: operator.get("sessions", session),
        )
        say("Session {session} ended. Requests denied: {denied}.", session=session, denied=denied)
        return
    command.ask(
        lambda operator: operator.post("sessions", session, "end", body={"exit_code": None}),
        lambda operator: operator.get("sessions", session),
    )
    say("Session {session} ended.", session=session)


def _more(session: Mapping[str, Any]) -> dict[str, Any]:
    summary = session.get("summary", {})
    lasts = "with its launcher" if session.get("leased") else when(session.get("ends_at"))
    ended = session.get("ended_at")
    told = {"ends": lasts, "ended": None} if ended is None else {"ends": None, "ended": when(ended)}
    if session.get("in_band"):
        told["in-band mode"] = "yes"
    named = {
        "calls": "calls",
        "approvals": "approved",
        "denials": "denied",
        "effects": "completed",
        "in_doubt": "outcome unknown",
        "waiting": "pending",
    }
    counted = {label: summary[name] for name, label in named.items() if name in summary}
    lasted = {"duration": duration(summary["seconds"])} if "seconds" in summary else {}
    return {label: each for label, each in told.items() if each is not None} | counted | lasted


_FIELDS: Columns = {
    "id": "id",
    "state": lambda session: f"{session['state']}, paused" if session.get("paused") else session["state"],
    "started": time_at("started_at"),
    "account": lambda session: (session.get("owner") or {}).get("name"),
    "agent (self-reported)": "agent",
    "directory (self-reported)": "working_dir",
    "process": lambda session: process(session.get("peer")),
    "exit code": "exit_code",
    "tokens": lambda session: describe_tokens(session.get("gateway")),
}


_AT_ONCE = 200
_PAUSE_SECONDS = 1.0
_ENDED = "session.ended"


@sessions.command("watch")
@id_argument("session", LIVE_SESSION)
@_options.exact_times
@reading_command
def watch_session(command: OperatorCommand, session: str) -> None:
    """Print the audit records of a session, and new ones as they occur, until it ends.

    With --json each record is one JSON object.
    """

    async def watch(operator: Operator) -> None:
        found = await operator.get("sessions", session)
        if not command.as_json:
            note("{agent}, session {id}, started {at}", agent=found["agent"], id=session, at=when(found["started_at"]))
        await _watch(command, operator, session)

    command.read(watch)


async def _watch(command: OperatorCommand, operator: Operator, session: str) -> None:
    """Print each event of a session once, in order, until the session has ended.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    from twisted.internet.defer import Deferred

    from aileron.client import DaemonError

    news: list[None] = []

    async def follow() -> None:
        """Add to C{news} for each new event, and once more when the stream has ended."""
        with suppress(DaemonError):
            await operator.follow(lambda: news.append(None))
        news.append(None)

    last, ended, following = 0, False, Deferred.fromCoroutine(follow())
    try:
        while not ended:
            news.clear()
            for record in await _records_after(operator, session, last):
                last = record["sequence"]
                command.say(record, "{line}", line=line_of(record))
                ended = ended or record["type"] == _ENDED
            while not news and not ended:
                if following.called:
                    following = Deferred.fromCoroutine(follow())
                await command.cli.pause(_PAUSE_SECONDS)
    finally:
        following.addErrback(lambda _: None)
        following.cancel()


async def _records_after(operator: Operator, session: str, last: int) -> list[Mapping[str, Any]]:
    """Return the session's records after number C{last}, oldest first.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    found: list[Mapping[str, Any]] = []
    cursor = None
    while True:
        answer = await operator.get("audit", query={"session": session, "limit": _AT_ONCE, "cursor": cursor})
        new = [each for each in answer["items"] if each["sequence"] > last]
        found += new
        cursor = answer.get("cursor")
        if cursor is None or len(new) < len(answer["items"]):
            return found[::-1]


def line_of(record: Mapping[str, Any]) -> str:
    """Return one event as a line. The caller makes it visible."""
    payload = record.get("payload") or {}
    told = ((name.replace("_", " "), payload.get(name)) for name in ("ending", "exit_code", "reason"))
    more = ", ".join(f"{name} {each}" for name, each in told if each is not None)
    parts = (when(record["at"], relative=False), record["type"], record.get("action"), record.get("run_id"), more)
    return "  ".join(str(each) for each in parts if each)
