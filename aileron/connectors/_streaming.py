"""Opens the answers to reads of tools: short ones are judged as a whole, long ones are passed on while they arrive."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer, IReactorTime

from aileron.model.connectors import Outcome
from aileron.model.streams import AnswerCut, StreamedAnswer
from aileron.redaction import SecretFound, SecretStream

from ._answer import Flight, OutgoingRequest, ServiceAnswer, ServiceUnreachable, Transport
from ._body import GatheredBody, OpenedAnswer
from ._sending import FAILURES, describe_failure, wait_in_time

GATHER_SECONDS = 1.0
"""The time after which a short answer that has not ended is passed on like a long one."""

_LONG_BYTES = 64 * 1024
_PLAIN = "identity"


class OpeningTransport(Transport, Protocol):
    """A transport that can also return a response whose body has not arrived yet."""

    def open(self, message: OutgoingRequest, flight: Flight, scope: bytes) -> Deferred[OpenedAnswer]:
        """Send a read on a kept connection, or a new one if there is none, and return the opened answer.

        If the connection turns out to be closed before any byte of an answer, the read is sent once more on a new one.

        :param scope: a connection is used again only for requests with the same scope, to the same origin.
        :return: a Deferred that fires when the head of the response has arrived, whatever its status. It fails with
            L{AddressRefused} or L{ServiceUnreachable}. Cancelling closes the connection.
        """


@frozen
class StreamedBody:
    """The body of a long answer, which is searched for secrets while it is passed on."""

    _body: GatheredBody
    _search: SecretStream

    async def pass_on(self, consumer: IConsumer) -> None:
        def take(piece: bytes) -> None:
            passed = self._search.take(piece)
            if passed:
                consumer.write(passed)

        consumer.registerProducer(self._body, True)
        try:
            await self._body.pass_on(take)
            consumer.write(self._search.rest())
        except SecretFound as found:
            # guard of own tools: a long answer that holds the secret is cut before it
            #    -> connectors.kinds.http.test_streaming.StreamTests.test_secret
            raise AnswerCut(found.kind) from None
        except ServiceUnreachable:
            raise AnswerCut from None
        finally:
            consumer.unregisterProducer()

    def close(self) -> None:
        self._body.close()


@frozen
class ReadOpener:
    """Sends the reads of one connector's tools.

    :ivar name: the connector's name.
    :ivar in_thread: calls a function in another thread, or None to call it in this one.
    """

    name: str
    transport: OpeningTransport
    clock: IReactorTime
    in_thread: Callable[..., Awaitable[Any]] | None

    async def open(
        self,
        message: OutgoingRequest,
        secrets: tuple[str, ...],
        scope: str,
        seconds: float,
        judge: Callable[[ServiceAnswer], Outcome],
    ) -> Outcome | StreamedAnswer:
        """Send a read. Return the outcome that C{judge} gives for a short answer, or a long answer as opened.

        Failures of the network are returned as an outcome.

        :param secrets: the secrets that the answer is searched for.
        :param scope: requests with another scope, or with other secrets, do not use the same connection.
        :param judge: returns the outcome of an answer without its secrets.
        """
        flight, until = Flight(), self.clock.seconds() + seconds
        kept_for = hashlib.sha256("\0".join((self.name, scope, *secrets)).encode()).digest()
        try:
            opening = self.transport.open(message, flight, kept_for)
            opened = await wait_in_time(opening, self.clock, flight, seconds=seconds)
            left = min(GATHER_SECONDS, max(until - self.clock.seconds(), 0.0))
            whole = await self._gather(opened, left)
        except FAILURES as error:
            fault = describe_failure(self.name, error, flight, seconds=seconds, most_bytes=message.max_response_bytes)
            return Outcome(fault=fault, sent=flight.sent)
        if whole is not None:
            return await self._judge(evolve(opened.head, body=whole), judge)
        outcome = judge(opened.head)
        # guard of own tools: content that cannot be searched is not passed on
        #    -> connectors.kinds.http.test_streaming.StreamTests.test_encoded, instead if outcome.fault is not None
        if outcome.fault is not None or opened.head.headers.get("content-encoding", _PLAIN).lower() != _PLAIN:
            opened.body.close()
            return outcome
        return StreamedAnswer(outcome, opened.length, StreamedBody(opened.body, SecretStream(*secrets)))

    async def _gather(self, opened: OpenedAnswer, seconds: float) -> bytes | None:
        """Return the whole body, or None if it is long.

        :raises ServiceUnreachable: if the connection broke.
        """
        if opened.is_long:
            return None
        try:
            return await opened.body.gather(seconds)
        except BaseException:
            opened.body.close()
            raise

    async def _judge(self, answer: ServiceAnswer, judge: Callable[[ServiceAnswer], Outcome]) -> Outcome:
        if self.in_thread is None or len(answer.body) < _LONG_BYTES:
            return judge(answer)
        judged: Outcome = await self.in_thread(lambda: judge(answer))
        return judged
