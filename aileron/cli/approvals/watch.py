"""C{aileron watch}: shows pending approvals live and decides them, or with plain lists on a simple terminal."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from aileron.base.json import from_timestamp, timestamp, utc
from aileron.cli import options as _options
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import CommandError, report
from aileron.cli.output import note, say, table
from aileron.cli.vault.operator import as_signed_in
from aileron.cli.vault.terminal import Terminal, note_multiplexer
from aileron.model.errors import InvalidRequest

from .deciding import MOST, DecisionRequest, decide_shown, deny_all_of, read_approval, refuse_decided, refuse_ended
from .edit import edit_shown, rewritten
from .grant import moment_of
from .identical import decide_together, join_identical
from .offers import KEY, OfferList
from .reading import question_of
from .review import show_review
from .rows import age, describe_row, find_mark, list_warnings, sort_closely

if TYPE_CHECKING:
    from aileron.client import Operator

_INSTALL = (
    "pipx inject aileron prompt_toolkit",
    "uv tool install --with prompt_toolkit . (in Aileron's source)",
    "pip install prompt_toolkit",
)
_ASK_WHICH = "Number to open, Enter to refresh, q to quit: "
_ASK_OFFER = "Number to open, {key} to {label}, Enter to refresh, q to quit: "
_ASK_ALL = "(ay) approve all identical, (ad) deny all identical, "
_ASK_WHAT = "(y) approve, (l) approve for later, (d) deny, (x) deny all and end session, (e) edit, Enter to go back: "


@click.command("watch")
@click.option("--bell/--no-bell", default=True, show_default=True, help="Ring the bell for new requests.")
@click.option("--plain", is_flag=True, help="Use a list and questions instead of the full screen.")
@_options.passphrase_fd
@pass_cli
def watch(cli: CliContext, bell: bool, plain: bool, passphrase_fd: int | None) -> None:
    """Review and decide pending approvals in the terminal, live.

    Requests are listed oldest first. Open one to read it in full: you can approve it only after you have scrolled to
    its end, and only as shown.
    """
    cli.running()
    _check_terminal(cli)
    simple = plain or cli.environ.get("TERM", "") in ("", "dumb", "unknown")
    if not simple and find_spec("prompt_toolkit") is None:
        simple = True
        note("Showing a list and questions: the full screen needs prompt_toolkit. To install it, run one of:")
        for each in _INSTALL:
            note("  {command}", command=each)
    note_multiplexer(cli.environ)
    if not simple:
        from twisted.internet import asyncioreactor

        asyncioreactor.install()
    # A child reads the passphrase: an editor that we start must not inherit from a process that held it.
    as_signed_in(cli, passphrase_fd, lambda operator: converse(cli, operator) if simple else _view(cli, operator, bell))


def _check_terminal(cli: CliContext) -> None:
    """Require a terminal.

    :raises CommandError: if this process has none.
    """
    try:
        with cli.terminal():
            pass
    except InvalidRequest:
        raise CommandError(
            "Cannot watch approvals: no terminal. Nothing was decided.", "List pending approvals: aileron approval list"
        ) from None


async def _view(cli: CliContext, operator: Operator, bell: bool) -> None:
    from prompt_toolkit.input.vt100 import Vt100Input
    from prompt_toolkit.output.vt100 import Vt100_Output

    from .live import LiveScreen

    await cli.pause(0)  # until the loop runs, which the reactor starts first
    with Terminal.open() as terminal:
        # The opener of the descriptor closes it. Closing a stream would write to a terminal that may be gone.
        typed, shown = (open(terminal.fileno(), mode, encoding="utf-8", closefd=False) for mode in ("r", "w"))  # noqa: SIM115
        screen = LiveScreen(cli, operator, Vt100Input(typed), Vt100_Output.from_pty(shown), bell=bell)
        await screen.run()


async def converse(cli: CliContext, operator: Operator) -> None:
    """List approvals, ask for one, show and decide it, until the person quits.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    from aileron.client import DaemonFault, DaemonUnreachable

    offers = OfferList(operator, cli.features.watch_offers())
    while True:
        items = (await operator.get("action-approvals", query={"limit": MOST}))["items"]
        waiting = sort_closely(join_identical(items))
        waits = [cli.wall() - from_timestamp(item["requested_at"]).timestamp() for item in waiting]
        rows = [
            (
                number,
                age(waits[number - 1]),
                f"{find_mark(item):2} {describe_row(item)}",
                list_warnings(item),
                item["id"],
            )
            for number, item in enumerate(waiting, 1)
        ]
        table(("NO", "AGE", "REQUEST", "CHECK", "ID"), rows) if rows else say("No pending approvals.")
        await offers.fetch()
        for each in offers.items:
            say("{text}", text=each.text)
        asks = _ASK_OFFER.format(key=KEY, label=offers.items[0].label) if offers.items else _ASK_WHICH
        answer = cli.ask(asks).strip()
        if answer == "q":
            return
        if answer == KEY:
            await _accept_offers(cli, offers)
            continue
        if not (answer.isascii() and answer.isdigit() and 0 < int(answer) <= len(waiting)):
            continue
        try:
            row = waiting[int(answer) - 1]
            await _review(cli, operator, row["id"], identical=bool(row["others"]))
        except (DaemonFault, DaemonUnreachable, CommandError, click.UsageError) as error:
            refuse_ended(error)
            report(error)


async def _accept_offers(cli: CliContext, offers: OfferList) -> None:
    """Ask about each offer, and carry out the accepted ones. An error is printed.

    :raises DaemonFault: if the login has ended.
    """
    from aileron.client import DaemonFault, DaemonUnreachable

    for offer in offers.items:
        if cli.ask(question_of(offer)).strip().lower() not in ("y", "yes"):
            say("Nothing was changed.")
            continue
        try:
            say("{done}", done=await offers.accept(offer))
        except (DaemonFault, DaemonUnreachable) as error:
            refuse_ended(error)
            report(error)


async def _review(cli: CliContext, operator: Operator, approval_id: str, *, identical: bool) -> None:
    """Show one approval whole, and carry out the answer.

    :param identical: whether the row represents identical approvals, which can be decided together.
    :raises CommandError: if it is decided already, or the edited arguments are not usable.
    :raises BadParameter: if the start time is invalid.
    :raises DaemonFault: if the daemon refuses the decision.
    """
    shown, session = await read_approval(operator, approval_id)
    refuse_decided(shown)
    show_review(shown, session)
    answer = cli.ask(_ASK_ALL * identical + _ASK_WHAT).strip().lower()
    if identical and answer in ("ay", "ad"):
        reason = (cli.ask("Reason (Enter: none)? ").strip() or None) if answer == "ad" else None
        all_of_them = DecisionRequest(
            approval_id, approved=answer == "ay", sure=False, as_json=False, reason=reason, wait=10.0
        )
        await decide_together(cli, operator, [all_of_them])
    elif answer in ("y", "l"):
        when = cli.ask("Start when (for example +2h)? ").strip() if answer == "l" else ""
        begins = timestamp(moment_of(when, utc(cli.wall()))) if when else None
        request = DecisionRequest(approval_id, approved=True, sure=False, as_json=False, wait=10.0, not_before=begins)
        await decide_shown(cli, operator, request, shown)
    elif answer in ("d", "x"):
        reason = cli.ask("Reason (Enter: none)? ").strip() or None
        request = DecisionRequest(approval_id, approved=False, sure=True, as_json=False, reason=reason)
        await decide_shown(cli, operator, request, shown)
        if answer == "x" and session is not None:
            others = await deny_all_of(operator, session["id"], reason)
            say("Session {session} ended. Other requests denied: {others}.", others=others, session=session["id"])
    elif answer == "e":
        with rewritten(cli, shown["run"]["arguments"]) as wanted:
            await edit_shown(operator, shown, wanted)
        note("Edited. Nothing is decided yet: review it again.")
