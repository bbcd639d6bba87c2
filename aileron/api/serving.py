"""Serves a request: guard, parse, call the route, encode, and report every failure in the error envelope."""

from __future__ import annotations

import re
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from attrs import evolve
from twisted.internet.defer import CancelledError
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from aileron.base.json import JSON, MOST_VALUES, loads_strict
from aileron.base.schemas import violation
from aileron.model.errors import AileronError, InternalError, InvalidRequest

from .channels.request import MemoryRequest, stream
from .channels.request_log import RequestNotes
from .dependencies import Dependencies
from .endpoint import Endpoint, Received, RequestContext
from .faults import Answer, Streamed, describe_failure, http_failure
from .guard import Caller, Identify, Who, admit, header, keep_place

MAX_WAIT_SECONDS = 3600

_INTEGER = re.compile(r"-?[0-9]{1,15}").fullmatch
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,6})?").fullmatch
_WAIT = re.compile(r'wait\s*=\s*"?([0-9]{1,9})"?\s*(?:;.*)?').fullmatch
_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False, "1": True, "0": False}


def notes_of_request(request: IRequest) -> RequestNotes:
    """Return the facts about a request for the log. They are lost unless a channel of ours received the request."""
    return request.notes if isinstance(request, MemoryRequest) else RequestNotes()


def read_body(data: bytes) -> JSON:
    """Parse the body's JSON. An empty body is an empty object.

    :raises InvalidRequest: if the body is not JSON, or is ambiguous JSON.
    """
    if not data:
        return {}
    try:
        return loads_strict(data, most_values=MOST_VALUES)
    except ValueError as error:
        raise InvalidRequest.listing("The body cannot be read as JSON.", ("", str(error))) from None


def read_query(given: Mapping[bytes, Sequence[bytes]], schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """Parse the query by C{schema}: numbers and booleans are converted, and repeated names become an array.

    :raises InvalidRequest: if a name or a value is not UTF-8.
    """
    if not given:
        return {}
    properties = schema["properties"]
    query: dict[str, JSON] = {}
    for raw_name, raw_values in given.items():
        try:
            name, values = raw_name.decode("utf-8"), [value.decode("utf-8") for value in raw_values]
        except UnicodeDecodeError:
            raise InvalidRequest.listing("The query is not UTF-8.") from None
        wanted = properties.get(name, {}) if isinstance(properties, Mapping) else {}
        query[name] = _read_typed(values, wanted.get("type") if isinstance(wanted, Mapping) else None)
    return query


def _read_typed(values: Sequence[str], kind: JSON) -> JSON:
    """Convert the values of one name in a query to the JSON type C{kind}.

    A value that cannot be converted stays a text, and several values stay an array. The schema then refuses them.
    """
    if kind == "array" or len(values) != 1:
        return values
    text = values[0]
    if kind == "integer" and _INTEGER(text):
        return int(text)
    if kind == "number" and _NUMBER(text):
        return float(text)
    return _BOOLEANS.get(text, text) if kind == "boolean" else text


def preferred_wait(lines: Iterable[bytes]) -> float | None:
    """Return the seconds of C{Prefer: wait=N} (RFC 7240), at most an hour, or None if there is no such preference.

    :param lines: the values of the header.
    :raises InvalidRequest: if the wait is not a number of seconds.
    """
    for line in lines:
        for preference in line.decode("latin-1").split(","):
            wish = preference.strip()
            if wish.lower().partition("=")[0].strip() == "wait":
                return _seconds(wish.lower())
    return None


def _seconds(wish: str) -> float:
    match = _WAIT(wish)
    if match is None:
        raise InvalidRequest.listing("The preference wait must be a number of whole seconds, such as Prefer: wait=45.")
    return float(min(int(match[1]), MAX_WAIT_SECONDS))


_log = Logger()


def guarded(
    endpoint: Endpoint, allowed: Who, identify: Identify, deps: Dependencies
) -> Callable[..., Awaitable[bytes]]:
    """Return the Klein handler of C{endpoint}, which admits only callers in C{allowed}.

    The handler writes the answer, or the error envelope, to the request.
    """

    async def serve(request: IRequest, **path: str) -> bytes:
        received = Received(
            query=request.args or {},
            body=request.content.read,
            prefer=request.requestHeaders.getRawHeaders(b"Prefer") or (),
            host=header(request, b"Host") or "",
            ends=(request.getClientAddress(), request.getHost()),
            keep_place=partial(keep_place, request),
            notes=notes_of_request(request),
        )
        answer = await respond(endpoint, deps, path, received, allowed, partial(identify, request, deps))
        if isinstance(answer, Streamed):
            return await stream(request, answer)
        return write(request, answer)

    return serve


async def respond(
    endpoint: Endpoint,
    deps: Dependencies,
    path: Mapping[str, str],
    received: Received,
    allowed: Who,
    identify: Callable[[], Awaitable[Caller]],
) -> Answer | Streamed:
    """Return the answer of C{endpoint}. If the caller is not allowed or the route fails, return the error envelope.

    An unexpected exception is logged. Only a cancellation is raised.

    :param identify: reads the request's credential.
    """
    try:
        received.notes.note_run(path.get("run_id", path.get("approval_id")))
        caller = await admit(allowed, identify, received.keep_place, endpoint.name)
        received.notes.session_id = caller.session_id
        return await endpoint.route(_read(endpoint, received, caller, deps, path), deps, **path)
    except AileronError as error:
        return describe_failure(error)
    except CancelledError:  # the client disconnected or the daemon stops: in both cases only the wait has ended
        raise
    except Exception:  # noqa: BLE001  # the rim of HTTP, and of requests made in this process
        return describe_failure(unexpected(endpoint.name, request_id=received.notes.id))


def _read(
    endpoint: Endpoint, received: Received, caller: Caller, deps: Dependencies, path: Mapping[str, str]
) -> RequestContext:
    try:
        query = read_query(received.query, endpoint.query.schema)
        if query:  # a query is never required, and most requests have none
            endpoint.query.check(query, "query")
        body = _body(endpoint, received.body)
        wait_seconds = preferred_wait(received.prefer)
    except InvalidRequest:
        if endpoint.known is not None:
            endpoint.known(deps, **path)
        raise
    return RequestContext(
        caller=caller,
        body=body,
        query=query,
        wait_seconds=wait_seconds,
        began_at=deps.clock.seconds(),
        received=received,
    )


def _body(endpoint: Endpoint, read: Callable[[], bytes]) -> Mapping[str, JSON]:
    if endpoint.method == "GET":
        return {}
    body = read_body(read())
    endpoint.body.check(body, "body")
    if not isinstance(body, Mapping):
        raise InvalidRequest.listing("The body is not what this route takes.", ("", violation("type", "object")))
    return body


def write(request: IRequest, answer: Answer) -> bytes:
    """Set the status and headers of C{answer}, and return its body for Klein."""
    request.setResponseCode(answer.status)
    headers = request.responseHeaders
    headers.setRawHeaders(b"Content-Type", [answer.content_type])
    headers.setRawHeaders(b"Content-Length", [b"%d" % len(answer.body)])
    for name, value in answer.headers.items():
        headers.setRawHeaders(name, [value])
    return answer.body


def routing_failed(request: IRequest, failure: Failure) -> bytes:
    """Set the answer to a failed routing, and return its body: 404, or 405 if only the method is wrong.

    While the daemon is stopping, and for an unexpected failure, which is logged, it is 500.
    """
    if isinstance(failure.value, HTTPException):
        answer = not_routed(failure.value)
    elif failure.check(CancelledError):
        answer = describe_failure(InternalError("The daemon is stopping."))
    else:
        answer = describe_failure(unexpected("routing", failure, notes_of_request(request).id))
    return write(request, answer)


def not_routed(error: Exception) -> Answer:
    """Return the answer to a request without a route: 404, or 405 with the allowed methods."""
    if isinstance(error, MethodNotAllowed):
        methods = ", ".join(sorted(error.valid_methods or ()))
        return evolve(http_failure(405, f"This path takes {methods} only."), headers={"Allow": methods})
    return http_failure(404, "There is nothing at this path.")


def unexpected(name: str, failure: Failure | None = None, request_id: str = "") -> InternalError:
    """Log where an unexpected failure happened, without values, and return an error without internals."""
    failure = failure or Failure()
    frames = traceback.extract_tb(failure.getTracebackObject())[-4:]
    places = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))
    kind = type(failure.value).__qualname__
    _log.error(
        "{name} failed unexpectedly: {kind} at {places}", name=name, kind=kind, places=places, request=request_id
    )
    return InternalError("Something failed inside the daemon; its log says where.")
