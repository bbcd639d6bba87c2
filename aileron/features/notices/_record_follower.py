"""Follows the audit log, and finds the events of which the operator is notified: once each, also after a restart."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from attrs import define, field
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from aileron.model.audit import Event
from aileron.model.errors import StoreUnavailable
from aileron.model.features import NoticeRule
from aileron.model.interfaces.store import IAudit, IWatermarks

from .rules import APPROVAL, FLOOD
from .values import Notice

ROW = "notices"
"""The watermark with the sequence up to which the operator was notified."""

MOST_BEHIND = 5000
"""The number of events that are read at most, if the operator was not notified for long."""

_WAIT_SECONDS, _BREATH_SECONDS, _PAUSE_SECONDS = 300.0, 0.5, 5.0
_MANY, _FLOOD_WITHIN, _FLOOD_AGAIN = 10, timedelta(minutes=1), timedelta(minutes=10)
_MOST_SESSIONS = 1024
_log = Logger()


def notice_of(event: Event, rules: Mapping[str, NoticeRule]) -> Notice | None:
    """Return the notice of an event, or None if the operator is not notified of it."""
    rule = rules.get(event.type)
    if rule is None or (rule.only_if is not None and not event.payload.get(rule.only_if)):
        return None
    why = None if rule.reason is None else event.payload.get(rule.reason)
    return Notice(rule, event.at, event.action, event.session_id, event.run_id, why if isinstance(why, str) else None)


@define
class _AskTimes:
    """The times of a session's latest requests, and of the latest notice that the session requests too much."""

    times: deque[datetime] = field(factory=lambda: deque(maxlen=_MANY))
    told_at: datetime | None = None


@define(eq=False)
class FloodDetector:
    """Detects sessions that request approvals too often.

    The limits on pending approvals do not prevent this: a decided request makes room for the next.
    """

    _sessions: OrderedDict[str, _AskTimes] = field(factory=OrderedDict, init=False)

    def check(self, notice: Notice) -> Notice | None:
        """Count a session's request for approval. If there are too many, return a notice that says so, else None."""
        session = notice.session
        if notice.rule is not APPROVAL or session is None:
            return None
        asked = self._sessions.setdefault(session, _AskTimes())
        self._sessions.move_to_end(session)
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        asked.times.append(notice.at)
        told_lately = asked.told_at is not None and abs(notice.at - asked.told_at) < _FLOOD_AGAIN
        if len(asked.times) < _MANY or asked.times[-1] - asked.times[0] > _FLOOD_WITHIN or told_lately:
            return None
        asked.told_at = notice.at
        why = f"It has asked {_MANY} times within a minute."
        return Notice(FLOOD, notice.at, session=session, reason=why)


@define(eq=False)
class RecordFollower:
    """Reads the audit log as it grows, from the event after the last one of which the operator was notified.

    :param rules: how the operator is notified of events, by type.
    :param on_notice: called with each notice, in order.
    :param leads: returns whether this daemon is the one of several that notifies the operator.
    :ivar sequence: the sequence of the last event that was read.
    """

    _audit: IAudit
    _watermarks: IWatermarks
    _clock: IReactorTime
    _rules: Mapping[str, NoticeRule]
    _on_notice: Callable[[Notice], None]
    _leads: Callable[[], bool] = lambda: True
    _led: bool = field(default=True, init=False)
    sequence: int = field(default=0, init=False)
    _told: int = field(default=0, init=False)
    _floods: FloodDetector = field(factory=FloodDetector, init=False)

    async def begin(self) -> None:
        """Load the sequence of the last event of which the operator was notified.

        Without one, begin with the next event.

        :raises StoreUnavailable: if the store cannot be read.
        """
        head = await self._audit.head()
        end = 0 if head is None else head[0]
        written = (await self._watermarks.all()).get(ROW)
        if written is None:
            await self._watermarks.put(ROW, str(end))
        self.sequence = self._told = _place(written, end)

    async def follow(self) -> None:
        """Read events until cancelled. Failures of the store, and of single events, are logged."""
        while True:
            pause = _PAUSE_SECONDS
            try:
                pause = await self._read()
            except CancelledError:
                raise
            except StoreUnavailable as error:
                _log.warn("the audit log cannot be read for notifications yet: {why}", why=error.message)
            except Exception:  # noqa: BLE001 - the loop must continue: otherwise notifications would stop unnoticed
                _log.failure("reading the audit log for notifications")
            if pause:
                await deferLater(self._clock, pause)

    async def mark_notified(self, sequence: int) -> None:
        """Store that the operator was notified of all events up to C{sequence}. A failure is logged."""
        if sequence <= self._told:
            return
        self._told = sequence
        try:
            await self._watermarks.put(ROW, str(sequence))
        except StoreUnavailable as error:
            _log.warn("notifications may be repeated after a restart: {why}", why=error.message)

    async def _read(self) -> float:
        """Wait for new events and process them.

        :return: the seconds to pause before the next read: 0 if no event came within the wait.
        """
        # guard of several daemons: one of them notifies the operator
        #    -> features.notices.test_leading.LeadingTests.test_takes_over
        if not self._leads():
            self._led = False
            return _PAUSE_SECONDS
        if not self._led:  # go on where the earlier daemon stopped
            await self.begin()
            self._led = True
        news = await self._audit.news(self.sequence, _WAIT_SECONDS)
        for record in news:
            self.sequence = record.sequence  # set first, so that an event that fails is skipped for good
            notice = notice_of(record.event, self._rules)
            if notice is not None:
                self._on_notice(notice)
                flood = self._floods.check(notice)
                if flood is not None:
                    self._on_notice(flood)
        return _BREATH_SECONDS if news else 0.0


def _place(written: str | None, end: int) -> int:
    """Return the sequence from which to follow the audit log.

    This is the stored one, but at most L{MOST_BEHIND} events before the end of the log. It is never after the end,
    since an older backup may have been restored.

    :param written: the stored sequence, or None if there is none.
    :param end: the sequence of the last event.
    """
    if written is None or not written.isdecimal() or len(written) > 18:
        return end
    return max(min(int(written), end), end - MOST_BEHIND)
