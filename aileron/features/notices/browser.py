"""Provides the texts of the notifications that an open page shows in its browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from attrs import frozen

from aileron.base.addresses import PAGES_DOMAIN, is_loopback, read_origin
from aileron.model.errors import NotFound
from aileron.model.interfaces.store import IRuns
from aileron.model.queries import RunQuery
from aileron.model.runs import RunState

from ._composer import MessageComposer
from .rules import APPROVAL
from .values import Message, Notice, PendingRequests

_MOST_LISTED = 50
_NEWEST = RunQuery(states=(RunState.PENDING,), limit=_MOST_LISTED)


@frozen
class BrowserNotices:
    """The notifications of pages that are open in a browser. No method stores anything.

    :param read_snoozes: returns the snoozed requests: the end of each snooze, by the run's id.
    """

    _runs: IRuns
    _composer: MessageComposer
    _read_snoozes: Callable[[], Awaitable[Mapping[str, datetime]]]

    async def list_pending(self) -> PendingRequests:
        """Return the newest requests that wait for a decision and are not snoozed.

        :raises StoreUnavailable: if the store cannot be read.
        """
        found, total = await self._runs.list(_NEWEST), await self._runs.count(_NEWEST)
        snoozed = await self._read_snoozes()
        items = tuple(run.id for run in found.items if run.id not in snoozed)
        title = f"Aileron: {APPROVAL.many.format(n=total - len(snoozed))}"
        return PendingRequests(items, found.cursor is not None, title)

    async def compose(self, run_id: str) -> Message:
        """Return the message about a pending request. A desktop notification shows the same message.

        :raises NotFound: if no such request waits.
        :raises StoreUnavailable: if the store cannot be read.
        """
        run = await self._runs.get(run_id)
        notice = None if run is None else Notice(APPROVAL, run.received_at, run.action, run.session_id, run.id)
        message = None if notice is None else await self._composer.compose([notice])
        if message is None:
            raise NotFound("This request is not pending.")
        return message

    def explain_unavailable(self) -> str | None:
        """Return why a browser cannot be notified at the present address of the pages, or None if it can be."""
        origin = read_origin(self._composer.operator_url())
        if origin.host.endswith(f".{PAGES_DOMAIN}"):
            return (
                "These pages have a new address at each start of the daemon, and a browser allows notifications for "
                "one address only. To keep the address, set operator_host to localhost in config.yaml."
            )
        if origin.scheme != "https" and not is_loopback(origin.host):
            return "Browsers show notifications only for pages at localhost or over HTTPS."
        return None
