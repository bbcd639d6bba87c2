"""Announces pending calls of the agent in its terminal, without disturbing the agent's screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NoReturn

from attrs import frozen
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from aileron.base.text import visible
from aileron.client import DaemonError

LOOK_SECONDS = 2.0
TITLE_LOOKS = 5
"""Every so many looks the title is set again: the agent may have set its own meanwhile."""

_BELL = "\a"
_NOTIFY = "\x1b]9;{}\a"
"""OSC 9: a terminal that knows it shows a notification, another rings its bell or does nothing; none prints it."""

_TITLE, _KEEP_TITLE, _GIVE_BACK_TITLE = "\x1b]2;{}\a", "\x1b[22;2t", "\x1b[23;2t"
"""Set the terminal's title; keep the present one, and give back the one that was kept, where the terminal can."""


@frozen
class Bell:
    """Brings one line before the person at the terminal.

    :param say: shows a line beside the agent's own output.
    :param write: writes to the terminal as it is, all at once.
    :param terminal: whether there is one.
    :param multiplexed: whether tmux or screen stands between, which let through no sequence that they do not know; of a
        bell they tell, also while another of their windows is shown.
    :ivar find_pages: returns where the operator's pages are now, which each start of the daemon changes; L{None}: none
        runs.
    """

    _say: Callable[[str], object]
    _write: Callable[[str], object]
    _terminal: bool
    _multiplexed: bool = False
    find_pages: Callable[[], str | None] = lambda: None

    def ring(self, line: str, *, full_screen: bool) -> None:
        """Tell C{line}, of our own words: where the agent has the whole screen no line is printed into it.

        :param full_screen: whether the agent draws.
        """
        if self._terminal and full_screen:
            self._write(_NOTIFY.format(line) + _BELL * self._multiplexed)
            return
        if self._terminal:
            self._write(_BELL)
        self._say(f"aileron: {line}")

    def show_title(self, waiting: int, before: int, agent: str, *, full_screen: bool) -> None:
        """Say in the terminal's title how many calls wait, where the agent's screen has no other place for it.

        :param before: how many the title says now.
        :param agent: whose name the title gets where none can be given back.
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
    """Announce the number of a session's pending calls whenever it grows, until this is cancelled.

    :param count: how many there are now; a daemon that does not answer has nothing to tell.
    :param show: called with how many there are and were, whenever that changes, now and then, and at the end.
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


def is_multiplexed(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal is a window of tmux or screen, according to the environment."""
    return bool(environ.get("TMUX") or environ.get("STY"))


def format_waiting(waiting: int, operator_url: str | None) -> str:
    """Return the message about pending calls, with the command that shows them."""
    calls = "1 pending approval" if waiting == 1 else f"{waiting} pending approvals"
    return f"{calls}: aileron open" if operator_url is None else f"{calls}: {visible(operator_url)}/approvals"
