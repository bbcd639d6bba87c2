"""Composes messages of what is still so, and looks up what the record does not say of itself."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from attrs import evolve, frozen
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron.interfaces import IRuns, ISessions, IVault
from aileron.values import Message, Notice, NoticeKind, Run, RunQuery, RunState, VaultState, utc

from ._message import MessageContext, message_of

_WAITING: Mapping[NoticeKind, RunState] = {
    NoticeKind.APPROVAL: RunState.PENDING,
    NoticeKind.ASKED_ANEW: RunState.PENDING,
    NoticeKind.LOCKED: RunState.AWAITING_VAULT,
    NoticeKind.UNKNOWN: RunState.UNKNOWN,
}
"""Of what is told only as long as it is so."""

_PENDING = RunQuery(states=(RunState.PENDING,), limit=1, oldest_first=True)
_MOST_CONTENTS = 2000
_log = Logger()
T = TypeVar("T")


@frozen(kw_only=True)
class MessageComposer:
    """Composes messages.  Where the store does not answer, less is said.

    :param ids: a fresh one at each call.
    :param operator_url: of the operator's site, once that is bound.
    :param contents: whether arguments are told.
    """

    runs: IRuns
    sessions: ISessions
    vault: IVault
    clock: IReactorTime
    ids: Callable[[], str]
    operator_url: Callable[[], str]
    contents: bool = False

    async def compose(self, notices: Sequence[Notice], more: int = 0) -> Message | None:
        """Compose a message of those of C{notices} that are still so; L{None}: none is.

        :param more: how many there were besides.
        """
        found = [await _or_else(each, self._whole(each)) for each in notices]
        current = [each for each in found if each is not None]
        return message_of(current, more, await self._context()) if current else None

    async def _context(self) -> MessageContext:
        waiting, oldest = await _or_else((0, None), self._waiting())
        locked = self.vault.state() is VaultState.LOCKED
        return MessageContext(self.ids(), utc(self.clock.seconds()), self._page, waiting, oldest, locked)

    async def _waiting(self) -> tuple[int, datetime | None]:
        """Count the pending calls, and return when the oldest was received."""
        first = (await self.runs.list(_PENDING)).items
        return await self.runs.count(_PENDING), first[0].received_at if first else None

    async def _whole(self, notice: Notice) -> Notice | None:
        run = None if notice.run_id is None else await self.runs.get(notice.run_id)
        wanted = _WAITING.get(notice.kind)
        if wanted is not None and (run is None or run.state is not wanted):
            return None
        session = None if notice.session_id is None else await self.sessions.get(notice.session_id)
        return evolve(notice, agent=None if session is None else str(session.agent), arguments=self._arguments(run))

    def _arguments(self, run: Run | None) -> str | None:
        if run is None or not self.contents:
            return None
        return json.dumps(dict(run.arguments), ensure_ascii=False, default=str)[:_MOST_CONTENTS]

    def _page(self, run_id: str | None) -> str:
        return f"{self.operator_url()}/approvals" + ("" if run_id is None else f"/{run_id}")


async def _or_else(otherwise: T, looking: Awaitable[T]) -> T:
    """Return what C{looking} finds, or C{otherwise}: a row that somebody made unreadable silences nothing."""
    try:
        return await looking
    except CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - less is told then; what the error says may be contents
        _log.warn("less is told than could be: it cannot be looked up ({kind})", kind=type(error).__name__)
        return otherwise
