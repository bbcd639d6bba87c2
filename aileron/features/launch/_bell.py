"""Announces pending calls of the agent in its terminal, without disturbing the agent's screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NoReturn

from attrs import frozen
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from aileron.base.text import visible
from aileron.client import DaemonError

LOOK_SECONDS = 2.0
CLAIM_LOOK_SECONDS = 10.0
TITLE_LOOKS = 5
"""The title is set again after this many polls, as the agent may have replaced it."""

_BELL = "\a"
_NOTIFY = "\x1b]9;{}\a"
"""OSC 9, a desktop notification. Terminals without support ring the bell or ignore it; none prints it."""

_TITLE, _KEEP_TITLE, _GIVE_BACK_TITLE = "\x1b]2;{}\a", "\x1b[22;2t", "\x1b[23;2t"
"""Escape sequences that set the terminal's title, save the current title, and restore the saved one."""


@frozen
class Bell:
    """Notifies the person at the terminal of calls that wait for a decision.

    :param say: prints a line between the agent's output.
    :param write: writes raw text to the terminal in one piece.
    :param terminal: whether standard error is a terminal.
    :param multiplexed: whether the terminal is a window of tmux or screen. Both drop escape sequences that they do not
        know, but show a bell even if another window is active.
    :ivar find_pages: returns the current URL of the operator's pages, or None if the daemon is not running.
    """

    _say: Callable[[str], object]
    _write: Callable[[str], object]
    _terminal: bool
    _multiplexed: bool = False
    find_pages: Callable[[], str | None] = lambda: None

    def ring(self, line: str, *, full_screen: bool) -> None:
        """Show a line: as a notification if the agent draws on the whole screen of the terminal, else printed.

        In a terminal, a bell precedes the printed line.

        :param line: a text without any words of the agent or a service.
        :param full_screen: whether the agent draws on the whole screen.
        """
        if self._terminal and full_screen:
            self._write(_NOTIFY.format(line) + _BELL * self._multiplexed)
            return
        if self._terminal:
            self._write(_BELL)
        self._say(f"aileron: {line}")

    def show_title(self, waiting: int, before: int, agent: str, *, full_screen: bool) -> None:
        """Show the number of pending calls in the terminal's title, if the agent draws on the whole screen.

        :param waiting: the number of pending calls. At 0, the saved title is restored.
        :param before: the number in the title now.
        :param agent: the agent's name, the title in terminals that cannot restore one.
        """
        if not (self._terminal and full_screen) or not (waiting or before):
            return
        if waiting:
            kept = "" if before else _KEEP_TITLE
            self._write(kept + _TITLE.format(f"(!) {format_waiting(waiting, None)}"))
        else:
            self._write(_TITLE.format(visible(agent)) + _GIVE_BACK_TITLE)


async def watch_waiting(
    count: Callable[[], Awaitable[int]],
    tell: Callable[[int], object],
    clock: IReactorTime,
    show: Callable[[int, int], object] = lambda _now, _before: None,
) -> NoReturn:
    """Poll the number of a session's pending calls and announce each increase, until cancelled.

    :param count: returns the current number. A L{DaemonError} is ignored until the next poll.
    :param tell: called with the new number when the number has grown.
    :param show: called with the new and the previous number on each change, periodically, and with 0 at the end.
    """
    seen, looks = 0, 0
    try:
        while True:
            await deferLater(clock, LOOK_SECONDS)
            try:
                now = await count()
            except DaemonError:
                continue
            looks += 1
            if now > seen:
                tell(now)
            if now != seen or looks % TITLE_LOOKS == 0:
                show(now, seen)
            seen = now
    finally:
        show(0, seen)


async def watch_claims(
    find: Callable[[], Awaitable[Sequence[str]]], tell: Callable[[str], object], clock: IReactorTime
) -> NoReturn:
    """Poll the agent's claims of effects that no run had, and announce each claim once, until cancelled.

    :param find: returns the claims in words. A L{DaemonError} is ignored until the next poll.
    :param tell: called with each new claim.
    """
    told: set[str] = set()
    while True:
        await deferLater(clock, CLAIM_LOOK_SECONDS)
        try:
            claims = await find()
        except DaemonError:
            continue
        for claim in claims:
            if claim not in told:
                told.add(claim)
                tell(claim)


def is_multiplexed(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal is a window of tmux or screen, according to the environment."""
    return bool(environ.get("TMUX") or environ.get("STY"))


def format_waiting(waiting: int, operator_url: str | None) -> str:
    """Return the message about pending calls, with the URL of the pages or the command that opens them."""
    calls = "1 pending approval" if waiting == 1 else f"{waiting} pending approvals"
    return f"{calls}: aileron open" if operator_url is None else f"{calls}: {visible(operator_url)}/approvals"
