"""C{aileron approval watch}: see what waits as it comes, and decide; or by lists and questions on a simple terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from aileron.cli import _options
from aileron.cli._context import CliContext, Links, pass_cli
from aileron.cli._errors import CommandError, report
from aileron.cli._output import note, say, table
from aileron.cli._session import quietly
from aileron.cli.approvals.deciding import DecisionRequest, decide_shown, deny_all_of, look, refuse_decided
from aileron.cli.approvals.edit import rewritten
from aileron.cli.approvals.grant import moment_of
from aileron.cli.approvals.live_model import age
from aileron.cli.approvals.review import show_review
from aileron.cli.vault.operator import token_from_child
from aileron.cli.vault.terminal import Terminal
from aileron.errors import InvalidRequest
from aileron.values import from_timestamp, timestamp, utc

if TYPE_CHECKING:
    from aileron.client import Operator

_DUMB = frozenset(("", "dumb", "unknown"))
_MOST = 200
_WAIT_SECONDS = 10.0
_ASK_WHICH = "Number to read, Enter to look again, or q: "
_ASK_WHAT = "(y) approve, (l) later, (d) deny, (x) deny all of its session and end it, (e) edit, Enter to leave it: "


@click.command("watch")
@click.option("--bell/--no-bell", default=True, show_default=True, help="Ring when something new waits.")
@click.option("--plain", is_flag=True, help="A list and questions, as on a terminal that can do no more.")
@_options.passphrase_fd
@pass_cli
def watch(cli: CliContext, bell: bool, plain: bool, passphrase_fd: int | None) -> None:
    """Watch what waits for you, and decide it, in the terminal.

    It lists what agents ask for, oldest first, and follows what comes and goes. Open one to read it whole; only what
    was read to its end can be approved, and only as it was shown.
    """
    url = cli.running().operator_url
    _demand_terminal(cli)
    simple = plain or cli.environ.get("TERM", "") in _DUMB
    if not simple:
        _demand_library()
    # A child reads the passphrase: an editor that we start must not inherit from a process that held it.
    token = token_from_child(cli, url, passphrase_fd)

    async def whole(links: Links) -> None:
        operator = links.operator(url, token)
        try:
            await (converse(cli, operator) if simple else _view(cli, operator, bell))
        finally:
            await quietly(operator.logout)

    cli.drive(whole)


def _demand_terminal(cli: CliContext) -> None:
    """Require a terminal.

    :raises CommandError: there is none.
    """
    try:
        with cli.terminal():
            return
    except InvalidRequest:
        raise CommandError(
            "There is no terminal to watch in; nothing was decided.", "List what waits: aileron approval list"
        ) from None


def _demand_library() -> None:
    """Require the library that draws the full screen.

    :raises CommandError: it is not installed.
    """
    from importlib.util import find_spec

    if find_spec("prompt_toolkit") is None:
        raise CommandError(
            "The full screen needs prompt_toolkit, which `pip install 'aileron[terminal]'` installs.",
            "Without it: aileron approval watch --plain",
        )


async def _view(cli: CliContext, operator: Operator, bell: bool) -> None:
    from twisted.internet import reactor

    from aileron.cli.approvals.live_screen import TerminalScreen
    from aileron.cli.approvals.live_view import LiveView

    with Terminal.open() as terminal, TerminalScreen(terminal.fileno(), reactor).taken() as screen:
        await LiveView(cli, screen, operator, bell=bell).run()


async def converse(cli: CliContext, operator: Operator) -> None:
    """List, ask, show, ask, decide; until the person leaves."""
    while True:
        waiting = (await operator.approvals({"limit": _MOST}))["items"]
        _list(waiting, cli.wall())
        answer = cli.ask(_ASK_WHICH).strip()
        if answer == "q":
            return
        if answer.isascii() and answer.isdigit() and 0 < int(answer) <= len(waiting):
            await _safely(cli, operator, waiting[int(answer) - 1]["id"])


def _list(waiting: Sequence[Mapping[str, Any]], now: float) -> None:
    if not waiting:
        say("Nothing waits for you.")
        return
    rows = (
        (number, age(now - from_timestamp(item["requested_at"]).timestamp()), item["run"]["action"], item["id"])
        for number, item in enumerate(waiting, 1)
    )
    table(("NO", "AGE", "ACTION", "ID"), rows)


async def _safely(cli: CliContext, operator: Operator, approval_id: str) -> None:
    """One of them; what goes wrong is said, and the list comes again."""
    from aileron.client import DaemonFault, DaemonUnreachable

    try:
        await _one(cli, operator, approval_id)
    except DaemonFault as fault:
        if fault.fault.kind == "unauthorized":
            raise
        report(fault)
    except (DaemonUnreachable, CommandError, click.UsageError) as error:
        report(error)


async def _one(cli: CliContext, operator: Operator, approval_id: str) -> None:
    shown, session = await look(operator, approval_id)
    refuse_decided(shown)
    show_review(shown, session)
    answer = cli.ask(_ASK_WHAT).strip().lower()
    if answer in ("y", "l"):
        when = cli.ask("Begin when (such as +2h)? ").strip() if answer == "l" else ""
        await _approve(cli, operator, shown, when)
    elif answer in ("d", "x"):
        await _deny(cli, operator, shown, flood=answer == "x")
    elif answer == "e":
        with rewritten(cli, shown["run"]["arguments"]) as wanted:
            await operator.edit(approval_id, wanted, shown["digest"])
        note("Edited; nothing is decided yet. Read it again.")


async def _approve(cli: CliContext, operator: Operator, shown: Mapping[str, Any], when: str) -> None:
    not_before = timestamp(moment_of(when, utc(cli.wall()))) if when else None
    request = DecisionRequest(
        shown["id"], approved=True, sure=False, as_json=False, wait=_WAIT_SECONDS, not_before=not_before
    )
    await decide_shown(cli, operator, request, shown)


async def _deny(cli: CliContext, operator: Operator, shown: Mapping[str, Any], *, flood: bool) -> None:
    reason = cli.ask("Why (Enter: no reason)? ").strip() or None
    request = DecisionRequest(shown["id"], approved=False, sure=True, as_json=False, reason=reason)
    await decide_shown(cli, operator, request, shown)
    session = shown["run"].get("session_id")
    if flood and session is not None:
        others = await deny_all_of(operator, session, reason)
        say("With {others} more; the session {session} is ended.", others=others, session=session)
