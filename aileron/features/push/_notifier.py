"""Notifies the registered browsers of how many requests are pending."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred, gatherResults
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.model.errors import BindingFailed, InvalidRequest, NotFound, StoreUnavailable, VaultLocked
from aileron.model.queries import RunQuery
from aileron.model.runs import RunState

from ._browsers import PushBrowsers
from ._delivery import BrowserDelivery
from ._sender import BrowserGone, PushRefused, PushSender
from .values import TEST, PushMessage

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from twisted.internet.interfaces import IReactorTime

    from aileron.model.interfaces.store import IAudit, IRuns, IWatermarks

ROW = "push"
"""The watermark with what each browser was last sent."""

GATHER_SECONDS = 2.0
"""The time for which a request must be pending before browsers are notified of it."""

_WAIT_SECONDS, _IDLE_SECONDS, _REST_SECONDS = 15.0, 300.0, 5.0
_MOST_SECONDS, _LEAST_SECONDS, _TEST_SECONDS = 24 * 3600, 60, 60
_MOST_LISTED = 50
_PENDING = RunQuery(states=(RunState.PENDING,), limit=_MOST_LISTED)
_log = Logger()


@frozen
class PendingCounter:
    """Counts the pending requests that are not snoozed.

    :param read_snoozes: returns until when requests are put aside, by the run's ID.
    """

    _runs: IRuns
    _read_snoozes: Callable[[], Awaitable[Mapping[str, datetime]]]
    _clock: IReactorTime

    async def count(self) -> PushMessage:
        """Return the message that says how many requests are pending now.

        If none is pending, its ID is empty and its count is 0.

        :raises StoreUnavailable: if the store cannot be read.
        """
        found, total = await self._runs.approvals(_PENDING), await self._runs.count(_PENDING)
        snoozed = await self._read_snoozes()
        shown = [each for each in found.items if each.run.id not in snoozed]
        count = max(total - len(snoozed), len(shown))
        if not shown:
            return PushMessage("", 0, _MOST_SECONDS)
        newest = max(shown, key=lambda each: each.run.id)
        ends = newest.expires_at
        left = _MOST_SECONDS if ends is None else round(ends.timestamp() - self._clock.seconds())
        return PushMessage(newest.run.id, count, max(_LEAST_SECONDS, min(left, _MOST_SECONDS)))


@define(eq=False, kw_only=True)
class PushNotifier:
    """Compares what each browser was last sent with what is pending, and sends the difference.

    Nothing is queued, so nothing is lost: while the vault is locked or a push service does not answer, the difference
    remains. A browser that was just registered is sent changes only.

    :param deliveries: the L{BrowserDelivery} of each browser, by its ID.
    :param leads: returns whether this daemon is the one of several that notifies browsers.
    """

    _audit: IAudit
    _watermarks: IWatermarks
    _counter: PendingCounter
    _browsers: PushBrowsers
    _sender: PushSender
    _deliveries: dict[str, BrowserDelivery]
    _clock: IReactorTime
    _leads: Callable[[], bool] = lambda: True
    _following: Deferred[None] | None = field(default=None, init=False)

    async def start(self) -> None:
        """Start to follow the audit log.

        :raises StoreUnavailable: if the store cannot be read.
        """
        self._restore((await self._watermarks.all()).get(ROW, "{}"))
        self._following = Deferred.fromCoroutine(self._follow())
        self._following.addErrback(_log_failure)

    def stop(self) -> None:
        """Stop sending push messages."""
        if self._following is not None:
            self._following.cancel()

    async def set_baseline(self, browser_id: str) -> None:
        """Record that a browser that was just registered knows what is pending now, which its page shows.

        :raises StoreUnavailable: if the store cannot be read.
        """
        message = await self._counter.count()
        self._deliveries[browser_id] = BrowserDelivery(message.id, message.count)

    async def test(self) -> None:
        """Send a test to every browser, one attempt each.

        :raises VaultLocked: if the vault is not unlocked.
        :raises StoreUnavailable: if the store cannot be read or written.
        """
        counted, key = await self._counter.count(), await self._browsers.open_key()
        message = PushMessage(TEST, counted.count, _TEST_SECONDS)
        await self._send_all(message, key, {each.id: True for each in self._browsers.list()})

    async def look(self) -> bool:
        """Send every browser that is due what has changed since its last message. If the vault is locked, send nothing.

        :return: whether to call this again later, because a browser has a change but its next message is not due yet.
            False if the vault is locked.
        :raises StoreUnavailable: if the store cannot be read.
        """
        await self._browsers.remove_orphans()
        browsers = self._browsers.list()
        if not browsers:
            return False
        message, now = await self._counter.count(), self._clock.seconds()
        changes = {each.id: self._compare(each.id, message) for each in browsers}
        news = {browser_id: is_new for browser_id, is_new in changes.items() if is_new is not None}
        due = {name: is_new for name, is_new in news.items() if self._deliveries[name].is_due(now, is_new=is_new)}
        if due:
            try:
                key = await self._browsers.open_key()
            except VaultLocked:
                return False
            await self._send_all(message, key, due)
        return len(due) < len(news)

    async def _follow(self) -> None:
        sequence = 0 if (head := await self._audit.head()) is None else head[0]
        led = True
        while True:
            pause = _REST_SECONDS
            try:
                if not self._leads():
                    led = False
                    await deferLater(self._clock, _REST_SECONDS)
                    continue
                if not led:  # what the daemon before has sent
                    self._restore((await self._watermarks.all()).get(ROW, "{}"))
                    led = True
                wait = _WAIT_SECONDS if self._browsers.list() else _IDLE_SECONDS
                news = await self._audit.news(sequence, GATHER_SECONDS if await self.look() else wait)
                sequence = news[-1].sequence if news else sequence
                pause = GATHER_SECONDS if news else 0.0
            except CancelledError:
                raise
            except StoreUnavailable as error:
                _log.warn("browsers cannot be notified yet: {why}", why=error.message)
            except Exception:  # noqa: BLE001 - the loop must continue: otherwise notifications would stop unnoticed
                _log.failure("notifying browsers")
            await deferLater(self._clock, pause)

    def _compare(self, browser_id: str, message: PushMessage) -> bool | None:
        """Compare the pending requests with what a browser was last sent.

        :return: True if there is a new request, False if fewer are pending than the browser knows of, or None if
            nothing changed.
        """
        delivery = self._deliveries.get(browser_id)
        if delivery is None:
            self._deliveries[browser_id] = BrowserDelivery(message.id, message.count)
            return None
        if message.count == delivery.count and message.id <= delivery.newest:
            return None
        return message.count > delivery.count or message.id > delivery.newest

    async def _send_all(self, message: PushMessage, key: EllipticCurvePrivateKey, urgent: Mapping[str, bool]) -> None:
        """Send a message to several browsers, and store what each was last sent.

        :param urgent: whether a device is to be woken, by the browser's ID.
        :raises StoreUnavailable: if it cannot be stored.
        """
        await gatherResults(
            [Deferred.fromCoroutine(self._send(message, key, *each)) for each in urgent.items()],
            consumeErrors=True,
        )
        kept = {each.id: self._deliveries.get(each.id) for each in self._browsers.list()}
        await self._watermarks.put(
            ROW, json.dumps({name: each.written for name, each in kept.items() if each is not None})
        )

    async def _send(self, message: PushMessage, key: EllipticCurvePrivateKey, browser_id: str, urgent: bool) -> None:
        delivery = self._deliveries.setdefault(browser_id, BrowserDelivery())
        try:
            subscription = await self._browsers.open(browser_id)
            await self._sender.send(message, subscription, key, urgent=urgent)
        except (VaultLocked, NotFound):
            return
        except BrowserGone:
            await self._browsers.remove(browser_id, why="Its push service no longer knows it.")
        except PushRefused as error:
            delivery.fail(error.problem, error.retry_seconds, self._clock.seconds())
        except (BindingFailed, InvalidRequest):
            delivery.fail("Its entry in the vault cannot be read. Remove this browser.", 0, self._clock.seconds())
        else:
            delivery.succeed(message, self._clock.seconds(), is_test=message.id == TEST)

    def _restore(self, text: str) -> None:
        """Load what browsers were last sent from the stored text. Malformed entries are ignored."""
        try:
            written = json.loads(text)
            for name, (newest, count, sent_at) in written.items():
                self._deliveries[str(name)] = BrowserDelivery(str(newest), int(count), sent_at)
        except (ValueError, TypeError, AttributeError):
            _log.warn("what browsers were last sent cannot be read; they are sent changes from now on")


def _log_failure(failure: Failure) -> None:
    if not failure.check(CancelledError):
        _log.failure("notifying browsers has stopped", failure)
