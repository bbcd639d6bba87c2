"""The notifier: hears what is put on record, gathers it, says it, and sends it by every channel."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred, gatherResults
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.interfaces import IAudit, IChannel, INotifier, IWatermarks
from aileron.values import ChannelState, Event, Message, Notice, NoticeKind, utc

from ._details import Details
from ._following import Following
from ._gathering import Gathering
from ._hearing import Floods, notice_of
from ._outbox import Outbox
from ._wording import message_of

_log = Logger()


@implementer(INotifier)
@define(eq=False)
class Notifier:
    """See L{INotifier}.  Without a channel nothing is read and nothing is done."""

    _audit: IAudit
    _watermarks: IWatermarks
    _details: Details
    _clock: IReactorTime
    _channels: Sequence[IChannel]
    _floods: Floods = field(factory=Floods, init=False)
    _outboxes: tuple[Outbox, ...] = field(init=False)
    _gathering: Gathering = field(init=False)
    _following: Following = field(init=False)
    _working: set[Deferred[None]] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self._outboxes = tuple(Outbox(each, self._clock) for each in self._channels)
        self._gathering = Gathering(self._clock, self._tell)
        self._following = Following(self._audit, self._watermarks, self._clock, self._hear)

    async def start(self) -> None:
        """Tell from here on, beginning with what an earlier life left untold.

        :raises StoreUnavailable: it cannot be told where that is.
        """
        if self._outboxes:
            await self._following.begin()
            self._keep(Deferred.fromCoroutine(self._following.follow()))

    def stop(self) -> None:
        """Tell nothing more; what has not arrived by now is told after the next start."""
        self._gathering.stop()
        for outbox in self._outboxes:
            outbox.stop()
        for work in tuple(self._working):
            work.cancel()

    def channels(self) -> tuple[ChannelState, ...]:
        """See L{INotifier}."""
        return tuple(each.state() for each in self._outboxes)

    async def test(self) -> tuple[ChannelState, ...]:
        """See L{INotifier}."""
        notice = Notice(NoticeKind.TEST, utc(self._clock.seconds()))
        message = message_of((notice,), 0, await self._details.around())
        await gatherResults([Deferred.fromCoroutine(each.attempt(message)) for each in self._outboxes])
        return self.channels()

    def _hear(self, event: Event) -> None:
        notice = notice_of(event)
        if notice is None:
            return
        self._gathering.add(notice)
        flood = self._floods.follow(notice)
        if flood is not None:
            self._gathering.add(flood)

    def _tell(self, notices: Sequence[Notice], more: int) -> None:
        self._keep(Deferred.fromCoroutine(self._say(notices, more, self._following.sequence)))

    async def _say(self, notices: Sequence[Notice], more: int, sequence: int) -> None:
        current = await self._details.current(notices)
        if not current:
            await self._following.told(sequence)
            return
        self._send(message_of(current, more, await self._details.around()), sequence)

    def _send(self, message: Message, sequence: int) -> None:
        """Told is what arrived somewhere, and what every channel gave up."""
        left = len(self._outboxes)

        def done(arrived: bool) -> None:
            nonlocal left
            left -= 1
            if arrived or left == 0:
                self._keep(Deferred.fromCoroutine(self._following.told(sequence)))

        for outbox in self._outboxes:
            outbox.put(message, done)

    def _keep(self, work: Deferred[None]) -> None:
        self._working.add(work)
        work.addErrback(_note)
        work.addBoth(lambda _: self._working.discard(work))


def _note(failure: Failure) -> None:
    if not failure.check(CancelledError):
        _log.failure("telling the operator has failed", failure)
