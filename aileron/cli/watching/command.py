"""C{aileron approval watch}: see what waits as it comes, and decide."""

from __future__ import annotations

import click

from aileron.cli import _options
from aileron.cli._errors import Trouble
from aileron.cli._session import quietly
from aileron.cli._surroundings import Links, Surroundings, pass_surroundings
from aileron.cli.entering.operator import token_from_child
from aileron.errors import InvalidRequest

from .plain import converse
from .view import View

_DUMB = frozenset(("", "dumb", "unknown"))


@click.command("watch")
@click.option("--bell/--no-bell", default=True, show_default=True, help="Ring when something new waits.")
@click.option("--plain", is_flag=True, help="A list and questions, as on a terminal that can do no more.")
@_options.passphrase_fd
@pass_surroundings
def watch(around: Surroundings, bell: bool, plain: bool, passphrase_fd: int | None) -> None:
    """Watch what waits for you, and decide it, in the terminal.

    It lists what agents ask for, oldest first, and follows what comes and goes. Open one to read it whole; only what
    was read to its end can be approved, and only as it was shown.
    """
    url = around.running().operator_url
    _demand_terminal(around)
    # A child reads the passphrase: an editor that we start must not inherit from a process that held it.
    token = token_from_child(around, url, passphrase_fd)
    simple = plain or around.environ.get("TERM", "") in _DUMB

    async def whole(links: Links) -> None:
        operator = links.operator(url, token)
        try:
            if simple:
                await converse(around, operator)
                return
            with around.screen() as screen:
                await View(around, screen, operator, bell=bell).run()
        finally:
            await quietly(operator.logout)

    around.drive(whole)


def _demand_terminal(around: Surroundings) -> None:
    """:raises Trouble: there is none."""
    try:
        with around.terminal():
            return
    except InvalidRequest:
        raise Trouble(
            "There is no terminal to watch in; nothing was decided.", "List what waits: aileron approval list"
        ) from None
