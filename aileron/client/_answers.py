"""The daemon's responses, and the exceptions raised if there is none or it is an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import define, frozen

from aileron.base.converter import from_json
from aileron.model.faults import Fault

_FAULT = ("class", "message", "retriable", "boundary", "details")


@define(eq=False)
class DaemonError(Exception):
    """A request to the daemon failed or was refused.

    :ivar message: safe to show to the user: it contains no secret and no traceback.
    """

    message: str

    def __str__(self) -> str:
        """Return the message, for logs."""
        return self.message


@define(eq=False)
class DaemonUnreachable(DaemonError):
    """No response arrived: the connection was refused or lost, or the deadline passed.

    :ivar sent: whether the daemon may have received the request.
    :ivar misdirected: whether requests with this configuration are not allowed, so starting the daemon does not help.
    :ivar remedy: what the user should do, as the end of a sentence, or an empty text for the usual advice.
    """

    sent: bool = False
    misdirected: bool = False
    remedy: str = ""


@define(eq=False)
class AnswerNotUnderstood(DaemonError):
    """The response is not one that a daemon sends.

    :ivar status: the HTTP status.
    """

    status: int


@define(eq=False)
class DaemonFault(DaemonError):
    """The daemon responded with its error envelope.

    :ivar status: the HTTP status.
    :ivar fault: the content of the envelope.
    :ivar run_id: the ID of the failed run, if there is one.
    :ivar audit_id: the ID of the event that recorded the failure, if there is one.
    """

    status: int
    fault: Fault
    run_id: str | None = None
    audit_id: str | None = None


@frozen
class DaemonAnswer:
    """A successful response.

    :ivar body: its JSON object; empty if the response has no body.
    """

    status: int
    body: Mapping[str, Any]


_GATEWAY_STATUSES = frozenset((502, 503, 504))
"""The statuses that reverse proxies produce themselves."""


def read_answer(status: int, content: bytes) -> DaemonAnswer:
    """Parse a whole response.

    :raises DaemonFault: if it is an error envelope.
    :raises DaemonUnreachable: if a proxy responded because it could not reach the daemon.
    :raises AnswerNotUnderstood: if it is neither an error envelope nor a successful JSON object.
    """
    try:
        body = json.loads(content) if content else {}
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict) and 200 <= status < 300:
        return DaemonAnswer(status, body)
    raise (_read_envelope(status, body) if status >= 400 else None) or _foreign_answer(status)


def _read_envelope(status: int, body: Any) -> DaemonFault | None:
    """Parse the daemon's error envelope, or return None if the body is not one."""
    try:
        envelope: Any = body["error"]
        fault = from_json(Fault, {name: envelope[name] for name in _FAULT})
    except (KeyError, TypeError, ValueError):
        return None
    return DaemonFault(fault.message, status, fault, _text(envelope.get("run_id")), _text(envelope.get("audit_id")))


def _foreign_answer(status: int) -> DaemonError:
    """Return the exception for a response that is not the daemon's."""
    if status in _GATEWAY_STATUSES:
        # The proxy may have forwarded the request, as is usual while the daemon restarts.
        return DaemonUnreachable(f"A proxy before the Aileron daemon cannot reach it (HTTP {status}).", sent=True)
    return AnswerNotUnderstood(f"The response is not from an Aileron daemon (HTTP {status}).", status)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
