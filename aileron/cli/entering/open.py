"""C{aileron open}: your pages, in your browser, logged in."""

from __future__ import annotations

from contextlib import ExitStack

import click

from aileron.cli import _options
from aileron.cli._errors import Trouble
from aileron.cli._output import say
from aileron.cli._surroundings import Conversation, Links, Surroundings, pass_surroundings
from aileron.errors import InvalidRequest

from .letting_in import let_in
from .operator import token_from_child

_PASSKEYS = "/settings/passkeys"


@click.command("open")
@click.argument("what", required=False, type=click.Choice(["approval", "approvals", "passkeys"]))
@click.argument("approval_id", metavar="[ID]", required=False)
@_options.passphrase_fd
@pass_surroundings
def open_pages(around: Surroundings, what: str | None, approval_id: str | None, passphrase_fd: int | None) -> None:
    """Open your pages in the browser.

    All of them, or with `approval ID` the one where it is decided, or with `passkeys` the one where they are added.

    The browser comes by a private file that works once, within a minute, and shows two words. You type them here; only
    then is it let in. It stays logged in when this ends.
    """
    if (what == "approval") != (approval_id is not None):
        raise click.UsageError("Want: aileron open, or: aileron open approval ID, or: aileron open passkeys")
    path = _PASSKEYS if what == "passkeys" else f"/approvals/{approval_id}" if approval_id else "/"
    url = around.running().operator_url
    with ExitStack() as stack:
        terminal = _terminal(around, stack)
        # A child reads the passphrase: a browser that we start must not inherit from a process that held it.
        token = token_from_child(around, url, passphrase_fd)

        async def whole(links: Links) -> None:
            # No logout once it is in: the browser's session ends with the login that made it.
            await let_in(around, terminal, links.operator(url, token), url, path)

        around.drive(whole)
    say("The browser is logged in: {url}{path}", url=url, path=path)


def _terminal(around: Surroundings, stack: ExitStack) -> Conversation:
    """Had before anything is opened: without one nobody could be let in."""
    try:
        return stack.enter_context(around.terminal())
    except InvalidRequest:
        raise Trouble(
            "The browser's two words must be typed in a terminal, and there is none.",
            "Decide without a browser: aileron approval list",
        ) from None
