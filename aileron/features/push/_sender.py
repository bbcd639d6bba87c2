"""Sends one message to one browser, by its push service (RFC 8030)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as Overdue

from aileron.connectors import (
    AddressRefused,
    Flight,
    OutgoingRequest,
    ServiceAnswer,
    ServiceUnreachable,
    TooLarge,
)

from ._browsers import check_endpoint
from ._encryption import encrypt, pad, sign
from ._payload import write_payload
from .values import PushMessage, Subscription

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from twisted.internet.interfaces import IReactorTime

ATTEMPT_SECONDS = 20.0
TOPIC = "pending"
"""The topic of all messages: a push service keeps only the newest one for a browser that is offline."""

_MOST_RESPONSE_BYTES = 16 * 1024
_GONE = frozenset((404, 410))
_TOO_MANY = 429
_MOST_RETRY_SECONDS = 3600


class BrowserGone(Exception):
    """Raised if the push service of a browser no longer knows the browser, which then can never be notified again."""


@frozen
class PushRefused(Exception):
    """Raised if a push service did not accept a message.

    :ivar problem: a sentence of our own, without the endpoint.
    :ivar retry_seconds: the seconds that the service asks to wait, or 0.
    """

    problem: str
    retry_seconds: float = 0.0


@frozen(kw_only=True)
class PushSender:
    """Sends messages to browsers by their push services. It follows no redirects and uses no proxy.

    :param post: sends a request, such as C{HttpTransport.send}.
    :param check: L{check_endpoint}; a test double of a push service needs another one.
    :param private_network: whether private addresses may be connected to, which only a test double needs.
    """

    post: Callable[[OutgoingRequest, Flight], Deferred[ServiceAnswer]]
    clock: IReactorTime
    randomness: Callable[[int], bytes]
    check: Callable[[str], str] = check_endpoint
    private_network: bool = False

    async def send(
        self, message: PushMessage, subscription: Subscription, key: EllipticCurvePrivateKey, *, urgent: bool
    ) -> None:
        """Send a message to one browser by its push service, in one attempt.

        :param subscription: the browser's address and keys.
        :param key: the key by which push services recognize the daemon.
        :param urgent: whether a device that saves power is to be woken.
        :raises BrowserGone: if the push service answers 404 or 410.
        :raises PushRefused: if the push service does not accept the message, or may not be connected to.
        """
        try:
            # guard of the phone: each message's endpoint is checked -> push.test_sender.SenderTests.test_forbidden
            self.check(subscription.endpoint)
        except ValueError:
            raise PushRefused("The address of its push service is not allowed.") from None
        answer = await self._post(self._make_request(message, subscription, key, urgent))
        # guard of the phone: 404 and 410 remove a browser -> push.test_notifier.TroubleTests.test_gone
        if answer.status in _GONE:
            raise BrowserGone
        if not 200 <= answer.status < 300:
            raise PushRefused(f"The push service answered with status {answer.status}.", _retry_seconds(answer))

    def _make_request(
        self, message: PushMessage, subscription: Subscription, key: EllipticCurvePrivateKey, urgent: bool
    ) -> OutgoingRequest:
        headers = {
            "Authorization": sign(subscription.endpoint, key, self.clock.seconds()),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(message.seconds),
            "Topic": TOPIC,
            "Urgency": "high" if urgent else "normal",
        }
        text = write_payload(message, subscription, urgent=urgent)
        body = encrypt(pad(text), subscription, self.randomness)
        return OutgoingRequest(
            "POST", subscription.endpoint, tuple(headers.items()), body, self.private_network, _MOST_RESPONSE_BYTES
        )

    async def _post(self, request: OutgoingRequest) -> ServiceAnswer:
        try:
            return await self.post(request, Flight()).addTimeout(ATTEMPT_SECONDS, self.clock)
        except AddressRefused:
            raise PushRefused("Its push service has no public address, so nothing was sent.") from None
        except Overdue:
            raise PushRefused(f"The push service did not answer within {ATTEMPT_SECONDS:g} s.") from None
        except (ServiceUnreachable, TooLarge):
            raise PushRefused("The push service could not be reached, or its answer was incomplete.") from None


def _retry_seconds(answer: ServiceAnswer) -> float:
    text = answer.headers.get("retry-after", "")
    if answer.status != _TOO_MANY or not (text.isascii() and text.isdecimal() and len(text) < 9):
        return 0.0
    return float(min(int(text), _MOST_RETRY_SECONDS))
