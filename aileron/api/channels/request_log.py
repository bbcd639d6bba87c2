"""The line of each request in the daemon's log: its ids, the name of its route, its status and how long it took.

The line has no path, query, header or body, because each of them may contain a secret.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import define
from twisted.logger import Logger

from aileron.base.trace_context import TraceParent

NAMESPACE = "aileron.request"
REQUEST_ID = b"X-Request-Id"
"""The header of each answer with our id of the request."""

_log = Logger(NAMESPACE)
_METHODS = frozenset((b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"))
_OWN_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}").fullmatch
_CLIENT_ID = re.compile(rb"(?!ail_)[0-9A-Za-z_.-]{1,64}").fullmatch


def read_client_id(lines: Sequence[bytes]) -> str | None:
    """Return the client's own id of a request, or None if the header does not have exactly one short, plain value.

    :param lines: the values of the header C{X-Request-Id}.
    """
    if len(lines) != 1 or _CLIENT_ID(lines[0]) is None:
        return None
    return lines[0].decode("ascii")


@define(eq=False)
class RequestNotes:
    """Facts about a request that become known while it is served.

    :ivar id: our id of the request.
    :ivar route: the name of its route, or None if no route matches.
    :ivar session_id: the agent's session, or None if the caller is not an agent.
    :ivar run_id: the run that it is about, or None. A run in its path may not exist.
    :ivar client_id: the client's own id of the request, or None.
    :ivar parent: the client's C{traceparent}, or None.
    """

    id: str = ""
    route: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    client_id: str | None = None
    parent: TraceParent | None = None

    def note_run(self, run_id: str | None) -> None:
        """Set the run that the request is about, if C{run_id} has the form of a run's id."""
        if run_id is not None and _OWN_ID(run_id):
            self.run_id = run_id


def log_request(notes: RequestNotes, method: bytes, status: int | None, seconds: float) -> None:
    """Log a request that was answered.

    :param method: its method, or empty if its head could not be read.
    :param status: the status of the answer, or None if the client disconnected first.
    """
    name = method.decode("ascii") if method in _METHODS else "other"
    _log.info(
        "{method} {route}: {outcome} after {seconds} s",
        method=name,
        route=notes.route or "none",
        outcome="disconnected" if status is None else status,
        status=status,
        seconds=round(max(0.0, seconds), 6),
        request=notes.id,
        session=notes.session_id,
        run=notes.run_id,
        client_request=notes.client_id,
        client_trace=None if notes.parent is None else notes.parent.trace_id,
    )
