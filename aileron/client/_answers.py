"""The daemon's answers, and the exceptions raised where none comes or it is a refusal."""

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
    """The daemon could not be asked, or it said no.

    :ivar message: fit for the user's eyes: no secret, no stack.
    """

    message: str

    def __str__(self) -> str:
        """Return the message, for logs."""
        return self.message


@define(eq=False)
class DaemonUnreachable(DaemonError):
    """No answer came: refused, cut off, or too late.

    :ivar sent: whether the daemon may have received the request.
    :ivar misdirected: whether what we were told of it leads to nobody whom we may ask, so that no start of it helps.
    """

    sent: bool = False
    misdirected: bool = False


@define(eq=False)
class AnswerNotUnderstood(DaemonError):
    """Something answered, but not as the daemon does.

    :ivar status: the HTTP status that came.
    """

    status: int


@define(eq=False)
class DaemonFault(DaemonError):
    """The daemon answered with its error envelope.

    :ivar status: the HTTP status.
    :ivar fault: the envelope's inside.
    :ivar run_id: of the run that failed, if there is one.
    :ivar audit_id: of the event that recorded it, if there is one.
    """

    status: int
    fault: Fault
    run_id: str | None = None
    audit_id: str | None = None


@frozen
class DaemonAnswer:
    """A successful answer.

    :ivar body: its JSON object; empty where there was no body.
    """

    status: int
    body: Mapping[str, Any]


_GATEWAY_STATUSES = frozenset((502, 503, 504))
"""The statuses that servers which pass requests on answer for themselves."""


def read_answer(status: int, content: bytes) -> DaemonAnswer:
    """Read a whole answer.

    :raises DaemonFault: it is an error envelope.
    :raises DaemonUnreachable: it is of what stands before the daemon, which it does not reach.
    :raises AnswerNotUnderstood: it is neither that nor a successful JSON object.
    """
    try:
        body = json.loads(content) if content else {}
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict) and 200 <= status < 300:
        return DaemonAnswer(status, body)
    raise (_read_envelope(status, body) if status >= 400 else None) or _foreign_answer(status)


def _read_envelope(status: int, body: Any) -> DaemonFault | None:
    """Read the daemon's refusal, if it is one."""
    try:
        envelope: Any = body["error"]
        fault = from_json(Fault, {name: envelope[name] for name in _FAULT})
    except (KeyError, TypeError, ValueError):
        return None
    return DaemonFault(fault.message, status, fault, _text(envelope.get("run_id")), _text(envelope.get("audit_id")))


def _foreign_answer(status: int) -> DaemonError:
    """Make the exception for an answer that is not the daemon's."""
    if status in _GATEWAY_STATUSES:
        # It does not say whether it had sent the request on, and where the daemon is restarted it often had.
        return DaemonUnreachable(f"A proxy before the Aileron daemon cannot reach it (HTTP {status}).", sent=True)
    return AnswerNotUnderstood(f"The response is not from an Aileron daemon (HTTP {status}).", status)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
