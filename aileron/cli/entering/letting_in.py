"""Lets a browser in: it comes by a private file and shows two words, which the person types here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aileron.cli._errors import Trouble
from aileron.cli._output import note
from aileron.cli._session import quietly
from aileron.cli._surroundings import Conversation, Surroundings
from aileron.values import HandOverState

from .browser import open_file
from .handover import sweep, write_page

if TYPE_CHECKING:
    from aileron.client import Operator

_POLL_SECONDS = 0.4
_AGAIN = "Again: aileron open"
_NO_BROWSER = "No browser came within a minute; the file is gone."
_NO_WORDS = "The two words were not typed within two minutes, so nobody was let in."
_ELSEWHERE = "Another hand-over took the place of this one."
_TWICE = (
    "Somebody else opened it: the file was used twice, so nobody was let in. If you did not open it twice, another "
    "program of yours reads your files; it is on record."
)


async def let_in(around: Surroundings, terminal: Conversation, operator: Operator, url: str, path: str) -> None:
    """Let one browser in to the page at C{path}.  Where that fails, or is broken off, the login ends with it.

    :param url: of the operator site.
    :raises Trouble: none came, somebody else did, or the words did not come in time.
    :raises DaemonFault: these were not the words.
    """
    try:
        await _let_in(around, terminal, operator, url, path)
    except BaseException:
        await quietly(operator.logout)
        raise


async def _let_in(around: Surroundings, terminal: Conversation, operator: Operator, url: str, path: str) -> None:
    code = (await operator.hand_over())["code"]
    sweep(around.home)
    file = write_page(around.home, url, code, path)
    try:
        _tell(file, open_file(file, around.environ))
        while await _state(operator, _NO_BROWSER) is HandOverState.MADE:
            await around.pause(_POLL_SECONDS)
    finally:
        file.unlink(missing_ok=True)
    await operator.confirm_hand_over(await _words(around, terminal, operator, url))


def _tell(file: Path, opened: bool) -> None:
    if opened:
        note("If no page comes up, open this file in your browser within a minute: {file}", file=file)
    else:
        note("There is no browser here. Open this file in one on this machine within a minute: {file}", file=file)
        note("On a remote machine: ssh -L with the same port at both ends, or aileron approval in the terminal.")


async def _words(around: Surroundings, terminal: Conversation, operator: Operator, url: str) -> str:
    """What the person types.  Meanwhile we hear of it if somebody else comes."""
    note("A browser opened it. If yours shows no two words at {url}, somebody else did: press Ctrl-C.", url=url)
    while True:
        terminal.put(f"The two words that your page at {url}/ shows: ")
        typed = terminal.answered()
        while typed is None:
            await _state(operator, _NO_WORDS)
            await around.pause(_POLL_SECONDS)
            typed = terminal.answered()
        if typed.strip():
            return typed


async def _state(operator: Operator, when_late: str) -> HandOverState:
    """How far it is.

    :raises Trouble: it has ended.
    """
    state = HandOverState((await operator.handed_over())["state"])
    if state in (HandOverState.MADE, HandOverState.OPENED):
        return state
    raise Trouble({HandOverState.TWICE: _TWICE, HandOverState.LATE: when_late}.get(state, _ELSEWHERE), _AGAIN)
