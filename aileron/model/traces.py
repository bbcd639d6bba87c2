"""The places at which a feature follows runs from the request to the services: see the feature C{tracing}."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, frozen

from aileron.base.trace_context import TraceParent


def _find_none(run_id: str, step_id: str) -> str | None:
    return None


@define(eq=False)
class TraceSource:
    """Tells the executor the header C{traceparent} of a step's requests.

    :ivar find: returns the header's value for a run and a step, or None. It waits for nothing and never fails.
    """

    find: Callable[[str, str], str | None] = _find_none


@frozen
class RequestedRun:
    """A request to run an action, once its run is stored.

    :ivar request_id: our id of the HTTP request.
    :ivar began_at: the start of the request, in seconds since 1970.
    :ivar parent: the caller's place in its own trace, which is a claim of the caller, or None.
    """

    run_id: str
    action: str
    session_id: str | None
    request_id: str
    began_at: float
    parent: TraceParent | None
