"""Tells the operator of what is put on record: the one way from the record to the channels."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred, gatherResults
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.interfaces import IAudit, IChannel, INotifier, IWatermarks
from aileron.values import ChannelState, Notice, NoticeKind, utc

from ._coalescer import Coalescer
from ._composer import MessageComposer
from ._delivery import DeliveryQueue
from ._record_follower import RecordFollower

_log = Logger()


@implementer(INotifier)
@define(eq=False, kw_only=True)
class Notifier:
    """Follows the record, coalesces notices into messages, and queues each message for every channel.

    Without a channel nothing is read and nothing is done.
    """

    _audit: IAudit
    _watermarks: IWatermarks
    _composer: MessageComposer
    _clock: IReactorTime
    _channels: Sequence[IChannel]
    _queues: tuple[DeliveryQueue, ...] = field(init=False)
    _coalescer: Coalescer = field(init=False)
    _follower: RecordFollower = field(init=False)
    _working: set[Deferred[None]] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self._queues = tuple(DeliveryQueue(each, self._clock) for each in self._channels)
        self._coalescer = Coalescer(self._clock, self._on_due)
        self._follower = RecordFollower(self._audit, self._watermarks, self._clock, self._coalescer.add)

    async def start(self) -> None:
        """Tell from here on, beginning with what an earlier life left untold.

        :raises StoreUnavailable: it cannot be told where that is.
        """
        if self._queues:
            await self._follower.begin()
            self._keep(self._follower.follow())

    def stop(self) -> None:
        """Tell nothing more; what has not arrived by now is told after the next start."""
        self._coalescer.stop()
        for queue in self._queues:
            queue.stop()
        for work in tuple(self._working):
            work.cancel()

    def channels(self) -> tuple[ChannelState, ...]:
        """See L{INotifier}."""
        return tuple(each.state for each in self._queues)

    async def test(self) -> tuple[ChannelState, ...]:
        """See L{INotifier}."""
        message = await self._composer.compose([Notice(NoticeKind.TEST, utc(self._clock.seconds()))])
        if message is not None:
            await gatherResults([Deferred.fromCoroutine(each.attempt(message)) for each in self._queues])
        return self.channels()

    def _on_due(self, notices: Sequence[Notice], more: int) -> None:
        self._keep(self._tell(notices, more, self._follower.sequence))

    async def _tell(self, notices: Sequence[Notice], more: int, sequence: int) -> None:
        """Queue a message; told is what arrived somewhere, and what every channel gave up."""
        message = await self._composer.compose(notices, more)
        if message is None:
            await self._follower.mark_told(sequence)
            return
        left = len(self._queues)

        def done(arrived: bool) -> None:
            nonlocal left
            left -= 1
            if arrived or left == 0:
                self._keep(self._follower.mark_told(sequence))

        for queue in self._queues:
            queue.put(message, done)

    def _keep(self, coroutine: Coroutine[Any, Any, None]) -> None:
        work = Deferred.fromCoroutine(coroutine)
        self._working.add(work)
        work.addErrback(_log_failure)
        work.addBoth(lambda _: self._working.discard(work))


def _log_failure(failure: Failure) -> None:
    if not failure.check(CancelledError):
        _log.failure("telling the operator has failed", failure)
