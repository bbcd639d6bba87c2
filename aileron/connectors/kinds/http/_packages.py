"""Shows the package that a tool publishes: the read C{show_package} of a connector that declares C{packages}."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, BinaryIO, Protocol

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.addresses import Origin, read_origin
from aileron.base.json import JSON
from aileron.connectors._answer import Flight, OutgoingRequest, Transport
from aileron.connectors._forwarding import read_whole_body
from aileron.connectors._sending import FAILURES, open_body, wait_in_time
from aileron.connectors.packages import (
    MOST_ANSWER_BYTES,
    FetchedAnswer,
    NotAPackage,
    NotFetched,
    PackageRegistry,
    PackageShower,
    PackageUpload,
    UploadRequest,
    read_upload,
)
from aileron.model.connectors import FORWARD_READ, Outcome, Request
from aileron.model.errors import AileronError, Forbidden, InvalidRequest
from aileron.model.interfaces.vault import ICredential

from ._spec import HttpSpec

SHOW_PACKAGE = "show_package"
"""The read that shows the package that a request publishes, for previews."""

_SHARE_OF_READING, _SHARE_OF_FETCHING = 0.8, 0.6
_NO_PACKAGE = "This request publishes no package."


class ForwardingConnector(Protocol):
    """A connector that forwards requests."""

    @property
    def spec(self) -> HttpSpec:
        """The parsed connector file."""

    @property
    def transport(self) -> Transport:
        """The sender of requests."""

    @property
    def clock(self) -> IReactorTime:
        """The clock of timeouts."""

    @property
    def in_thread(self) -> Callable[..., Awaitable[Any]] | None:
        """A function that calls a function with arguments in another thread, or None."""

    @property
    def open_content(self) -> Callable[[str], BinaryIO | None]:
        """A function that opens the file of a stored body by its digest, or returns None if there is none."""

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """Build a request."""

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Send a read."""


@frozen
class PackagePreview:
    """The preview of one request that may publish a package.

    :ivar request: the request, as it would be sent.
    """

    connector: ForwardingConnector
    request: Request
    credential: ICredential | None
    seconds: float

    async def show(self) -> Outcome:
        """Return what the request would publish. If it publishes no package, the output says so."""
        try:
            upload = await self._apart(self._read, await self._load())
        except (InvalidRequest, Forbidden) as error:
            return Outcome(fault=error.fault(), sent=False)
        except NotAPackage as error:
            return Outcome({"warning": f"The package cannot be shown: {error}."})
        if upload is None:
            return Outcome({"package": _NO_PACKAGE})
        until = self.connector.clock.seconds() + self.seconds * _SHARE_OF_FETCHING

        async def fetch(url: str, accept: str) -> FetchedAnswer:
            return await self._fetch(url, accept, until)

        registry = PackageRegistry(self._origin.url, fetch, self._apart)
        shower = PackageShower(upload, registry, time.monotonic() + self.seconds * _SHARE_OF_READING)
        return Outcome(await shower.show())

    @property
    def _origin(self) -> Origin:
        return read_origin(self.request.url)

    async def _load(self) -> bytes:
        """Return the body of the request.

        :raises InvalidRequest: if it is not stored any more, or was changed.
        :raises Forbidden: if the file is not a private file of this user.
        """
        stored = self.request.stored
        if stored is None:
            return self.request.body or b""
        body = await open_body(self.connector.open_content, self.connector.in_thread, stored)
        try:
            content: bytes = await self._apart(body.file.read, stored.size)
            return content
        finally:
            await body.close()

    def _read(self, body: bytes) -> PackageUpload | None:
        request, tools = self.request, self.connector.spec.description.own_tools
        target = request.url.removeprefix(self._origin.url)
        asked = UploadRequest(request.method, target, request.headers, body)
        return read_upload(tools.packages if tools else "", asked)

    async def _apart(self, work: Callable[..., Any], *args: Any) -> Any:
        in_thread = self.connector.in_thread
        return work(*args) if in_thread is None else await in_thread(work, *args)

    async def _fetch(self, url: str, accept: str, until: float) -> FetchedAnswer:
        """Fetch a URL: with the credential from the host of the request, without it from another declared host.

        :raises NotFetched: if the connector does not declare the host, or there is no answer.
        """
        origin, left = read_origin(url), until - self.connector.clock.seconds()
        if left <= 0:
            raise NotFetched("the registry takes too long")
        # guard of own tools: a registry gets the credential only at the host to which the package is sent
        #    -> connectors.kinds.http.test_packages.PreviewTests.test_credential, instead if False
        if origin != self._origin:
            return await self._fetch_openly(url, accept, left)
        inputs: dict[str, JSON] = {
            "host": origin.host_and_port.removesuffix(":443"),
            "method": "GET",
            "target": url.removeprefix(origin.url),
            "headers": [f"Accept: {accept}"],
        }
        try:
            asked = self.connector.prepare(FORWARD_READ, inputs, origin.url, "")
            outcome = await self.connector.read(asked, self.credential, left)
        except AileronError as error:
            raise NotFetched(_as_clause(error.message)) from None
        if outcome.fault is not None or outcome.status is None:
            raise NotFetched(_as_clause(outcome.fault.message) if outcome.fault else "there is no answer")
        return FetchedAnswer(outcome.status, read_whole_body(outcome.output))

    async def _fetch_openly(self, url: str, accept: str, seconds: float) -> FetchedAnswer:
        """Fetch a URL without a credential.

        :raises NotFetched: if the connector does not declare the host, or there is no answer.
        """
        connector, host = self.connector, read_origin(url).host_and_port
        # guard of own tools: a connector reaches no host that its file does not declare
        #    -> connectors.kinds.http.test_packages.PreviewTests.test_undeclared
        if host not in connector.spec.description.hosts:
            raise NotFetched(f"the connector does not declare the host {host}")
        private_network = connector.spec.private_network
        message = OutgoingRequest("GET", url, (("Accept", accept),), None, private_network, MOST_ANSWER_BYTES)
        flight = Flight()
        try:
            sending = connector.transport.send(message, flight)
            answer = await wait_in_time(sending, connector.clock, flight, seconds=seconds)
        except FAILURES:
            raise NotFetched(f"{host} did not answer in time, or with more than {MOST_ANSWER_BYTES} bytes") from None
        if answer.headers.get("content-encoding", "identity").lower() != "identity":
            raise NotFetched(f"{host} answered with an encoding that was not asked for")
        return FetchedAnswer(answer.status, answer.body)


def _as_clause(message: str) -> str:
    return message.rstrip(".")[:500]
