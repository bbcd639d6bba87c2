"""The error envelope with its statuses, and the headers of every answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from attrs import field, frozen

from aileron.base.converter import to_json
from aileron.base.json import JSON, writer
from aileron.model.errors import STATUS, AileronError, InvalidRequest, NotFound
from aileron.model.faults import Fault

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""The default headers of every answer of both sites."""

JSON_TYPE = "application/json"

_written = writer(sort_keys=False, allow_nan=False)


@frozen
class Answer:
    """An answer of a route: a status, a body, and headers beyond L{HEADERS}."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(factory=dict)
    content_type: str = JSON_TYPE


@frozen
class Streamed:
    """A successful answer whose body is generated as the client reads it.

    :ivar chunks: the chunks of the body. Their content must show if they end early.
    """

    chunks: AsyncIterator[bytes]
    content_type: str
    status: int = 200
    headers: Mapping[str, str] = field(factory=dict)


def encode(value: JSON) -> bytes:
    """Return C{value} as JSON in ASCII.

    :raises ValueError: if a number cannot be written in JSON.
    """
    return _written(value).encode("ascii")


def answer(value: JSON, status: int = 200) -> Answer:
    """Return the answer of a success.

    :raises ValueError: if a number cannot be written in JSON.
    """
    return Answer(status, encode(value))


def failure(
    fault: Fault, *, status: int | None = None, run_id: str | None = None, audit_id: str | None = None
) -> Answer:
    """Return the answer of a failure, in the error envelope.

    :param status: the status, if it is not that of C{fault}'s class (405, 413, 415, …).
    """
    inside = to_json(fault)
    if audit_id is not None:
        inside["audit_id"] = audit_id
    if run_id is not None:
        inside["run_id"] = run_id
    code = status or STATUS.get(fault.kind, 500)
    return Answer(code, encode({"error": inside}), _headers(code, fault))


def describe_failure(error: AileronError) -> Answer:
    """Return the answer that describes C{error} to the caller."""
    return failure(error.fault())


def http_failure(status: int, message: str) -> Answer:
    """Return the answer of an HTTP error with its own status: C{not_found} for 404, else C{invalid_request}."""
    error: AileronError = NotFound(message) if status == 404 else InvalidRequest(message)
    return failure(error.fault(), status=status)


def _headers(status: int, fault: Fault) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    if status in {429, 503}:
        seconds = fault.details.get("retry_after")
        return {"Retry-After": str(int(seconds)) if isinstance(seconds, (int, float)) else "1"}
    return {}
