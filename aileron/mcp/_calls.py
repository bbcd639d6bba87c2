"""Carries out one tool call: asks the daemon, holds on through its restart, and puts the answer into words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from attrs import define, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from aileron.client import DaemonError, DaemonUnreachable, IDaemon
from aileron.values import JSON

from ._cards import DIAGNOSTICS_TOOL, STATUS_TOOL, Card, own_cards
from ._diagnosis import diagnosis
from ._link import Link
from ._texts import Said, of_error, of_run, of_status

T = TypeVar("T")

GRACE_SECONDS = 3.0
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 2.0


@define
class _Attempts:
    """What became of earlier attempts of one call."""

    cut_off: bool = False


@frozen
class Calls:
    """Every tool, by name.  All answers are results; nothing is raised but a cancellation, which ends the wait only.

    :ivar wait_seconds: how long a call waits for a decision, at most.
    :ivar new_key: mints a fresh idempotency key.
    """

    daemon: IDaemon
    link: Link
    clock: IReactorTime
    wait_seconds: int
    new_key: Callable[[], str]

    async def offered(self) -> tuple[Card, ...]:
        """Every tool, our own last."""
        return (*await self.link.offered(), *own_cards(self.wait_seconds))

    async def call(self, tool: str, arguments: Mapping[str, JSON]) -> Said:
        """Call one tool."""
        if tool == STATUS_TOOL:
            return await self._status(arguments)
        if tool == DIAGNOSTICS_TOOL:
            return await diagnosis(self.daemon, self.link)
        for card in await self.link.offered():
            if card.name == tool and card.action is not None:
                return await self._run(card.action, arguments)
        return Said(f"There is no tool {tool!r} (any more). {DIAGNOSTICS_TOOL} tells what is offered.", is_error=True)

    async def _run(self, action: str, arguments: Mapping[str, JSON]) -> Said:
        key, attempts = self.new_key(), _Attempts()
        try:
            answer = await self._persist(
                lambda left: self.daemon.run(action, arguments, key, left), self.wait_seconds, attempts
            )
        except DaemonError as error:
            return of_error(error, cut_off=attempts.cut_off)
        return of_run(answer)

    async def _status(self, arguments: Mapping[str, JSON]) -> Said:
        approval_id, wait = arguments.get("approval_id"), arguments.get("wait_seconds", 0)
        if not isinstance(approval_id, str) or not approval_id:
            return Said("approval_id must be the text that the pending answer named.", is_error=True)
        if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not wait >= 0:
            return Said("wait_seconds must be a number, 0 or more.", is_error=True)
        seconds = min(wait, self.wait_seconds)
        try:
            return of_status(await self._persist(lambda left: self._result(approval_id, left), seconds, _Attempts()))
        except DaemonUnreachable as error:
            return Said(f"{error} The action's status is not known now; ask again later.", is_error=True)
        except DaemonError as error:
            return of_error(error)

    async def _result(self, approval_id: str, wait_seconds: float) -> Mapping[str, Any]:
        return await self.daemon.result(approval_id, wait_seconds)

    async def _persist(self, ask: Callable[[float], Awaitable[T]], wait_seconds: float, attempts: _Attempts) -> T:
        """Ask until an answer comes: a daemon that went away meanwhile has the whole wait to come back."""
        started, pause = self.clock.seconds(), _FIRST_PAUSE_SECONDS
        while True:
            passed = self.clock.seconds() - started
            try:
                return await ask(max(0.0, wait_seconds - passed))
            except DaemonUnreachable as lost:
                attempts.cut_off = attempts.cut_off or lost.sent
                patience = max(wait_seconds, GRACE_SECONDS) if attempts.cut_off else GRACE_SECONDS
                if self.clock.seconds() - started + pause > patience:
                    raise DaemonUnreachable(lost.message, sent=attempts.cut_off) from None
            await deferLater(self.clock, pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
