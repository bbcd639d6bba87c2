"""A connector made of a file: builds declared requests, sends them, and reads responses as declared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, BinaryIO

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.file_bodies import FileBody
from aileron.base.json import JSON
from aileron.connectors._answer import Flight, OutgoingRequest, ServiceAnswer, ServiceUnreachable, TooLarge
from aileron.connectors._forwarding import FORWARD_SECONDS, prepare_forwarded
from aileron.connectors._sending import (
    FAILURES,
    describe_failure,
    list_secrets,
    no_content,
    open_body,
    open_credential,
    wait_in_time,
    with_credential,
)
from aileron.connectors._streaming import OpeningTransport, ReadOpener
from aileron.connectors._template import ReferenceScope
from aileron.credentials import says_invalid
from aileron.model.connectors import ConnectorDescription, Finding, Outcome, Request, Sought
from aileron.model.errors import CapabilityDenied, Forbidden, InvalidRequest
from aileron.model.faults import Fault
from aileron.model.interfaces.connectors import IConnector, IInputNormalizer, IStreamingConnector
from aileron.model.interfaces.vault import ICredential
from aileron.model.streams import StreamedAnswer
from aileron.model.vault import Authorization
from aileron.redaction import Redactor

from ._classify import Reader
from ._packages import SHOW_PACKAGE, PackagePreview
from ._pages import FetchedPage, PageReader, find_on_origin
from ._prepare import prepare
from ._spec import HttpOperation, HttpSpec

_LONG_BYTES = 64 * 1024
_MOST_REDIRECTS = 3
_UNAUTHORIZED = 401
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


def build_request(
    spec: HttpSpec, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str
) -> Request:
    """Build the request of an operation, declared or forwarding.

    :raises InvalidRequest: if no request can be built from the inputs.
    :raises CapabilityDenied: if the operation is unknown, or its host is not declared.
    """
    declared = spec.find_declared(operation)
    if operation in spec.forwarding:
        return prepare_forwarded(spec.reach, declared.operation, inputs, base_url)
    return prepare(spec, declared, base_url, ReferenceScope(inputs, effect_key))


@implementer(IConnector, IStreamingConnector, IInputNormalizer)
@frozen
class HttpConnector:
    """The HTTP connector of one file.

    :ivar spec: the parsed file.
    :ivar transport: sends requests.
    :ivar clock: measures timeouts.
    :ivar now: returns the time of day, for a C{Retry-After} with a date.
    :ivar in_thread: calls a function in another thread, or None to read long responses in the reactor's thread.
    :ivar open_content: opens the file of a stored body by its digest, or returns None if there is none.
    """

    spec: HttpSpec
    transport: OpeningTransport = field(repr=False)
    clock: IReactorTime = field(repr=False)
    now: Callable[[], datetime] = field(repr=False)
    in_thread: Callable[..., Awaitable[Any]] | None = field(default=None, repr=False)
    open_content: Callable[[str], BinaryIO | None] = field(default=no_content, repr=False)

    def describe(self) -> ConnectorDescription:
        return self.spec.description

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        return build_request(self.spec, operation, inputs, base_url, effect_key)

    def normalize_input(self, operation: str, name: str, value: JSON) -> JSON:
        return self.spec.normalize_input(operation, name, value)

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Send a read and return its outcome. If the file declares pages, the outcome covers all of them.

        Failures are returned as an outcome, except those of opening the credential.

        :raises CapabilityDenied: if the operation is not a read, or another connector prepared the request.
        """
        operation = self.spec.check_own(request)
        self.spec.find_read(request.operation)
        if request.operation == SHOW_PACKAGE and SHOW_PACKAGE in self.spec.forwarding:
            return await PackagePreview(self, request, credential, seconds).show()
        if operation.pages is None:
            return (await self._send(request, operation, credential, seconds)).outcome
        until, one = self.clock.seconds() + seconds, evolve(operation, result=None)

        async def ask(following: Request, most_bytes: int) -> FetchedPage:
            page = evolve(one, max_response_bytes=max(most_bytes, 1))
            return await self._send(following, page, credential, max(until - self.clock.seconds(), 0.0))

        most_bytes = operation.max_response_bytes
        return await PageReader(self.spec.fqn, operation.pages, operation.result, most_bytes, ask).read(request)

    async def open_read(
        self, request: Request, credential: ICredential | None, seconds: float, scope: str
    ) -> Outcome | StreamedAnswer:
        operation = self.spec.check_own(request)
        self.spec.find_read(request.operation)
        within = min(seconds, operation.operation.timeout_seconds)
        until = self.clock.seconds() + within
        sent = await self._open(request, credential, within)
        reader, now, heads = Reader(self.spec.fqn, operation, _redactor(sent)), self.now(), list[ServiceAnswer]()

        def judge(answer: ServiceAnswer) -> Outcome:
            heads.append(answer)
            return reader.echo.outcome(reader.outcome(answer, now))

        opener = ReadOpener(self.spec.fqn, self.transport, self.clock, self.in_thread)
        message = _add_credential(self._write_plain(request, operation), sent)
        found = await opener.open(message, list_secrets(sent), scope, until - self.clock.seconds(), judge)
        if isinstance(found, StreamedAnswer):
            if credential is not None:
                credential.accepted(sent)
            return found
        headers = heads[-1].headers if heads else {}
        return (await self._note_credential(credential, sent, operation, FetchedPage(found, headers))).outcome

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        operation = self.spec.check_own(request)
        if request.stored is None:
            if request.operation in self.spec.forwarding:
                seconds = min(seconds, FORWARD_SECONDS)
            return (await self._send(request, operation, credential, seconds, late_seconds)).outcome
        try:
            body = await open_body(self.open_content, self.in_thread, request.stored)
        except (InvalidRequest, Forbidden) as error:
            return Outcome(fault=error.fault(), sent=False)
        try:
            return (await self._send(request, operation, credential, seconds, late_seconds, body)).outcome
        finally:
            await body.close()

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Search for the effect by its key, with the read that the file declares.

        If an input of the read was not given, or the search fails, the finding is undecided and has the fault.

        :raises CapabilityDenied: if the file declares no search for this operation.
        :raises VaultLocked, BindingFailed, NetworkError: if the credential cannot be opened.
        """
        lookup = self.spec.find_declared(sought.operation).lookup
        if lookup is None:
            raise CapabilityDenied(f"The operation {sought.operation} declares no way to look for its effect.")
        try:
            asked = lookup.inputs_for(sought)
            request = self.prepare(lookup.operation, asked, sought.base_url, sought.effect_key)
        except InvalidRequest as error:
            return Finding(None, fault=error.fault())
        outcome = await self.read(request, credential, seconds)
        echo = _redactor(await self._open(request, credential, seconds))
        return echo.outcome(lookup.finding(self.spec.fqn, outcome, sought, self.now(), echo))

    async def _send(
        self,
        request: Request,
        operation: HttpOperation,
        credential: ICredential | None,
        seconds: float,
        late_seconds: float = 0.0,
        body: FileBody | None = None,
    ) -> FetchedPage:
        within = min(seconds, operation.operation.timeout_seconds)
        until = self.clock.seconds() + within
        sent = await self._open(request, credential, within)
        echo, plain = _redactor(sent), self._write_plain(request, operation, body)
        attempt = _Attempt(self, operation, echo, until - self.clock.seconds(), late_seconds, plain)
        page = await attempt.page(_add_credential(plain, sent))
        return page if attempt.targets else await self._note_credential(credential, sent, operation, page)

    def _write_plain(self, request: Request, operation: HttpOperation, body: FileBody | None = None) -> OutgoingRequest:
        """Return the request as it is sent, without its credential."""
        return OutgoingRequest(
            method=request.method,
            url=request.url,
            headers=request.headers,
            body=request.body,
            private_network=self.spec.private_network,
            max_response_bytes=operation.max_response_bytes,
            file=body,
        )

    async def _note_credential(
        self, credential: ICredential | None, sent: Authorization, operation: HttpOperation, page: FetchedPage
    ) -> FetchedPage:
        """Note whether the service has accepted or refused the credential, and return the page."""
        outcome = page.outcome
        if credential is None or (outcome.fault is not None and outcome.status != _UNAUTHORIZED):
            return page
        if outcome.fault is None:
            credential.accepted(sent)
        elif await credential.refused(sent, operation=self._name_doubtful(operation, page)):
            return evolve(page, outcome=evolve(outcome, fault=evolve(outcome.fault, retriable=True)))
        return page

    def _name_doubtful(self, operation: HttpOperation, page: FetchedPage) -> str:
        """Return the operation's name if the service may have refused only this operation, else an empty text.

        Some services respond with 401 for resources that the user may not see.
        """
        is_certain = len(self.spec.operations) == 1 or says_invalid(page.headers.get("www-authenticate", ""))
        return "" if is_certain else operation.operation.name

    async def _open(self, request: Request, credential: ICredential | None, seconds: float) -> Authorization:
        return await open_credential(self.spec.description, request, credential, seconds=seconds, clock=self.clock)


def _add_credential(plain: OutgoingRequest, sent: Authorization) -> OutgoingRequest:
    return evolve(plain, url=with_credential(plain.url, sent), headers=(*plain.headers, *sent.headers))


def _redactor(sent: Authorization) -> Redactor:
    """Return the redactor of all secrets in C{sent}, including the decoded parts of HTTP Basic credentials."""
    return Redactor.of(*list_secrets(sent))


@frozen
class _Attempt:
    """One HTTP request and its outcome.

    :ivar plain: the request without its credential, repeated for redirects.
    :ivar targets: the URLs of redirects, without the credential.
    """

    connector: HttpConnector
    operation: HttpOperation
    echo: Redactor
    seconds: float
    late_seconds: float
    plain: OutgoingRequest
    flight: Flight = field(factory=Flight)
    targets: list[str] = field(factory=list, init=False)

    async def page(self, message: OutgoingRequest) -> FetchedPage:
        """Send the request, and return the page. Failures of the network and exceeded limits become outcomes."""
        name = self.connector.spec.fqn
        deadline = self.connector.clock.seconds() + self.seconds
        try:
            answer = await self._judge(message, deadline)
        except FAILURES as error:
            most = self.operation.max_response_bytes
            fault = describe_failure(name, error, self.flight, seconds=self.seconds, most_bytes=most)
            if isinstance(error, ServiceUnreachable) and self.flight.sent:
                fault = evolve(fault, retriable=self.operation.operation.idempotent)
            status = error.status if isinstance(error, TooLarge) else None
            return evolve(self._fail(fault, status), too_large=status is not None and 200 <= status <= 299)
        return FetchedPage(await self._read(name, answer), answer.headers, len(answer.body))

    async def _read(self, name: str, answer: ServiceAnswer) -> Outcome:
        """Return the outcome of a response, redacted. A long response is read in a thread."""
        reader, now = Reader(name, self.operation, self.echo), self.connector.now()
        in_thread = self.connector.in_thread
        if in_thread is None or len(answer.body) < _LONG_BYTES:
            return self.echo.outcome(reader.outcome(answer, now))
        read: Outcome = await in_thread(lambda: self.echo.outcome(reader.outcome(answer, now)))
        return read

    def _fail(self, fault: Fault, status: int | None = None) -> FetchedPage:
        failed = Outcome(fault=fault, sent=self.flight.sent, classified=False, status=status)
        return FetchedPage(self.echo.outcome(failed))

    async def _judge(self, message: OutgoingRequest, deadline: float) -> ServiceAnswer:
        answer, message = await self._once(message, deadline), self.plain
        for _ in range(_MOST_REDIRECTS if self.operation.follows else 0):
            target = _target(message, answer)
            if target is None:
                break
            self.echo.listen(answer.head)
            self.targets.append(target)
            message = evolve(message, url=target)
            answer = await self._once(message, deadline)
        return answer

    async def _once(self, message: OutgoingRequest, deadline: float) -> ServiceAnswer:
        clock, sending = self.connector.clock, self.connector.transport.send(message, self.flight)
        left = max(deadline - clock.seconds(), 0.0)
        return await wait_in_time(sending, clock, self.flight, seconds=left, late_seconds=self.late_seconds)


def _target(message: OutgoingRequest, answer: ServiceAnswer) -> str | None:
    if answer.status not in _REDIRECTS or "location" not in answer.headers:
        return None
    return find_on_origin(message.url, answer.headers["location"])
