"""Sends requests to the daemon, each with a deadline and a limit for the response, and reads event streams."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack
from urllib.parse import quote, urlencode

from attrs import field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectError, ConnectingCancelledError
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IResponse

from aileron.base.addresses import read_origin, read_url
from aileron.base.json import JSON, writer
from aileron.base.outgoing import BodyTooLong, BytesProducer, EndedBody, NotConnected, read_body
from aileron.base.trace_context import TraceParent

from ._answers import AnswerNotUnderstood, DaemonAnswer, DaemonError, DaemonUnreachable, read_answer

if TYPE_CHECKING:
    from aileron.model.interfaces.services import IAgentRoutes

SILENCE_SECONDS = 45.0
"""Longer than the daemon's longest silence on an event stream."""

_EVENT_END = b"\n\n"
_EVENT_FIELD = b"event:"
_MAX_EVENT_BYTES = 64 * 1024


class EventStream(EndedBody):
    """A reader of server-sent events that calls C{on_event} for each event. The caller then fetches the new data.

    :param on_event: called for each event, but not for keep-alive messages.
    :ivar ended: fires once, when the stream ends for any reason. Cancelling it ends the stream.
    """

    def __init__(self, clock: IReactorTime, on_event: Callable[[], None]) -> None:
        self._on_event = on_event
        self._clock = clock
        self._rest = b""
        self._silence: IDelayedCall | None = None
        self._cancelled = False
        self.ended: Deferred[None] = Deferred(lambda _: self._cancel())

    def connectionMade(self) -> None:
        """Start the timer that ends the connection if nothing arrives for too long."""
        self._silence = self._clock.callLater(SILENCE_SECONDS, self.end_connection)

    def dataReceived(self, data: bytes) -> None:
        """Call C{on_event} for each complete event. If an event is too long, end the connection."""
        if self._silence is not None and self._silence.active():
            self._silence.reset(SILENCE_SECONDS)
        *events, self._rest = (self._rest + data).split(_EVENT_END)
        if len(self._rest) > _MAX_EVENT_BYTES:
            self.end_connection()
        for event in events:
            if any(line.startswith(_EVENT_FIELD) for line in event.split(b"\n")):
                self._on_event()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Stop the timer and fire C{ended}."""
        if self._silence is not None and self._silence.active():
            self._silence.cancel()
        if not self.ended.called and not self._cancelled:
            self.ended.callback(None)

    def _cancel(self) -> None:
        self._cancelled = True
        self.end_connection()


MAX_BODY_BYTES = 32 * 1024 * 1024
DEADLINE_SECONDS = 15.0

Query = Mapping[str, str | int | float | None]

_to_json = writer(sort_keys=False, allow_nan=True)


class RequestOptions(TypedDict, total=False):
    """The options of a request beyond its method and path.

    :ivar query: the query parameters; those that are None are omitted.
    :ivar prefer_seconds: sent as C{Prefer: wait}, or None for the daemon's default wait.
    :ivar wait_seconds: how long the daemon was asked to delay the response. The deadline is extended by it.
    :ivar parent: sent as C{traceparent}, or None to send no such header.
    """

    query: Query | None
    body: Mapping[str, JSON] | None
    prefer_seconds: float | None
    wait_seconds: float
    parent: TraceParent | None


class Requester(Protocol):
    """A client of one site of the daemon with one credential."""

    async def ask(self, method: str, *path: str, **more: Unpack[RequestOptions]) -> DaemonAnswer:
        """Send one request and parse its response. Cancelling ends the wait, but not the work that the request began.

        :param path: the segments, not yet encoded.
        :raises DaemonUnreachable: if no response arrives before the deadline.
        :raises DaemonFault: if the response is the daemon's error envelope.
        :raises AnswerNotUnderstood: if the response is anything else.
        """


def _normalize_url(url: str) -> str:
    scheme, colon, rest = url.partition(":")
    return scheme.lower() + colon + rest.rstrip("/")


@frozen
class DaemonClient:
    """An HTTP client of one site of the daemon with one credential.

    :ivar agent: the HTTP agent that connects to the site.
    :ivar base_url: the URL of the site, without a path.
    :ivar token: sent as bearer token and never shown.
    """

    agent: IAgent
    base_url: str = field(converter=_normalize_url)
    token: str | None = field(repr=False)
    clock: IReactorTime

    @base_url.validator
    def _check_url(self, _attribute: object, value: str) -> None:
        try:
            url = read_url(value)
        except ValueError:
            url = None
        if url is None or (url.user_info, url.query, url.fragment) != (None, None, None):
            raise ValueError("the daemon's address must be an http URL without credentials")

    @token.validator
    def _check_token(self, _attribute: object, value: str | None) -> None:
        if value is not None and not all("!" <= letter <= "~" for letter in value):
            raise ValueError("the daemon's token must be visible ASCII")

    def seconds(self) -> float:
        """Return the current time in seconds since the epoch."""
        return self.clock.seconds()

    async def ask(self, method: str, *path: str, **more: Unpack[RequestOptions]) -> DaemonAnswer:
        """Send one request over HTTP, and return the successful response. Cancelling closes the connection.

        :raises DaemonUnreachable: if no response arrives before the deadline.
        :raises DaemonFault: if the response is the daemon's error envelope.
        :raises AnswerNotUnderstood: if the response is anything else.
        """
        prefer, parent = more.get("prefer_seconds"), more.get("parent")
        headers = {} if prefer is None else {"Prefer": f"wait={int(prefer)}"}
        if parent is not None:
            headers["traceparent"] = parent.header
        asking = self._exchange(method, path, more.get("query") or {}, headers, _encode_body(more.get("body")))
        return await _answer_in_time(asking, self.clock, more.get("wait_seconds", 0.0))

    async def follow(self, *path: str, on_event: Callable[[], None]) -> None:
        """Open an event stream and return when it ends. Cancelling ends it.

        :param on_event: called for each event.
        :raises DaemonUnreachable: if the stream could not be opened.
        :raises DaemonFault: if the daemon refuses.
        :raises AnswerNotUnderstood: if the response is anything else.
        """
        stream = EventStream(self.clock, on_event)
        try:
            response = await self._request("GET", path).addTimeout(DEADLINE_SECONDS, self.clock)
            if response.code != 200:
                read_answer(response.code, await read_body(response, MAX_BODY_BYTES))
        except DaemonError:
            raise
        except Exception as error:  # noqa: BLE001 - the transport's own exceptions have no common base
            raise self._describe_failure(error) from None
        response.deliverBody(stream)
        await stream.ended

    async def _exchange(
        self, method: str, path: tuple[str, ...], query: Query, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[int, bytes]:
        try:
            response = await self._request(method, path, query, headers, content)
            answered = await read_body(response, MAX_BODY_BYTES)
        except BodyTooLong:
            raise AnswerNotUnderstood("The daemon's response is too long.", response.code) from None
        except Exception as error:  # noqa: BLE001 - the transport's own exceptions have no common base
            raise self._describe_failure(error) from None
        return response.code, answered

    def _request(
        self,
        method: str,
        path: tuple[str, ...],
        query: Query | None = None,
        more: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> Deferred[IResponse]:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        url = "/".join((self.base_url, *(quote(segment, safe="") for segment in path)))
        url += f"?{urlencode(given)}" if given else ""
        headers = {"Host": read_origin(self.base_url).authority, "Accept": "application/json", **(more or {})}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if content is not None:
            headers["Content-Type"] = "application/json"
        producer = None if content is None else BytesProducer(content)
        sent = Headers({name: [value] for name, value in headers.items()})
        return self.agent.request(method.encode(), url.encode(), sent, producer)

    def _describe_failure(self, error: Exception) -> Exception:
        """Return the client exception for an exception of the transport."""
        if _was_cancelled(error):
            return CancelledError()
        if self.base_url.startswith("https:"):
            from ._tls import why_untrusted  # HTTPS is rare, and importing its modules slows the start

            if (why := why_untrusted(error)) is not None:
                unproven = f"The server at {self.base_url} could not prove its identity: {why}."
                return DaemonUnreachable(f"{unproven} Nothing was sent to it.", misdirected=True)
        if isinstance(error, (ConnectError, NotConnected)):
            return DaemonUnreachable(f"No Aileron daemon responds at {self.base_url}.")
        return DaemonUnreachable("The connection to the Aileron daemon was lost.", sent=True)


@frozen
class InProcessClient:
    """A client of the agent site in the daemon's own process, with the same responses and errors as over HTTP.

    :ivar routes: the routes of the agent site.
    :ivar token: the session's token, never shown. It is checked at each request.
    """

    routes: IAgentRoutes
    token: str = field(repr=False)
    clock: IReactorTime

    async def ask(self, method: str, *path: str, **more: Unpack[RequestOptions]) -> DaemonAnswer:
        """Send one request to the agent site's routes, and return the successful response.

        :raises DaemonUnreachable: if there is no response before the deadline.
        :raises DaemonFault: if the response is the daemon's error envelope.
        :raises AnswerNotUnderstood: if the response is anything else.
        """
        query = {name: str(value) for name, value in (more.get("query") or {}).items() if value is not None}
        body, prefer, parent = _encode_body(more.get("body")) or b"", more.get("prefer_seconds"), more.get("parent")
        asking = self.routes.ask(self.token, method, path, query=query, body=body, prefer_seconds=prefer, parent=parent)
        return await _answer_in_time(asking, self.clock, more.get("wait_seconds", 0.0))


def _encode_body(body: Mapping[str, JSON] | None) -> bytes | None:
    """Encode a body as JSON, or return None if C{body} is None.

    Values that JSON cannot represent are sent in a form that the daemon refuses.
    """
    return None if body is None else _to_json(body).encode("ascii")


async def _answer_in_time(
    asking: Coroutine[Any, Any, tuple[int, bytes]], clock: IReactorTime, wait_seconds: float
) -> DaemonAnswer:
    """Wait for the status and body of a response until the deadline, and parse them.

    :param wait_seconds: the seconds by which the deadline is extended.
    :raises DaemonUnreachable: if no response arrives before the deadline.
    :raises DaemonFault: if the response is the daemon's error envelope.
    :raises AnswerNotUnderstood: if the response is anything else.
    """
    seconds = DEADLINE_SECONDS + wait_seconds
    asked = Deferred.fromCoroutine(asking)
    late = DaemonUnreachable(f"The Aileron daemon did not respond within {seconds:g} s.", sent=True)
    status, content = await asked.addTimeout(seconds, clock, lambda _result, _seconds: Failure(late))
    return read_answer(status, content)


def _was_cancelled(error: Exception) -> bool:
    reasons = [reason.value for reason in getattr(error, "reasons", ())]
    causes = [error, *reasons, getattr(error, "reason", None)]
    return any(isinstance(cause, (CancelledError, ConnectingCancelledError)) for cause in causes)
