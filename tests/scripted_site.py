"""An HTTP site that answers as a test says, for clients that are tested without a socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO, cast

from attrs import frozen
from treq.testing import RequestTraversalAgent
from twisted.internet import error
from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import ITransport
from twisted.web.http import Request
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer, IResponse
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer


@frozen
class Asked:
    """One request as the site saw it.

    :ivar path: with its query, as it was sent.
    :ivar body: parsed JSON, or L{None} without a body.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


class ScriptedSite(Resource):
    """Answers each request with the next thing that was put in; one without an answer waits for it.

    :ivar asked: every request so far.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.asked: list[Asked] = []
        self._answers: list[tuple[int, bytes]] = []
        self._waiting: list[Request] = []
        self.agent = RequestTraversalAgent(self)

    @property
    def waiting(self) -> int:
        """The number of requests that wait for an answer and are still connected."""
        return len(self._waiting)

    def answer(self, status: int, body: object) -> None:
        """Answer the oldest waiting request, or else the next one.

        :param body: bytes as they are, anything else as JSON.
        """
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        if self._waiting:
            _finish(self._waiting.pop(0), status, content)
            self.agent.flush()
        else:
            self._answers.append((status, content))

    def begin(self, status: int, part: bytes) -> None:
        """Send the beginning of an answer to the oldest waiting request, which goes on waiting for the rest."""
        request = self._waiting[0]
        request.setResponseCode(status)
        request.write(part)
        self.agent.flush()

    def hang_up(self) -> None:
        """Cut the connection of the oldest waiting request."""
        cast("ITransport", self._waiting.pop(0).transport).loseConnection()
        self.agent.flush()

    def render(self, request: Request) -> int:
        """Note it, and answer it if an answer is there."""
        self.asked.append(_note(request))
        request.notifyFinish().addErrback(lambda _: self._waiting.remove(request) if request in self._waiting else None)
        if self._answers:
            _finish(request, *self._answers.pop(0))
        else:
            self._waiting.append(request)
        return NOT_DONE_YET


@implementer(IAgent)
class RefusingAgent:
    """An agent for whom nobody listens."""

    def request(
        self, method: bytes, uri: bytes, headers: Headers | None = None, bodyProducer: IBodyProducer | None = None
    ) -> Deferred[IResponse]:
        """Refused, always."""
        return fail(error.ConnectionRefusedError())


def _note(request: Request) -> Asked:
    content = cast("BinaryIO", request.content).read()
    headers = {key.decode().lower(): values[0].decode() for key, values in request.requestHeaders.getAllRawHeaders()}
    return Asked(request.method.decode(), request.uri.decode(), headers, json.loads(content) if content else None)


def _finish(request: Request, status: int, content: bytes) -> None:
    request.setResponseCode(status)
    request.setHeader(b"content-type", b"application/json")
    request.write(content)
    request.finish()
