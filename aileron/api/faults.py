"""The one error envelope with its statuses, and the headers that every answer has."""

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
"""The fields of every answer of either site, whatever it says, unless it has another value for one."""

JSON_TYPE = "application/json"

_written = writer(sort_keys=False, allow_nan=False)


@frozen
class Answer:
    """An answer of a route: a status and a body, and headers beyond L{HEADERS}."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(factory=dict)
    content_type: str = JSON_TYPE


@frozen
class Streamed:
    """A success whose body is made as the client takes it.

    :ivar chunks: of the body; where they end early, what they say must show it.
    """

    chunks: AsyncIterator[bytes]
    content_type: str
    status: int = 200
    headers: Mapping[str, str] = field(factory=dict)


def encode(value: JSON) -> bytes:
    """C{value} as JSON, in ASCII.

    :raises ValueError: a number that JSON cannot say.
    """
    return _written(value).encode("ascii")


def answer(value: JSON, status: int = 200) -> Answer:
    """Make the answer of a success."""
    return Answer(status, encode(value))


def failure(
    fault: Fault, *, status: int | None = None, run_id: str | None = None, audit_id: str | None = None
) -> Answer:
    """Make the answer of a failure, in the envelope.

    :param status: where the class of C{fault} does not say it (405, 413, 415, …).
    """
    inside = to_json(fault)
    if audit_id is not None:
        inside["audit_id"] = audit_id
    if run_id is not None:
        inside["run_id"] = run_id
    code = status or STATUS.get(fault.kind, 500)
    return Answer(code, encode({"error": inside}), _headers(code, fault))


def describe_failure(error: AileronError) -> Answer:
    """Tell what C{error} is to the caller."""
    return failure(error.fault())


def http_failure(status: int, message: str) -> Answer:
    """Return a fault of HTTP itself, which keeps its own status: C{not_found} for 404, else C{invalid_request}."""
    error: AileronError = NotFound(message) if status == 404 else InvalidRequest(message)
    return failure(error.fault(), status=status)


def _headers(status: int, fault: Fault) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    if status in {429, 503}:
        seconds = fault.details.get("retry_after")
        return {"Retry-After": str(int(seconds)) if isinstance(seconds, (int, float)) else "1"}
    return {}
