"""A relay that adds the credential to a local server's requests to its API while a call executes.

The server never sees the credential.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any, TypeVar

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.protocols.policies import LimitTotalConnectionsFactory
from twisted.python.failure import Failure
from twisted.web import http

from aileron.base.json import JSON
from aileron.connectors._answer import MOST_RESPONSE_BYTES, Flight, OutgoingRequest, ServiceAnswer, StreamingTransport
from aileron.connectors._headers import OURS
from aileron.connectors._sending import open_credential, with_credential
from aileron.connectors.programs import Enclosure, Launch
from aileron.credentials import says_invalid
from aileron.model.connectors import ConnectorDescription, Request
from aileron.model.errors import ExternalApiError
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization
from aileron.redaction import REDACTED, SecretFilter, secrets_in

from ._api import API_URL, Api, ApiRefused

MOST_BODY_BYTES = 4 * 1024 * 1024
MOST_CONNECTIONS = 8
_IDLE_SECONDS = 60
_SECONDS = 30.0  # time limit for renewing the credential
_LOOPBACK = "127.0.0.1"

_KEPT_BACK = OURS | {"alt-svc", "proxy-authenticate", "set-cookie"}
"""Response headers that are not passed on: headers of the connection, credentials and alternative services."""

_log = Logger()

T = TypeVar("T")


@define(eq=False)
class ApiCall:
    """An executing operation, for which the relay passes requests on.

    :ivar counts: the number of requests that were passed on, failed and refused, the number that came between the
        previous operation and this one, and the bytes sent and received in bodies.
    :ivar echoed: the forms in which the API sent the credential back.
    :ivar passing: the requests being passed on.
    """

    request: Request
    credential: ICredential
    counts: dict[str, int] = field(
        factory=lambda: dict.fromkeys(("requests", "failed", "refused", "sent", "received"), 0)
    )
    echoed: set[str] = field(factory=set)
    passing: dict[ApiExchange, Deferred[None]] = field(factory=dict)

    def note_failure(self, why: Failure) -> None:
        """Count a failed request. Log only the first one, since there may be many."""
        self.counts["failed"] += 1
        if self.counts["failed"] == 1:
            _log.info(
                "a request of {connector} to its API failed: {kind}", connector=self.request.connector, kind=why.type
            )

    def notes(self) -> Mapping[str, JSON]:
        """Return what to record with the outcome: counts of API requests, and the ways in which the key came back.

        What is zero is left out.
        """
        echoed: dict[str, JSON] = {"echoed": sorted(self.echoed)} if self.echoed else {}
        return {"api": {**self.counts}, **echoed} if any(self.counts.values()) else echoed


@define(eq=False)
class ApiRelay:
    """The relay of one connector's server, of which at most one process runs at a time.

    :ivar report: records that a connector's server sent a request while no operation was executing.
    """

    about: ConnectorDescription
    api: Api
    transport: StreamingTransport = field(repr=False)
    clock: IReactorTime = field(repr=False)
    report: Callable[[str], None] = field(repr=False)
    _calls: list[ApiCall] = field(init=False, factory=list)
    _credential: ICredential | None = field(init=False, default=None, repr=False)
    _strays: int = field(init=False, default=0)
    _host: str = field(init=False, default="")
    _prefix: str = field(init=False, default="")
    _url: str = field(init=False, default="")
    _stop: Callable[[], object] = field(init=False, default=lambda: None)

    def open(
        self, reactor: Any, launch: Launch, *, listen: Callable[[Any], Any] | None, credential: ICredential | None
    ) -> Launch:
        """Listen for connections of a new process, and return its launch with the relay's URL and socket filled in.

        :param listen: listens inside the sandbox of the process, which no other process can reach. If None, the relay
            listens on the loopback interface, with a secret path that only this process gets.
        :param credential: the credential of the operations for which requests of this process are passed on.
        """
        factory, meeting, prefix, port = _connections(self), None, "", Enclosure.api_port
        if listen is not None:
            meeting, self._stop = listen(factory)
        else:
            listening = reactor.listenTCP(0, factory, interface=_LOOPBACK)
            prefix, port = f"/{secrets.token_urlsafe(32)}", listening.getHost().port
            self._stop = listening.stopListening
        self._host, self._prefix, self._credential = f"{_LOOPBACK}:{port}", prefix, credential
        self._url = f"http://{self._host}{prefix}{self.api.base.path}"
        environment = {name: text.replace(API_URL, self._url) for name, text in launch.environment.items()}
        argv = [each.replace(API_URL, self._url) for each in launch.argv]
        return evolve(launch, argv=argv, environment=environment, meeting=meeting)

    def hide(self, said: bytes) -> bytes:
        """Return output of the process with the relay's URL replaced by the API's URL.

        Otherwise, readers of the output could use the relay.
        """
        said = said.replace(self._url.encode("ascii"), self.api.base.url.encode("ascii"))
        return said.replace(self._prefix[1:].encode("ascii"), REDACTED.encode("ascii")) if self._prefix else said

    def close(self) -> None:
        """Stop listening, and refuse further requests on open connections, because the process has ended."""
        self._credential = None
        self._stop()

    @contextmanager
    def during(self, request: Request, credential: ICredential) -> Iterator[Callable[[], Mapping[str, JSON]]]:
        """Pass requests on while the context is active.

        When the context ends, a request in progress continues if another active operation allows it. Otherwise, it is
        cut off.

        :return: a function that returns the notes recorded so far.
        """
        call = ApiCall(request, credential)
        call.counts["between"], self._strays = self._strays, 0
        self._calls.append(call)
        try:
            yield call.notes
        finally:
            # guard of the relay: the relay passes on nothing while no call executes -> RefusedTests.test_ended
            self._calls.remove(call)
            for exchange, passing in list(call.passing.items()):
                others = self._calls_for(exchange.method.decode("latin-1"))
                if others:
                    exchange.call = others[0]
                    others[0].passing[exchange] = passing
                else:
                    # guard of the relay: the relay drops what is under way when its call ends
                    #    -> RefusedTests.test_ended
                    passing.cancel()

    def send(self, exchange: ApiExchange) -> Deferred[None]:
        """Pass a request and its response on. Cancelling the Deferred aborts both.

        The first request while no operation executes is reported.

        :return: fires when the response was passed on, or fails if that fails.
        :raises ApiRefused: at once, if the request has another path, no operation executes, or the operation does not
            allow it.
        """
        method, target = exchange.method.decode("latin-1"), exchange.uri.decode("latin-1")
        # guard of the relay: the relay wants the path that only its process knows -> UnconfinedTests.test_path
        if not target.startswith(self._prefix):
            raise ApiRefused(404, "There is nothing here")
        calls = self._calls_for(method) or self._calls_for("GET")  # every operation allows GET
        if not calls:
            self._strays += 1
            if self._strays == 1:
                self.report(self.about.name)
            raise ApiRefused(403, "Requests are passed on only while a call of this server executes")
        call = exchange.call = calls[0]
        try:
            request = evolve(call.request, method=method, body=exchange.content.getvalue() or None)
            request = self.api.judge(request, target[len(self._prefix) :], exchange.requestHeaders, host=self._host)
        except ApiRefused:
            call.counts["refused"] += 1
            raise
        call.passing[exchange] = passing = Deferred.fromCoroutine(self._pass_on(call, request, exchange))
        return passing.addBoth(self._passed, exchange)

    def _calls_for(self, method: str) -> list[ApiCall]:
        """Return the executing operations that allow a method and use the credential of the process, newest first."""
        # guard of the relay: the relay serves calls with its own credential alone -> RefusedTests.test_accounts,
        #    instead its = [*reversed(self._calls)]
        its = [each for each in reversed(self._calls) if each.credential == self._credential]
        return [each for each in its if self.api.allows(method, each.request)]

    def _passed(self, result: T, exchange: ApiExchange) -> T:
        if isinstance(result, Failure):
            exchange.call.note_failure(result)
        del exchange.call.passing[exchange]
        return result

    async def _pass_on(self, call: ApiCall, request: Request, exchange: ApiExchange) -> None:
        sent = await open_credential(self.about, request, call.credential, seconds=_SECONDS, clock=self.clock)
        message = OutgoingRequest(
            method=request.method,
            url=with_credential(request.url, sent),
            headers=(*request.headers, *sent.headers),
            body=request.body,
            private_network=self.api.private_network,
            max_response_bytes=MOST_RESPONSE_BYTES,
        )
        exchange.call.counts["requests"] += 1
        exchange.call.counts["sent"] += len(request.body or b"")

        def echoed(kind: str) -> None:
            exchange.call.echoed.add(kind)

        form = self.api.need.format
        found = [one for each in sent.secrets for one in secrets_in(each, form.replace("{key}", each))]
        filters = [SecretFilter(each.encode("utf-8"), self.about.name, echoed) for each in dict.fromkeys(found)]

        def take(piece: bytes) -> bool:
            exchange.call.counts["received"] += len(piece)
            for each in filters:
                # guard of the relay: no body with the credential comes back by the relay -> AnswerTests.test_echo
                piece = each.body(piece)
            exchange.write(piece)
            return False

        def begin(answer: ServiceAnswer) -> Callable[[bytes], bool]:
            fields = zip(answer.head[1::2], answer.head[2::2], strict=True)
            head = "".join(["\r\n", *(f"{name}: {value}\r\n" for name, value in fields)]).encode("latin-1")
            # guard of the relay: no part of an answer comes back by the relay -> AnswerTests.test_part
            _refuse_part(answer.status, head)
            for each in filters:
                # guard of the relay: no head with the credential comes back by the relay
                #    -> AnswerTests.test_echo_in_head
                each.head(head, chunked=False)
            exchange.begin(answer, self._link)
            return take

        answer = await self.transport.stream(message, Flight(), begin, exchange)
        rest = b""
        for each in filters:
            rest = each.body(rest) + each.rest()
        exchange.write(rest)
        await self._note_answer(call, sent, answer)

    async def _note_answer(self, call: ApiCall, sent: Authorization, answer: ServiceAnswer) -> None:
        """Notify the credential that the API has accepted or refused it.

        Statuses other than 2xx and 401 notify nothing.
        """
        if answer.status == http.UNAUTHORIZED:
            is_certain = says_invalid(answer.headers.get("www-authenticate", ""))
            await call.credential.refused(sent, operation="" if is_certain else call.request.operation)
        elif 200 <= answer.status <= 299:
            call.credential.accepted(sent)

    def _link(self, name: str, value: str) -> str:
        """Return the value of a response header, with links to the API replaced by links to the relay."""
        if name.lower() == "location" and value.startswith("/") and not value.startswith("//"):
            return self._prefix + value
        return value.replace(self.api.base.url, self._url)


class ApiExchange(http.Request):
    """A request of the server and its response.

    :ivar call: the operation for which the request is passed on.
    """

    call: ApiCall
    channel: Any
    content: Any
    write: Any
    finish: Any

    def gotLength(self, length: int | None) -> None:
        """Create the buffer for the body of the request, which is kept in memory. Called by Twisted."""
        self.content = BytesIO()

    def handleContentChunk(self, data: bytes) -> None:
        """Store a piece of the body. If the body is too long, abort the connection."""
        self.content.write(data)
        if self.content.tell() > MOST_BODY_BYTES:
            self.channel.transport.abortConnection()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Pass the complete request on, and cancel it if the sender disconnects.

        Answer a refused one with its reason.
        """
        self.method, self.uri, self.clientproto = command, path, version
        if self.content.tell() > MOST_BODY_BYTES:
            return
        try:
            passing = self.channel.relay.send(self)
        except ApiRefused as refused:
            self._refuse(*refused.args)
        else:
            self.notifyFinish().addErrback(lambda _: passing.cancel())
            passing.addCallbacks(lambda _: self.finish(), self._fail)

    def begin(self, answer: ServiceAnswer, link: Callable[[str, str], str]) -> None:
        """Write the head of a response.

        :param link: returns the value of a header by its name and value, with its links replaced.
        """
        self.setResponseCode(answer.status)
        for name, value in zip(answer.head[1::2], answer.head[2::2], strict=True):
            if name.lower() not in _KEPT_BACK or (self.method == b"HEAD" and name.lower() == "content-length"):
                self.responseHeaders.addRawHeader(name.encode("latin-1"), link(name, value).encode("latin-1"))
        self.write(b"")

    def unregisterProducer(self) -> None:
        """Unregister the producer, unless the sender has disconnected already."""
        if self.channel:
            super().unregisterProducer()  # type: ignore[no-untyped-call]

    def _fail(self, why: Failure) -> None:
        """Respond with an error. If the response has begun, abort the connection to show that it is incomplete."""
        if self.channel and (self.startedWriting or why.check(CancelledError)):
            self.channel.transport.abortConnection()
        elif self.channel:  # the sender is still connected
            self._refuse(502, "The request or its answer could not be passed on")

    def _refuse(self, status: int, why: str) -> None:
        self.setResponseCode(status)
        self.responseHeaders.setRawHeaders("Content-Type", ["text/plain"])
        self.write(f"Aileron: {why}.\n".encode("ascii", "replace"))
        self.finish()


def _refuse_part(status: int, head: bytes) -> None:
    """Check that a response is not partial, since a secret that is split between parts would not be found.

    :raises ExternalApiError: if the response is partial.
    """
    if status == http.PARTIAL_CONTENT or b"\r\ncontent-range:" in head.lower():
        raise ExternalApiError("The API answered with a part, in which no credential can be found.")


def _connections(relay: ApiRelay) -> Any:
    """Return a factory for the server's connections, with a limit on open connections."""

    def protocol() -> Any:
        channel: Any = http.HTTPChannel()
        channel.requestFactory, channel.relay = ApiExchange, relay
        channel.callLater, channel.timeOut = relay.clock.callLater, _IDLE_SECONDS
        return channel

    factory: Any = LimitTotalConnectionsFactory()
    factory.protocol, factory.connectionLimit, factory.noisy = protocol, MOST_CONNECTIONS, False
    factory.log = lambda _: None
    return factory
