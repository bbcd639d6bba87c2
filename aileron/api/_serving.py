"""From a request to its answer: guard, read, call, encode; and every failure in the one envelope."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from aileron.errors import AileronError, InternalError, InvalidRequest
from aileron.values import JSON, violation

from ._endpoint import Endpoint, Visit
from ._faults import Answer, Streamed, failed, http_failure
from ._guard import Caller, Identify, Who, admit, keep_place
from ._parts import Parts
from ._reading import header, preferred_wait, read_body, read_query
from .channels.streaming import stream

_log = Logger()


def guarded(endpoint: Endpoint, allowed: Who, identify: Identify, parts: Parts) -> Callable[..., Deferred[bytes]]:
    """The Klein handler of C{endpoint}, which no caller passes but C{allowed}."""

    async def serve(request: IRequest, path: Mapping[str, str]) -> bytes:
        try:
            caller = await admit(request, parts, identify, allowed)
            visit = _read(endpoint, request, caller, parts, path)
            answer = await endpoint.route(visit, parts, **path)
        except AileronError as error:
            answer = failed(error)
        except CancelledError:  # the client left, or the daemon stops: in either case only the wait has ended
            raise
        except Exception:  # noqa: BLE001  # the HTTP rim
            answer = unexpected(endpoint.name)
        if isinstance(answer, Streamed):
            return await stream(request, answer)
        return write(request, answer)

    def handle(request: IRequest, **path: str) -> Deferred[bytes]:
        return Deferred.fromCoroutine(serve(request, path))

    return handle


def _read(endpoint: Endpoint, request: IRequest, caller: Caller, parts: Parts, path: Mapping[str, str]) -> Visit:
    try:
        query = read_query(request, endpoint.query.schema)
        if query:  # no query is ever required, and most have none
            endpoint.query.check(query, "query")
        body = _body(endpoint, request)
        wait_seconds = preferred_wait(request)
    except InvalidRequest:
        if endpoint.known is not None:
            endpoint.known(parts, **path)
        raise
    host = header(request, b"Host") or ""
    ends = request.getClientAddress(), request.getHost()
    keep = partial(keep_place, request)
    return Visit(caller, body, query, wait_seconds, parts.clock.seconds(), host, ends, keep)


def _body(endpoint: Endpoint, request: IRequest) -> Mapping[str, JSON]:
    if endpoint.method == "GET":
        return {}
    body = read_body(request)
    endpoint.body.check(body, "body")
    if not isinstance(body, Mapping):
        raise InvalidRequest.listing("The body is not what this route takes.", ("", violation("type", "object")))
    return body


def write(request: IRequest, answer: Answer) -> bytes:
    """Set everything of C{answer} but the body, which the caller returns to Klein."""
    request.setResponseCode(answer.status)
    headers = request.responseHeaders
    headers.setRawHeaders(b"Content-Type", [answer.content_type])
    headers.setRawHeaders(b"Content-Length", [b"%d" % len(answer.body)])
    for name, value in answer.headers.items():
        headers.setRawHeaders(name, [value])
    return answer.body


def routing_failed(request: IRequest, failure: Failure) -> bytes:
    """What is no route: 404, or 405 where only the method is another."""
    error: Any = failure.value
    if isinstance(error, MethodNotAllowed):
        methods = ", ".join(sorted(error.valid_methods or ()))
        answer = http_failure(405, f"This path takes {methods} only.")
        request.setHeader("Allow", methods)
    elif isinstance(error, HTTPException):
        answer = http_failure(404, "There is nothing at this path.")
    elif failure.check(CancelledError):
        answer = failed(InternalError("The daemon is stopping."))
    else:
        answer = unexpected("routing", failure)
    return write(request, answer)


def unexpected(name: str, failure: Failure | None = None) -> Answer:
    """An answer that says nothing of the inside; the log learns what failed and where, and no value."""
    failure = failure or Failure()
    frames = traceback.extract_tb(failure.getTracebackObject())[-4:]
    places = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))
    kind = type(failure.value).__qualname__
    _log.error("{name} failed unexpectedly: {kind} at {places}", name=name, kind=kind, places=places)
    return failed(InternalError("Something failed inside the daemon; its log says where."))
