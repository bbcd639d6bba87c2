"""Runs one action for one call, waiting for a person in the manner that its client can bear."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from aileron.client import Answer, DaemonError, IDaemon
from aileron.mcp._cards import Card
from aileron.mcp._texts import Said, of_error, of_run
from aileron.mcp.offering.structure import structured
from aileron.values import JSON

from .attempts import Attempts
from .manner import Manner
from .withdrawals import Withdrawals

_UNSETTLED = 202


@frozen
class Running:
    """Runs actions.

    :ivar withdrawals: of the calls that their clients cancelled.
    """

    daemon: IDaemon
    clock: IReactorTime
    withdrawals: Withdrawals

    async def run(self, card: Card, arguments: Mapping[str, JSON], manner: Manner) -> Said:
        """Run the action behind C{card}.  Cancelling ends the wait, never the run."""
        errand = _Errand(self.daemon, card, arguments, manner, Attempts(self.clock, manner.wait_seconds))
        try:
            answer = await self._answer(errand)
            said = structured(card, answer, of_run(answer, card.title))
        except DaemonError as error:
            said = of_error(error, cut_off=errand.attempts.cut_off)
        if said.pending is None or not manner.early:
            self.withdrawals.forget(manner.key)
        return said

    async def _answer(self, errand: _Errand) -> Answer:
        first = await self._first(errand)
        return first if first is not None and errand.is_content_with(first) else await errand.wait()

    async def _first(self, errand: _Errand) -> Answer | None:
        """How the run stands at once, where somebody wants to know that: most calls are one request."""
        if errand.card.gated and errand.card.withdrawn_on_cancel:
            return await self.withdrawals.begin(errand.manner.key, errand.begin)
        return await errand.begin() if errand.card.gated and errand.manner.early else None


@frozen
class _Errand:
    """One call, in one or two requests that are the same run."""

    daemon: IDaemon
    card: Card
    arguments: Mapping[str, JSON]
    manner: Manner
    attempts: Attempts

    async def begin(self) -> Answer:
        """How it stands at once."""
        return await self.attempts.answer(lambda _left: self._run(0))

    async def wait(self) -> Answer:
        """How it stands when it is settled or the wait is over."""
        return await self.attempts.answer(self._run)

    def is_content_with(self, first: Answer) -> bool:
        """Whether there is nothing to wait for, or nobody who wants to wait yet."""
        waits = first.status == _UNSETTLED
        return not waits or (self.manner.early and first.body.get("status") == "pending_approval")

    async def _run(self, wait_seconds: float) -> Answer:
        return await self.daemon.run(self.card.action or "", self.arguments, self.manner.key, wait_seconds)
