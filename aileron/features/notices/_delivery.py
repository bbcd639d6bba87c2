"""Delivers messages by one channel, with retries, without delaying other work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any

from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.json import utc

from .values import ChannelState, Message

PAUSES_SECONDS = (2.0, 10.0, 60.0)
ATTEMPT_SECONDS = 30.0
MOST_WAITING = 20
_log = Logger()

Done = Callable[[bool], None]
"""Called once for each message, with True if it was delivered."""


@frozen
class Undelivered(Exception):
    """The error of a message that a channel did not deliver.

    :ivar problem: the reason for the operator and the log: a sentence without addresses and secrets.
    :ivar again: whether a retry may succeed.
    """

    problem: str
    again: bool = True


@frozen
class NoticeChannel:
    """A channel by which messages are sent to the operator.

    :ivar name: the name in the configuration.
    :ivar kind: C{desktop}, C{webhook} or C{apprise}.
    :ivar deliver: delivers a message in one attempt, and can be cancelled. It raises L{Undelivered} unless the delivery
        was confirmed. Of any other exception only the class is reported.
    :ivar person: the name of the account that the channel belongs to, or None for the operator.
    """

    name: str
    kind: str
    deliver: Callable[[Message], Coroutine[Any, Any, None]] = field(repr=False)
    person: str | None = None


@define(eq=False)
class DeliveryQueue:
    """The queue of one channel, which delivers messages in order. If it is full, the oldest message is dropped."""

    _channel: NoticeChannel
    _clock: IReactorTime
    _waiting: deque[tuple[Message, Done]] = field(factory=deque, init=False)
    _state: ChannelState = field(init=False)
    _delivering: Deferred[None] | None = field(default=None, init=False)

    @_state.default
    def _idle(self) -> ChannelState:
        return ChannelState(self._channel.name, self._channel.kind)

    @property
    def state(self) -> ChannelState:
        """The state of the channel."""
        return evolve(self._state, waiting=len(self._waiting))

    def put(self, message: Message, done: Done) -> None:
        """Queue a message for delivery.

        :param done: called once: with True if the message was delivered, with False if it was dropped or all attempts
            failed.
        """
        if len(self._waiting) >= MOST_WAITING:
            self._give_up(self._waiting.popleft()[1])
        self._waiting.append((message, done))
        if self._delivering is None:
            self._delivering = Deferred.fromCoroutine(self._deliver_all())
            self._delivering.addErrback(self._on_end)
            if self._delivering.called:  # it was delivered at once
                self._delivering = None

    def stop(self) -> None:
        """Stop delivering, and drop all messages in the queue."""
        self._waiting.clear()
        if self._delivering is not None:
            self._delivering.cancel()

    async def attempt(self, message: Message) -> Undelivered | None:
        """Deliver a message now, in one attempt. The state of the channel gets the result, and an error is logged.

        :return: the error, or None if it was delivered.
        """
        delivering = Deferred.fromCoroutine(self._channel.deliver(message))
        try:
            await delivering.addTimeout(ATTEMPT_SECONDS, self._clock)
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - an error of one channel must not stop the others
            failed = _to_undelivered(error)
            self._state = evolve(self._state, problem=failed.problem, problem_at=self._now())
            _log.warn("{channel} cannot be notified: {why}", channel=self._channel.name, why=failed.problem)
            return failed
        self._state = evolve(self._state, sent=self._state.sent + 1, sent_at=self._now(), problem=None, problem_at=None)
        return None

    async def _deliver_all(self) -> None:
        while self._waiting:
            message, done = self._waiting[0]
            arrived = await self._insist(message)
            if (
                self._waiting and self._waiting[0][0] is message
            ):  # otherwise the message was dropped meanwhile, or the queue was stopped
                self._waiting.popleft()
                if arrived:
                    done(True)
                else:
                    self._give_up(done)
        self._delivering = None

    async def _insist(self, message: Message) -> bool:
        failed = await self.attempt(message)
        for pause in PAUSES_SECONDS:
            if failed is None or not failed.again:
                break
            await deferLater(self._clock, pause)
            failed = await self.attempt(message)
        return failed is None

    def _give_up(self, done: Done) -> None:
        self._state = evolve(self._state, failed=self._state.failed + 1)
        done(False)

    def _on_end(self, failure: Failure) -> None:
        if not failure.check(CancelledError):
            _log.failure("notifying {channel} has stopped", failure, channel=self._channel.name)
        self._delivering = None

    def _now(self) -> datetime:
        return utc(self._clock.seconds())


def _to_undelivered(error: Exception) -> Undelivered:
    if isinstance(error, Undelivered):
        return error
    if isinstance(error, TimeoutError):
        return Undelivered(f"No response within {ATTEMPT_SECONDS:g} s.")
    # Not the error's text: it may contain an address, and an address may be a secret.
    return Undelivered(f"It failed ({type(error).__name__}).")
