"""C{aileron open}: your pages, in your browser, logged in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import _options
from ._browser import open_file
from ._errors import Trouble
from ._handover import sweep, write_page
from ._operator import token_from_child
from ._output import note, say
from ._surroundings import Links, Surroundings, pass_surroundings

if TYPE_CHECKING:
    from aileron.client import Operator

_CODE_SECONDS = 60.0
_POLL_SECONDS = 0.5


@click.command("open")
@click.argument("what", required=False, type=click.Choice(["approval", "approvals"]))
@click.argument("approval_id", metavar="[ID]", required=False)
@_options.passphrase_fd
@pass_surroundings
def open_pages(around: Surroundings, what: str | None, approval_id: str | None, passphrase_fd: int | None) -> None:
    """Open your pages in the browser.

    All of them, or with `approval ID` the one where it is decided.

    The browser gets in by a private file that works once, within a minute. It stays logged in when this ends.
    """
    if (what == "approval") != (approval_id is not None):
        raise click.UsageError("Want: aileron open, or: aileron open approval ID")
    path = f"/approvals/{approval_id}" if approval_id else "/"
    found = around.running()
    # A child reads the passphrase: a browser that we start must not inherit from a process that held it.
    token = token_from_child(around, passphrase_fd)

    async def whole(links: Links) -> None:
        # No logout: the browser's session ends with the login that made it.
        await _hand_over(around, links.operator(found.operator_url, token), found.operator_url, path)

    around.drive(whole)


async def _hand_over(around: Surroundings, operator: Operator, operator_url: str, path: str) -> None:
    before = _browsers(await operator.operator_sessions())
    code = (await operator.hand_over())["code"]
    sweep(around.home)
    file = write_page(around.home, operator_url, code, path)
    try:
        _tell(file, open_file(file, around.environ))
        await _until_in(around, operator, before)
    finally:
        file.unlink(missing_ok=True)
    say("The browser is logged in: {url}{path}", url=operator_url, path=path)


def _tell(file: Path, opened: bool) -> None:
    if opened:
        note("If no page comes up, open this file in your browser within a minute: {file}", file=file)
    else:
        note("There is no browser here. Open this file in one on this machine within a minute: {file}", file=file)
        note("On a remote machine: ssh -L with the same port at both ends, or aileron approval in the terminal.")


async def _until_in(around: Surroundings, operator: Operator, before: frozenset[str]) -> None:
    """Wait until a browser has used the code.

    :raises Trouble: none has, in time.
    """
    deadline = around.seconds() + _CODE_SECONDS
    while around.seconds() < deadline:
        if _browsers(await operator.operator_sessions()) - before:
            return
        await around.pause(_POLL_SECONDS)
    raise Trouble("No browser came within a minute; the file is gone.", "Again: aileron open")


def _browsers(answer: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(session["id"] for session in answer["items"] if session["browser"])
