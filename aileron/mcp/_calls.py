"""Carries out one tool call: asks the daemon, and puts the answer into words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from aileron.client import DaemonError, DaemonUnreachable, IDaemon
from aileron.values import JSON

from ._cards import DESCRIBE_TOOL, DIAGNOSTICS_TOOL, SEARCH_TOOL, STATUS_TOOL, Card, own_cards
from ._diagnosis import diagnosis
from ._forms import Form, filled_in, said_by_a_person
from ._link import Link
from ._texts import Said, is_misdirected, of_error, of_form, of_status, with_their_words
from ._tools import Manner
from .offering.access import ACCESS_CARDS, Shortlist, asked_for, described, found
from .waiting.running import Attempts, Running
from .waiting.withdrawals import REASON, Withdrawals

MOST_RUNS = 20
_KEPT = ("action", "status", "gated", "received_at", "changed_at", "reason")


@frozen
class Calls:
    """Every tool, by name.  All answers are results; nothing is raised but a cancellation, which ends the wait only.

    :ivar wait_seconds: how long an agent is told that it may wait for news of a call, at most.
    :ivar withdrawals: takes back calls that their clients cancelled.
    :ivar shortlist: which actions are listed.
    """

    daemon: IDaemon
    link: Link
    clock: IReactorTime
    wait_seconds: int
    withdrawals: Withdrawals
    shortlist: Shortlist

    async def offered(self, *, hears_changes: bool) -> tuple[Card, ...]:
        """Every tool that is listed, our own last; those that lead to the others only where some are not.

        :param hears_changes: whether who asks hears of what is added later; if not, that is one of the others.
        """
        cards = await self.link.offered()
        listed = await self.shortlist.of(cards)
        access = ACCESS_CARDS if len(listed) < len(cards) or not hears_changes else ()
        ours = sorted((*own_cards(self.wait_seconds), *access), key=lambda card: card.name)
        return (*listed, *ours)

    async def actions(self) -> tuple[Card, ...]:
        """Every action, listed or not."""
        return await self.link.offered()

    async def recent_runs(self) -> Sequence[Mapping[str, Any]]:
        """See L{aileron.mcp.offering.shelf.IOffers}."""
        return await recent_runs(self.daemon)

    async def call(self, tool: str, arguments: Mapping[str, JSON], manner: Manner) -> Said:
        """Call one tool."""
        if tool == STATUS_TOOL:
            return await self._status(arguments, manner)
        if tool == DIAGNOSTICS_TOOL:
            return await diagnosis(self.daemon, self.link, self.shortlist)
        cards = await self.link.offered()
        if tool == SEARCH_TOOL:
            return found(cards, arguments.get("query"))
        if tool == DESCRIBE_TOOL:
            return described(cards, arguments.get("name"))
        asked = asked_for(cards, tool, arguments)
        if isinstance(asked, Said):
            return of_error(self.link.trouble) if is_misdirected(self.link.trouble) else asked
        return await self._run(*asked, manner)

    async def _run(self, card: Card, arguments: Mapping[str, JSON], manner: Manner) -> Said:
        given = filled_in(card, arguments, manner.answers)
        if isinstance(given, Form):
            return of_form(given)
        said = await Running(self.daemon, self.clock, self.withdrawals).run(card, given, manner)
        return with_their_words(said, said_by_a_person(card, arguments, manner.answers))

    async def withdraw(self, key: str) -> None:
        """See L{aileron.mcp._tools.ICalls}."""
        await self.withdrawals.withdraw(key)

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        """See L{aileron.mcp._tools.ICalls}."""
        return await self.daemon.run_status(run_id, 0)

    async def withdraw_run(self, run_id: str) -> None:
        """See L{aileron.mcp._tools.ICalls}."""
        run = await self.daemon.run_status(run_id, 0)
        card = self._card_of(run)
        if card is not None and card.withdrawn_on_cancel and run.get("status") == "pending_approval":
            await self.daemon.withdraw(run_id, REASON)

    def _card_of(self, run: Mapping[str, Any]) -> Card | None:
        return next((card for card in self.link.cards if card.action == run.get("action")), None)

    async def _status(self, arguments: Mapping[str, JSON], manner: Manner) -> Said:
        approval_id, wait = arguments.get("approval_id"), arguments.get("wait_seconds", 0)
        if not isinstance(approval_id, str) or not approval_id:
            return Said("approval_id must be the text that the pending answer named.", is_error=True)
        if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not wait >= 0:
            return Said("wait_seconds must be a number, 0 or more.", is_error=True)
        attempts = Attempts(self.clock, min(wait, manner.wait_seconds))
        try:
            return of_status(await attempts.answer(lambda left: self.daemon.result(approval_id, left)))
        except DaemonUnreachable as error:
            if is_misdirected(error):
                return of_error(error)
            return Said(f"{error} The action's status is not known now; ask again later.", is_error=True)
        except DaemonError as error:
            return of_error(error)


async def recent_runs(daemon: IDaemon) -> Sequence[Mapping[str, Any]]:
    """The newest runs of this session, newest first; arguments and results, which may be long, are left out.

    :raises DaemonError: they cannot be told.
    """
    items = (await daemon.runs(MOST_RUNS)).get("items")
    return [_told(run) for run in items if isinstance(run, Mapping)] if isinstance(items, list) else []


def _told(run: Mapping[str, Any]) -> dict[str, Any]:
    failure = run.get("failure")
    why = {"failure": failure.get("message")} if isinstance(failure, Mapping) else {}
    return {"approval_id": run.get("id"), **{key: run.get(key) for key in _KEPT}, **why}
