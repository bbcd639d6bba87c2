"""Notifies the operator of audit events: collects events of a short time into one message for all channels."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred, gatherResults
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.base.json import utc
from aileron.model.errors import AileronError
from aileron.model.features import NoticeRule
from aileron.model.interfaces.store import IAudit, IWatermarks

from ._composer import MessageComposer
from ._delivery import DeliveryQueue, NoticeChannel
from ._recipients import Address, address_nobody
from ._record_follower import RecordFollower
from .rules import TEST
from .values import ChannelState, INotifier, Message, Notice

GATHER_SECONDS = 2.0
PAUSES_SECONDS = (15.0, 30.0, 60.0, 120.0, 300.0)
"""The pauses after the first messages in a row; the last pause is used from then on."""

QUIET_SECONDS = 600.0
"""The time without a message after which the next message counts as the first in a row."""

MOST_NOTICES = 50
"""The number of notices of one message; further notices are only counted."""

_log = Logger()


@define(eq=False)
class Coalescer:
    """Collects notices of a short time into one message, instead of one message for each notice.

    :param on_due: called with the collected notices, and the number of further notices that were only counted.
    """

    _clock: IReactorTime
    _on_due: Callable[[tuple[Notice, ...], int], None]
    _gathered: dict[Notice, None] = field(factory=dict, init=False)
    _more: int = field(default=0, init=False)
    _told_at: float | None = field(default=None, init=False)
    _in_a_row: int = field(default=0, init=False)
    _due: IDelayedCall | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    def add(self, notice: Notice) -> None:
        """Add a notice to the next message. Equal notices are added once."""
        if self._stopped or notice in self._gathered:
            return
        if len(self._gathered) < MOST_NOTICES:
            self._gathered[notice] = None
        elif notice.rule.immediate:
            self._gathered.popitem()
            self._gathered[notice] = None
            self._more += 1
        else:
            self._more += 1
        self._plan(notice.rule.immediate)

    def stop(self) -> None:
        """Do not send the message that is being collected, and ignore all further notices."""
        self._stopped = True
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _plan(self, immediate: bool) -> None:
        seconds = self._wait(immediate)
        if self._due is None:
            self._due = self._clock.callLater(seconds, self._fire)
        elif self._due.getTime() - self._clock.seconds() > seconds:
            self._due.reset(seconds)

    def _wait(self, immediate: bool) -> float:
        """Return the seconds until the next message. An immediate message waits only for the shortest pause."""
        if self._told_at is None:
            return GATHER_SECONDS
        place = 0 if immediate else min(self._in_a_row, len(PAUSES_SECONDS)) - 1
        free = self._told_at + PAUSES_SECONDS[max(place, 0)] - self._clock.seconds()
        return max(GATHER_SECONDS, min(free, PAUSES_SECONDS[-1]))

    def _fire(self) -> None:
        now, self._due = self._clock.seconds(), None
        quiet = self._told_at is None or abs(now - self._told_at) > QUIET_SECONDS
        self._in_a_row = 1 if quiet else self._in_a_row + 1
        self._told_at = now
        gathered, more = tuple(self._gathered), self._more
        self._gathered, self._more = {}, 0
        self._on_due(gathered, more)


@implementer(INotifier)
@define(eq=False, kw_only=True)
class Notifier:
    """Follows the audit log, collects notices into messages, and queues each message for every channel.

    If there is no channel, the audit log is not read.
    """

    _audit: IAudit
    _watermarks: IWatermarks
    _composer: MessageComposer
    _clock: IReactorTime
    _channels: Sequence[NoticeChannel]
    _rules: Mapping[str, NoticeRule]
    _address: Address = address_nobody
    _leads: Callable[[], bool] = lambda: True
    _queues: tuple[DeliveryQueue, ...] = field(init=False)
    _coalescer: Coalescer = field(init=False)
    _follower: RecordFollower = field(init=False)
    _working: set[Deferred[None]] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self._queues = tuple(DeliveryQueue(each, self._clock) for each in self._channels)
        self._coalescer = Coalescer(self._clock, self._on_due)
        self._follower = RecordFollower(
            self._audit, self._watermarks, self._clock, self._rules, self._coalescer.add, self._leads
        )

    async def start(self) -> None:
        """Start following the audit log, from the event after the last one of which the operator was notified.

        :raises StoreUnavailable: if the store cannot be read.
        """
        if self._queues:
            await self._follower.begin()
            self._keep(self._follower.follow())

    def stop(self) -> None:
        """Stop notifying. Messages that have not arrived are sent after the next start."""
        self._coalescer.stop()
        for queue in self._queues:
            queue.stop()
        for work in tuple(self._working):
            work.cancel()

    def channels(self) -> tuple[ChannelState, ...]:
        return tuple(each.state for each in self._queues)

    async def test(self) -> tuple[ChannelState, ...]:
        message = await self._composer.compose([Notice(TEST, utc(self._clock.seconds()))])
        if message is not None:
            await gatherResults([Deferred.fromCoroutine(each.attempt(message)) for each in self._queues])
        return self.channels()

    def _on_due(self, notices: Sequence[Notice], more: int) -> None:
        self._keep(self._queue_message(notices, more, self._follower.sequence))

    async def _queue_message(self, notices: Sequence[Notice], more: int, sequence: int) -> None:
        """Compose a message, and queue it for every channel.

        The operator counts as notified of the events up to C{sequence} once one channel has delivered the message, all
        channels have given up, or no notice applies any more.
        """
        message = await self._composer.compose(notices, more)
        addressed = [] if message is None else await self._address_all(message)
        left = len(addressed)
        if not left:
            await self._follower.mark_notified(sequence)
            return

        def done(arrived: bool) -> None:
            nonlocal left
            left -= 1
            if arrived or left == 0:
                self._keep(self._follower.mark_notified(sequence))

        for queue, each in addressed:
            queue.put(each, done)

    async def _address_all(self, message: Message) -> list[tuple[DeliveryQueue, Message]]:
        """Return what each channel is told. A channel of an account is left out if the account may decide nothing."""
        found = list[tuple[DeliveryQueue, Message]]()
        for channel, queue in zip(self._channels, self._queues, strict=True):
            told = message if channel.person is None else await self._address_person(channel.person, message)
            if told is not None:
                found.append((queue, told))
        return found

    async def _address_person(self, person: str, message: Message) -> Message | None:
        """Return what an account is told, or None for nothing, also if the accounts cannot be read. That is logged."""
        try:
            return await self._address(person, message)
        except AileronError as error:
            _log.warn("{person} is not notified: {why}", person=person, why=error.message)
            return None

    def _keep(self, coroutine: Coroutine[Any, Any, None]) -> None:
        work = Deferred.fromCoroutine(coroutine)
        self._working.add(work)
        work.addErrback(_log_failure)
        work.addBoth(lambda _: self._working.discard(work))


def _log_failure(failure: Failure) -> None:
    if not failure.check(CancelledError):
        _log.failure("notifying the operator failed", failure)
