"""C{aileron approval watch}: see what waits as it comes, and decide; or by lists and questions on a simple terminal."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from aileron.cli import _options
from aileron.cli._context import CliContext, Links, pass_cli
from aileron.cli._errors import CommandError, report
from aileron.cli._output import note, say, table
from aileron.cli._session import quietly
from aileron.cli.approvals.deciding import (
    MOST,
    DecisionRequest,
    decide_shown,
    deny_all_of,
    look,
    refuse_decided,
    refuse_ended,
)
from aileron.cli.approvals.edit import rewritten
from aileron.cli.approvals.grant import moment_of
from aileron.cli.approvals.reading import age
from aileron.cli.approvals.review import show_review
from aileron.cli.vault.operator import token_from_child
from aileron.cli.vault.terminal import Terminal
from aileron.errors import InvalidRequest
from aileron.values import from_timestamp, timestamp, utc

if TYPE_CHECKING:
    from aileron.client import Operator

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
    simple = plain or cli.environ.get("TERM", "") in ("", "dumb", "unknown")
    _check_terminal(cli, simple)
    # A child reads the passphrase: an editor that we start must not inherit from a process that held it.
    token = token_from_child(cli, url, passphrase_fd)
    if not simple:
        from twisted.internet import asyncioreactor

        asyncioreactor.install()

    async def whole(links: Links) -> None:
        operator = links.operator(url, token)
        try:
            await (converse(cli, operator) if simple else _view(cli, operator, bell))
        finally:
            await quietly(operator.logout)

    cli.drive(whole)


def _check_terminal(cli: CliContext, simple: bool) -> None:
    """Require a terminal, and the library that draws the full screen.

    :raises CommandError: one is not there.
    """
    try:
        with cli.terminal():
            pass
    except InvalidRequest:
        raise CommandError(
            "There is no terminal to watch in; nothing was decided.", "List what waits: aileron approval list"
        ) from None
    if not simple and find_spec("prompt_toolkit") is None:
        raise CommandError(
            "The full screen needs prompt_toolkit: run `pip install '.[terminal]'` in Aileron's source.",
            "Without it: aileron approval watch --plain",
        )


async def _view(cli: CliContext, operator: Operator, bell: bool) -> None:
    from prompt_toolkit.input.vt100 import Vt100Input
    from prompt_toolkit.output.vt100 import Vt100_Output

    from aileron.cli.approvals.live import LiveScreen

    await cli.pause(0)  # until the loop runs, which the reactor begins with what it starts first
    with Terminal.open() as terminal:
        # Who opened the descriptor closes it; to close a stream would write once more to a terminal that is gone.
        typed, shown = (open(terminal.fileno(), mode, encoding="utf-8", closefd=False) for mode in ("r", "w"))  # noqa: SIM115
        screen = LiveScreen(cli, operator, Vt100Input(typed), Vt100_Output.from_pty(shown), bell=bell)
        await screen.run()


async def converse(cli: CliContext, operator: Operator) -> None:
    """List, ask, show, ask, decide; until the person leaves."""
    from aileron.client import DaemonFault, DaemonUnreachable

    while True:
        waiting = (await operator.approvals({"limit": MOST}))["items"]
        waits = [cli.wall() - from_timestamp(item["requested_at"]).timestamp() for item in waiting]
        rows = [
            (number, age(waits[number - 1]), item["run"]["action"], item["id"])
            for number, item in enumerate(waiting, 1)
        ]
        table(("NO", "AGE", "ACTION", "ID"), rows) if rows else say("Nothing waits for you.")
        answer = cli.ask(_ASK_WHICH).strip()
        if answer == "q":
            return
        if not (answer.isascii() and answer.isdigit() and 0 < int(answer) <= len(waiting)):
            continue
        try:
            await _review(cli, operator, waiting[int(answer) - 1]["id"])
        except (DaemonFault, DaemonUnreachable, CommandError, click.UsageError) as error:
            refuse_ended(error)
            report(error)


async def _review(cli: CliContext, operator: Operator, approval_id: str) -> None:
    """Show one whole, and do what is answered."""
    shown, session = await look(operator, approval_id)
    refuse_decided(shown)
    show_review(shown, session)
    answer = cli.ask(_ASK_WHAT).strip().lower()
    if answer in ("y", "l"):
        when = cli.ask("Begin when (such as +2h)? ").strip() if answer == "l" else ""
        begins = timestamp(moment_of(when, utc(cli.wall()))) if when else None
        request = DecisionRequest(approval_id, approved=True, sure=False, as_json=False, wait=10.0, not_before=begins)
        await decide_shown(cli, operator, request, shown)
    elif answer in ("d", "x"):
        reason = cli.ask("Why (Enter: no reason)? ").strip() or None
        request = DecisionRequest(approval_id, approved=False, sure=True, as_json=False, reason=reason)
        await decide_shown(cli, operator, request, shown)
        if answer == "x" and session is not None:
            others = await deny_all_of(operator, session["id"], reason)
            say("With {others} more; the session {session} is ended.", others=others, session=session["id"])
    elif answer == "e":
        with rewritten(cli, shown["run"]["arguments"]) as wanted:
            await operator.edit(approval_id, wanted, shown["digest"])
        note("Edited; nothing is decided yet. Read it again.")
