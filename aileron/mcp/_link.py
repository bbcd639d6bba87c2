"""Follows the actions that the daemon offers, across its restarts, and notifies listeners of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from aileron.base.waiting import Waiting
from aileron.client import Daemon, DaemonError

from ._definitions import ToolDefinition, read_definitions

POLL_SECONDS = 50.0
FIRST_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 10.0
_SHORTEST_PAUSE_SECONDS = 0.25
_UNCHANGED_PAUSE_SECONDS = 1.0
_HELD_SECONDS = 1.0

_log = Logger()


class DaemonLink:
    """The tools that the daemon offers, as last reported.

    They are polled from the daemon. While the daemon does not respond, the last reported tools remain.

    :ivar definitions: the last reported tools.
    :ivar trouble: the error of the last poll, or None.
    :ivar load_errors: the files that the daemon could not load.
    :ivar takes_tool_call: whether the daemon accepts the id of the model's tool call with a run. Earlier versions
        refuse it.
    """

    def __init__(self, daemon: Daemon, clock: IReactorTime, changed: Callable[[], object] = lambda: None) -> None:
        self._daemon = daemon
        self._clock = clock
        self._changed = changed
        self.definitions: tuple[ToolDefinition, ...] = ()
        self._generation: int | None = None
        self._pause = _SHORTEST_PAUSE_SECONDS
        self._asked_once = False
        self._first = Waiting()
        self._following: Deferred[None] | None = None
        self.trouble: DaemonError | None = None
        self.load_errors: tuple[Mapping[str, Any], ...] = ()
        self.takes_tool_call = False

    def notify(self, changed: Callable[[], object]) -> None:
        """Set C{changed} as the only function that is called when the tools change."""
        self._changed = changed

    def start(self) -> None:
        """Begin to ask the daemon again and again for its tools. Idempotent."""
        if self._following is not None:
            return
        self._following = Deferred.fromCoroutine(self._follow())
        self._following.addErrback(_ended)

    def stop(self) -> None:
        """Stop asking the daemon for its tools. Idempotent."""
        if self._following is not None:
            self._following.cancel()

    async def offered(self) -> tuple[ToolDefinition, ...]:
        """Return the last reported tools. Wait for the end of the first poll, but at most L{FIRST_SECONDS}."""
        if not self._asked_once:
            waiter = self._first.wait(over=False)
            await waiter.addTimeout(FIRST_SECONDS, self._clock, lambda _result, _seconds: None)
        return self.definitions

    async def _follow(self) -> None:
        while True:
            try:
                pause = await self._poll()
            except DaemonError as error:
                pause = self._note_failed(error)
            self._asked_once = True
            self._first.fire()
            await deferLater(self._clock, pause)

    async def _poll(self) -> float:
        """Poll once, store what the daemon offers, and return the seconds until the next poll.

        :raises DaemonError: if the daemon does not respond, or refuses.
        """
        wait = 0.0 if self._generation is None or self.trouble is not None else POLL_SECONDS
        asked_at = self._clock.seconds()
        found = await self._daemon.actions(self._generation, wait)
        self._pause = _SHORTEST_PAUSE_SECONDS
        self.trouble = None
        self.takes_tool_call = found.get("takes_tool_call") is True
        if found.get("generation") == self._generation:
            # Without a pause, a daemon that responds at once would be polled continuously. After a long poll there is
            # no pause, or a change during the pause would be reported late.
            at_once = wait and self._clock.seconds() - asked_at < _HELD_SECONDS
            return _UNCHANGED_PAUSE_SECONDS if at_once else 0.0
        self._learn(found)
        return _SHORTEST_PAUSE_SECONDS

    def _learn(self, found: Mapping[str, Any]) -> None:
        before = self.definitions
        self._generation = found.get("generation")
        self.load_errors = tuple(error for error in _list(found, "load_errors") if isinstance(error, Mapping))
        self.definitions = read_definitions(_list(found, "items"))
        if self.definitions != before:
            self._changed()

    def _note_failed(self, error: DaemonError) -> float:
        self.trouble = error
        self.takes_tool_call = False
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE_SECONDS)
        return pause


def _list(found: Mapping[str, Any], key: str) -> list[Any]:
    value = found.get(key)
    return value if isinstance(value, list) else []


def _ended(failure: Any) -> None:
    if not failure.check(CancelledError):
        _log.failure("polling the daemon's actions stopped after an error", failure)
