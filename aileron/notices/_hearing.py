"""Which of the things that are put on record concern the operator, and what is to be told of them."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from datetime import datetime, timedelta

from attrs import define, field

from aileron.values import Event, Notice, NoticeKind

_KINDS: Mapping[str, NoticeKind] = {
    "approval.requested": NoticeKind.APPROVAL,
    "approval.stale": NoticeKind.ASKED_ANEW,
    "execution.unknown": NoticeKind.UNKNOWN,
    "run.awaiting_vault": NoticeKind.LOCKED,
    "tamper.detected": NoticeKind.TAMPER,
    "session.broken": NoticeKind.BROKEN,
    "pause.begun": NoticeKind.PAUSED,
    "pause.ended": NoticeKind.RESUMED,
}
_WHY: Mapping[NoticeKind, str] = {
    NoticeKind.ASKED_ANEW: "reason",
    NoticeKind.TAMPER: "found",
    NoticeKind.BROKEN: "why",
    NoticeKind.PAUSED: "reason",
    NoticeKind.RESUMED: "reason",
}
_FLOOD, _FLOOD_WITHIN, _FLOOD_AGAIN = 10, timedelta(minutes=1), timedelta(minutes=10)
_MOST_SESSIONS = 1024


def notice_of(event: Event) -> Notice | None:
    """What is to be told of C{event}; L{None}: nothing."""
    kind = _KINDS.get(event.type)
    if kind is None or (kind is NoticeKind.ASKED_ANEW and not event.payload.get("was_approved")):
        return None  # what still waits was told of when it was asked first
    why = event.payload.get(_WHY[kind]) if kind in _WHY else None
    return Notice(kind, event.at, event.action, event.session_id, event.run_id, why if isinstance(why, str) else None)


@define(eq=False)
class Floods:
    """Notices when a session asks and asks: the caps of what may wait let some through, and each is a question."""

    _asked: OrderedDict[str, deque[datetime]] = field(factory=OrderedDict, init=False)
    _told: OrderedDict[str, datetime] = field(factory=OrderedDict, init=False)

    def follow(self, notice: Notice) -> Notice | None:
        """Count C{notice} if it is a session's question; what is to be told where it is one too many."""
        session = notice.session_id
        if notice.kind is not NoticeKind.APPROVAL or session is None:
            return None
        times = self._asked.setdefault(session, deque(maxlen=_FLOOD))
        times.append(notice.at)
        _bound(self._asked, session)
        if len(times) < _FLOOD or times[-1] - times[0] > _FLOOD_WITHIN or self._is_told(session, notice.at):
            return None
        self._told[session] = notice.at
        _bound(self._told, session)
        why = f"It has asked {_FLOOD} times within a minute."
        return Notice(NoticeKind.FLOOD, notice.at, session_id=session, why=why)

    def _is_told(self, session: str, now: datetime) -> bool:
        last = self._told.get(session)
        return last is not None and abs(now - last) < _FLOOD_AGAIN


def _bound(kept: OrderedDict[str, deque[datetime]] | OrderedDict[str, datetime], session: str) -> None:
    kept.move_to_end(session)
    if len(kept) > _MOST_SESSIONS:
        kept.popitem(last=False)
