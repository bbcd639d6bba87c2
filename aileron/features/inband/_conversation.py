"""Exchanges one request of a client with the provider, in as many turns as the model calls Aileron's tools.

A turn is one request to the provider and its response.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from itertools import count

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from aileron.base.http1 import UNTIL_CLOSE
from aileron.base.json import JSON
from aileron.model.errors import AileronError, ExternalApiError, InvalidRequest
from aileron.model.interfaces.store import IInBandMemories

from ._calls import SessionCalls
from ._exchange import InBandExchange
from ._reading import LongReading
from ._turns import BrokenReply, CallResult, Memory, Turn
from ._upstream import ProviderRequest, UpstreamCall
from .protocols import ClientRequest, Exchange, Piece

STREAM_WAIT_SECONDS, DOCUMENT_WAIT_SECONDS = 300.0, 120.0
"""The longest wait of a call for a person: with events that keep the client connected, and without."""

KEEP_ALIVE_SECONDS = 10.0
_LAST_TURN = (
    "\n\nThis was turn {most} of {most} in which tools of Aileron could be called for one request (the setting "
    "gateway.in_band_turns in config.yaml). None can be called again in this reply: go on with what you have."
)
_PAST_LIMIT = (
    "Not run: in {most} turns of this reply tools of Aileron were called, and the setting gateway.in_band_turns in "
    "config.yaml allows no more for one request. Go on with what you have, and say what is left to do."
)
_MOST_ERROR_BYTES = 64 * 1024
_ENCODING = re.compile(rb"\r\ncontent-encoding: *(?! |identity)[^\r]", re.IGNORECASE).search

_log = Logger()


class TurnLimitReached(ExternalApiError):
    """The error for a model that calls actions again although the results say that no more calls are run."""


class ProviderRefused(ExternalApiError):
    """The error for a turn that the provider refused after the first turn.

    :ivar http_status: the provider's status.
    """

    def __init__(self, http_status: int, message: str) -> None:
        super().__init__(message)
        self.http_status = http_status


@define(eq=False)
class ReplyLoop:
    """The loop of turns for one request of a client. A turn is one request to the provider and its response.

    :ivar identify: returns a function that returns the session's calls for a received request, or None if no live
        session has the key.
    :ivar reading: schedules the parsing of long JSON.
    :ivar wait_seconds: how long a call waits at most for a person's decision, as the client requests, or None.
    :ivar most_turns: the most turns of one request with our tools. After these the model is offered no tool of ours.
    """

    protocol: type[ClientRequest]
    provider: ProviderRequest
    identify: Callable[[], Awaitable[Callable[[InBandExchange], Awaitable[SessionCalls]] | None]]
    reading: LongReading
    memories: IInBandMemories
    clock: IReactorTime
    wait_seconds: float | None
    most_turns: int
    _upstream: UpstreamCall | None = field(default=None, init=False)
    _called: dict[str, None] = field(factory=dict, init=False)

    async def run(self, client: InBandExchange) -> None:
        """Process the request until its reply is complete. On a failure, end the reply with an error or cut it."""
        exchange: Exchange | None = None
        try:
            known = await self.identify()
            if known is None:
                await self._refuse_stranger(client)
                return
            await client.collect()
            calls = await known(client)
            exchange = await self._open(client, calls)
            await self._go_on(client, exchange, calls)
        except CancelledError:
            raise
        except AileronError as error:
            self._fail(client, exchange, error.message, getattr(error, "http_status", error.status), error.details)
        except Exception as error:  # noqa: BLE001 - the rim: the reply must not seem complete
            _log.error("in-band mode failed: {kind}", kind=type(error).__qualname__)
            self._fail(client, exchange, "Aileron's in-band mode failed.", 500)
        finally:
            client.throttle = None
            if self._upstream is not None:
                self._upstream.abort()

    async def _refuse_stranger(self, client: InBandExchange) -> None:
        """Refuse a request with an unknown key: forward the gateway's own refusal. The client's body is not read.

        :raises BrokenReply: if the gateway's answer is not valid.
        """
        upstream, said = await self._ask(client, ()), bytearray()
        upstream.hear(said.extend, raw=True)
        await upstream.ended
        client.reply.dismiss(upstream.raw_head + said)

    async def _open(self, client: InBandExchange, calls: SessionCalls) -> Exchange:
        """Parse the request, and return the exchange with our tools and the restored history.

        :raises InvalidRequest: if the body is compressed, malformed or not supported.
        :raises LimitExceeded: if the session or all sessions hold too many bytes.
        :raises StoreUnavailable: if the history cannot be read.
        """
        if _ENCODING(self.provider.lines):
            raise InvalidRequest("The request's body is compressed, and in-band mode has to read it.")
        session_id, offered = calls.session.id, await calls.offered()
        async with self.reading.turn(session_id, client.size, client.values) as read:
            request: ClientRequest = await read(lambda: self.protocol(calls.mask_key(client.give())))
            kept = await self.memories.find(session_id, request.keys) if request.keys else ()
            exchange: Exchange = await read(request.open, offered, [Memory(keys, content) for keys, content in kept])
        client.charge(exchange.held_bytes)
        await calls.warn([*exchange.warnings, *calls.notes])
        return exchange

    async def _go_on(self, client: InBandExchange, exchange: Exchange, calls: SessionCalls) -> None:
        for number in count(1):
            upstream = await self._ask(client, exchange.pieces)
            if upstream.head.code != HTTPStatus.OK and number == 1:
                await self._pass_on(client, upstream)
                return
            turn = await self._listen(client, exchange, upstream, calls.session.id)
            turn = evolve(turn, completion=upstream.completion)
            if not turn.calls:
                break
            exchange.answer(await self._run(client, exchange, turn, calls, number), last=number >= self.most_turns)
            client.charge(exchange.held_bytes)
            if turn.mixed:
                break
        memory = exchange.memory()
        if memory is not None:
            await self.memories.keep(calls.session.id, memory.keys, memory.content)
        if exchange.streams:
            client.reply.end(exchange.finish())
        else:
            async with self.reading.turn(calls.session.id, exchange.held_bytes) as read:
                whole: bytes = await read(exchange.finish)
            client.reply.document(upstream.head.status, upstream.head.lines, whole)

    async def _run(
        self, client: InBandExchange, exchange: Exchange, turn: Turn, calls: SessionCalls, number: int
    ) -> list[CallResult]:
        """Run the calls that the model made in a turn, and return their results.

        In the first turn above the limit, return error results instead.

        :raises TurnLimitReached: if the model calls actions in a later turn too.
        :raises StoreUnavailable: if the request cannot be stored.
        """
        if number > self.most_turns:
            results = await calls.refuse(turn, number, _PAST_LIMIT.format(most=self.most_turns))
            if number > self.most_turns + 1:
                raise TurnLimitReached(_PAST_LIMIT.format(most=self.most_turns))
            return results
        self._called |= {call.name: None for call in turn.calls if not call.problem}
        with self._kept_alive(client, exchange):
            results = await calls.run(turn, number, self._patience(exchange))
        if number == self.most_turns:
            results[-1] = evolve(results[-1], text=results[-1].text + _LAST_TURN.format(most=self.most_turns))
        return results

    async def _ask(self, client: InBandExchange, body: Sequence[Piece]) -> UpstreamCall:
        """Send a body to the provider, and wait for the head of its answer.

        :raises BrokenReply: if the gateway does not serve the provider, or its answer has no valid head.
        """
        self._upstream = upstream = UpstreamCall(self.clock)
        upstream.begin(self.provider, body)
        client.throttle = upstream.throttle
        if client.reply.slow:
            upstream.throttle(True)
        await upstream.answered
        return upstream

    async def _listen(
        self, client: InBandExchange, exchange: Exchange, upstream: UpstreamCall, session_id: str
    ) -> Turn:
        """Read one response of the provider. As it arrives, write to the client all parts except calls of our tools.

        :raises ProviderRefused: if the response's status is not 200.
        :raises BrokenReply: if the response is compressed, incomplete or malformed.
        :raises LimitExceeded: if too many bytes are held.
        """
        if upstream.head.code != HTTPStatus.OK:
            raise ProviderRefused(upstream.head.code, await _explain(upstream))
        if _ENCODING(upstream.head.lines):
            raise BrokenReply("The provider compressed its response, although it was asked not to.")
        if exchange.streams and not client.reply.begun:
            client.reply.begin(upstream.head)
        upstream.hear(partial(_take, client, exchange))
        await upstream.ended
        if exchange.streams:
            return exchange.end()
        async with self.reading.turn(session_id, exchange.held_bytes) as read:
            turn: Turn = await read(exchange.end)
        client.charge(exchange.held_bytes)
        return turn

    async def _pass_on(self, client: InBandExchange, upstream: UpstreamCall) -> None:
        """Forward the provider's error unchanged as it arrives. No reply has started."""
        client.reply.pass_on(upstream.raw_head)
        upstream.hear(client.reply.pass_on, raw=True)
        try:
            await upstream.ended
        except BrokenReply:
            client.reply.cut(framed=upstream.head.length != UNTIL_CLOSE)
        else:
            client.reply.passed(keep=upstream.head.keep)

    def _patience(self, exchange: Exchange) -> float:
        if self.wait_seconds is not None:
            return self.wait_seconds
        return STREAM_WAIT_SECONDS if exchange.streams else DOCUMENT_WAIT_SECONDS

    @contextmanager
    def _kept_alive(self, client: InBandExchange, exchange: Exchange) -> Iterator[None]:
        """Send the client keep-alive events periodically within the context."""
        beating = LoopingCall(lambda: client.reply.write(exchange.keep_alive()))
        beating.clock = self.clock
        beating.start(KEEP_ALIVE_SECONDS, now=False)
        try:
            yield
        finally:
            beating.stop()

    def _fail(
        self,
        client: InBandExchange,
        exchange: Exchange | None,
        message: str,
        status: int,
        details: Mapping[str, JSON] | None = None,
    ) -> None:
        if client.reply.over:
            return
        if self._called:
            called = f"Before that, the model called {', '.join(self._called)}."
            message = f"{message.rstrip('.')}. {called} Check the outcome before you repeat it."
        if not client.reply.begun:
            client.reply.refuse(status, self.protocol.error(message, status, details or {}))
        elif exchange is not None and exchange.streams:
            client.reply.end(exchange.fail(message, status))
        else:
            client.reply.cut(framed=True)


def _take(client: InBandExchange, exchange: Exchange, data: bytes) -> None:
    """Process a piece of a response, and write to the client all of the piece except calls of our tools.

    :raises LimitExceeded: if too many bytes are held.
    :raises BrokenReply: if the response violates the protocol.
    """
    shown = exchange.feed(data)
    client.charge(exchange.held_bytes)
    client.reply.write(shown)


async def _explain(upstream: UpstreamCall) -> str:
    """Return an error text with the provider's status, and its message if that can be parsed."""
    said = bytearray()
    upstream.hear(lambda data: said.extend(data[: _MOST_ERROR_BYTES - len(said)]))
    await upstream.ended
    try:
        message = json.loads(said)["error"]["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        message = None
    words = f": {message}" if isinstance(message, str) else "."
    return f"The provider refused to go on with HTTP {upstream.head.code}{words}"
