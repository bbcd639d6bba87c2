"""C{aileron sessions}: which agents are, or were, at work, and what one of them does as it happens."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from aileron.cli import _options
from aileron.cli._context import CliContext, Links, pass_cli
from aileron.cli._output import note, say, say_json, values
from aileron.cli._session import OperatorCommand, as_operator, operator_command
from aileron.cli.approvals.deciding import deny_all_of
from aileron.cli.approvals.review import process
from aileron.cli.daemon.status import tokens

if TYPE_CHECKING:
    from aileron.client import OpenedSession, Operator


@click.group()
def sessions() -> None:
    """See, follow, open and end the sessions of agents."""


@sessions.command("list")
@click.option("--live", is_flag=True, default=None, help="Only those that have not ended.")
@_options.paged
@operator_command
def list_sessions(command: OperatorCommand, /, **filters: str | int | bool | None) -> None:
    """List sessions, newest first; agent and directory are what each claims."""
    command.list(
        lambda operator: operator.sessions(_options.filter_query(**filters)),
        ("ID", "STATE", "STARTED AT", "AGENT (CLAIMED)", "DIRECTORY (CLAIMED)", "PROCESS", "EXIT", "TOKENS"),
        lambda item: tuple(_fields(item).values()),
        "There are no sessions.",
    )


@sessions.command("show")
@click.argument("session")
@operator_command
def show_session(command: OperatorCommand, /, session: str) -> None:
    """Show one session: what it claims, and the process that opened it."""
    found = command.ask(lambda operator: operator.session(session))
    command.show(found, lambda _: values({**_fields(found), **_more(found)}))


@sessions.command("open")
@click.argument("name")
@click.option("--hours", type=click.IntRange(1, 720), default=8, show_default=True, help="How long it may live.")
@_options.as_json
@pass_cli
def open_session(cli: CliContext, name: str, hours: int, as_json: bool) -> None:
    """Open a session for an agent elsewhere, such as in a container, and print what it needs, once.

    Lines for its environment: an agent with them can list actions, ask for them and read its own results, until its
    time is over or you end it.
    """

    async def whole(links: Links) -> tuple[str, OpenedSession]:
        found = cli.running()
        daemon = links.daemon(found.url, found.launch_key)
        return found.url, await daemon.open_session(name, "", minutes=hours * 60)

    url, opened = cli.drive(whole)
    needs = {"AILERON_URL": url, "AILERON_TOKEN": opened.token}
    if as_json:
        say_json({"id": opened.id, **needs, "gateway_key": opened.gateway_key})
        return
    for variable, text in needs.items():
        say("{variable}={text}", variable=variable, text=text)
    note("Session {id}, for {hours} h at most. End it: aileron sessions end {id}", id=opened.id, hours=hours)


@sessions.command("end")
@click.argument("session")
@click.option("--deny", is_flag=True, help="And deny all that it asks.")
@click.option("--reason", help="With --deny: why.")
@_options.passphrase_fd
@pass_cli
def end_session(cli: CliContext, /, passphrase_fd: int | None, session: str, deny: bool, reason: str | None) -> None:
    """End one session: its agent can ask for nothing more.  What it asked before still waits for you."""
    if reason is not None and not deny:
        raise click.UsageError("--reason goes with --deny.")
    if deny:
        denied = as_operator(cli, passphrase_fd, lambda operator: deny_all_of(operator, session, reason))
        say("{session} is ended; {denied} of its requests were denied.", session=session, denied=denied)
        return
    as_operator(cli, passphrase_fd, lambda operator: operator.end_session(session))
    say("{session} is ended.", session=session)


def _more(session: Mapping[str, Any]) -> dict[str, Any]:
    summary = session.get("summary", {})
    lasts = "when its launcher is gone" if session.get("leased") else session.get("ends_at")
    told = {"ends by itself": lasts if session.get("ended_at") is None else None, "ended at": session.get("ended_at")}
    named = {
        "calls": "calls",
        "approvals": "approved",
        "denials": "denied",
        "effects": "done",
        "in_doubt": "in doubt",
        "waiting": "waiting",
    }
    counted = {label: summary[name] for name, label in named.items() if name in summary}
    lasted = {"lasted": f"{summary['seconds']} s"} if "seconds" in summary else {}
    return {label: each for label, each in told.items() if each is not None} | counted | lasted


def _fields(session: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": session["id"],
        "state": f"{session['state']}, paused" if session.get("paused") else session["state"],
        "started at": session["started_at"],
        "agent (claimed)": session["agent"],
        "directory (claimed)": session["working_dir"],
        "process": process(session.get("peer")),
        "exit code": session.get("exit_code"),
        "tokens": tokens(session.get("gateway")),
    }


_AT_ONCE = 200
_PAUSE_SECONDS = 1.0
_ENDED = "session.ended"


@sessions.command("watch")
@click.argument("session")
@operator_command
def watch_session(command: OperatorCommand, session: str) -> None:
    """Follow one session: what was recorded of it, and then whatever happens, until it ends.

    With --json each record is one JSON object.
    """

    async def watch(operator: Operator) -> None:
        found = await operator.session(session)
        if not command.as_json:
            note("{agent}, session {id}, since {at}", agent=found["agent"], id=session, at=found["started_at"])
        await _watch(command, operator, session)

    command.ask(watch)


async def _watch(command: OperatorCommand, operator: Operator, session: str) -> None:
    """Tell each record of a session once, in order, until the session has ended."""
    from twisted.internet.defer import Deferred

    from aileron.client import DaemonError

    news: list[None] = []

    async def follow() -> None:
        """Note that there is news, until the stream is cut off; then there may be some."""
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
    """Return the session's records after number C{last}, oldest first."""
    found: list[Mapping[str, Any]] = []
    cursor = None
    while True:
        answer = await operator.audit({"session": session, "limit": _AT_ONCE, "cursor": cursor})
        new = [each for each in answer["items"] if each["sequence"] > last]
        found += new
        cursor = answer.get("cursor")
        if cursor is None or len(new) < len(answer["items"]):
            return found[::-1]


def line_of(record: Mapping[str, Any]) -> str:
    """Write one record as a line; the caller shows it visibly."""
    payload = record.get("payload") or {}
    told = ((name.replace("_", " "), payload.get(name)) for name in ("ending", "exit_code", "reason"))
    more = ", ".join(f"{name} {each}" for name, each in told if each is not None)
    parts = (record["at"], record["type"], record.get("action"), record.get("run_id"), more)
    return "  ".join(str(each) for each in parts if each)
