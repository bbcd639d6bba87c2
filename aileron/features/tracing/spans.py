"""The spans of a run, made from what the audit log recorded of it.

All ids of a trace are digests over the id of the run. So they are the same after a restart and in another daemon, and
nothing has to be stored while a run waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from attrs import field, frozen

from aileron.base.json import JSON, from_timestamp
from aileron.base.trace_context import TraceParent
from aileron.model.audit import Event
from aileron.model.runs import Run, RunState
from aileron.model.traces import RequestedRun

INTERNAL, SERVER, CLIENT = 1, 2, 3
"""The kinds of spans, as OTLP numbers them."""

ENDS = frozenset(
    (
        "execution.succeeded",
        "execution.failed",
        "execution.unknown",
        "approval.denied",
        "approval.expired",
        "run.cancelled",
    )
)
"""The events with which a run ends."""

_DECISIONS = ENDS | {"approval.approved"}
_FAILED = frozenset((RunState.FAILED, RunState.UNKNOWN))
_ROOT, _APPROVAL, _EXECUTION = "run", "approval", "execution"
_MOST_EVENTS = 64


@frozen
class TraceSpan:
    """A part of a trace.

    :ivar started_at: in nanoseconds since 1970, as C{ended_at} is.
    :ivar events: the moments within the span, each with its name.
    :ivar link: a place in another trace that has led to this span, or None.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: int
    started_at: int
    ended_at: int
    attributes: Mapping[str, str | int | bool] = field(factory=dict)
    events: tuple[tuple[int, str], ...] = ()
    link: TraceParent | None = None
    failed: bool = False


def place_of(run_id: str, *part: str) -> TraceParent:
    """Return the place of a part of a run in the run's trace, or of the whole run."""
    return TraceParent(_digest("trace", run_id)[:32], _digest("span", run_id, *part)[:16])


def find_header(run_id: str, step_id: str) -> str:
    """Return the value of C{traceparent} for the requests of a step."""
    return place_of(run_id, "step", step_id).header


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(("aileron", *parts)).encode("utf-8", "surrogatepass")).hexdigest()


def span_of_request(requested: RequestedRun, ended_at: float) -> TraceSpan:
    """Return the span of the request that has led to a run. It is linked to the caller's own trace.

    :param ended_at: in seconds since 1970.
    """
    place = place_of(requested.run_id, "request", requested.request_id)
    return TraceSpan(
        *(place.trace_id, place.span_id, place_of(requested.run_id).span_id, "request", SERVER),
        started_at=_nanoseconds(requested.began_at),
        ended_at=_nanoseconds(max(ended_at, requested.began_at)),
        attributes={"aileron.run.id": requested.run_id, "aileron.action": requested.action},
        link=requested.parent,
    )


def spans_of_run(run: Run, events: Sequence[Event]) -> Iterator[TraceSpan]:
    """Yield the spans of a run that has ended: the run, its wait for an approval, its execution, and each step.

    They have ids, names, states and times, and no arguments, results or texts.

    :param events: the audit events of the run, oldest first.
    """
    end = next((each for each in reversed(events) if each.type in ENDS), None)
    ended_at = run.changed_at if end is None else end.at
    root = place_of(run.id)
    common = {"aileron.run.id": run.id, "aileron.action": run.action}
    yield TraceSpan(
        *(root.trace_id, root.span_id, None, f"run {run.action}", INTERNAL),
        started_at=_moment(run.received_at),
        ended_at=_moment(max(ended_at, run.received_at)),
        attributes={**common, "aileron.state": run.state.value, "aileron.gated": run.gated},
        events=tuple((_moment(each.at), each.type) for each in events[:_MOST_EVENTS]),
        failed=run.state in _FAILED,
    )
    yield from _approval(run, events, common)
    started = next((each for each in events if each.type == "execution.started"), None)
    if started is not None:
        yield _inner(run, _EXECUTION, started.at, ended_at, common, failed=run.state in _FAILED)
        yield from _steps(run, started, end, common)


def _approval(run: Run, events: Sequence[Event], common: Mapping[str, str]) -> Iterator[TraceSpan]:
    asked = next((each for each in events if each.type == "approval.requested"), None)
    decided = next((each for each in reversed(events) if each.type in _DECISIONS and _is_decision(each)), None)
    if asked is not None and decided is not None:
        outcome = decided.type.rpartition(".")[2]
        yield _inner(run, _APPROVAL, asked.at, decided.at, {**common, "aileron.decision": outcome})


def _is_decision(event: Event) -> bool:
    return not event.type.startswith("execution.")


def _steps(run: Run, started: Event, end: Event | None, common: Mapping[str, str]) -> Iterator[TraceSpan]:
    """Yield a span for each step, from its first attempt to its last. Its id is in the header C{traceparent}."""
    pinned = {str(each.get("id")): each for each in _tables(started.payload.get("steps"))}
    attempts: dict[str, list[Mapping[str, JSON]]] = {}
    for each in _tables(None if end is None else end.payload.get("attempts")):
        attempts.setdefault(str(each.get("step")), []).append(each)
    for step_id, tries in attempts.items():
        begun, last = _read(tries[0].get("started_at")), _read(tries[-1].get("ended_at"))
        if begun is None or last is None:
            continue
        known, status = pinned.get(step_id, {}), tries[-1].get("status")
        place = place_of(run.id, "step", step_id)
        told = {name: str(known[name]) for name in ("connector", "operation") if isinstance(known.get(name), str)}
        yield TraceSpan(
            *(place.trace_id, place.span_id, place_of(run.id, _EXECUTION).span_id, f"step {step_id}", CLIENT),
            started_at=_moment(begun),
            ended_at=_moment(max(begun, last)),
            attributes={
                **common,
                **{f"aileron.{name}": each for name, each in told.items()},
                "aileron.step": step_id,
                "aileron.attempts": len(tries),
                **({"http.response.status_code": status} if type(status) is int else {}),
            },
            failed="failure" in tries[-1],
        )


def _inner(
    run: Run, part: str, begun: datetime, ended: datetime, attributes: Mapping[str, str], *, failed: bool = False
) -> TraceSpan:
    place = place_of(run.id, part)
    return TraceSpan(
        *(place.trace_id, place.span_id, place_of(run.id).span_id, part, INTERNAL),
        started_at=_moment(begun),
        ended_at=_moment(max(begun, ended)),
        attributes=attributes,
        failed=failed,
    )


def _tables(value: JSON) -> Iterator[Mapping[str, JSON]]:
    for each in value if isinstance(value, (list, tuple)) else ():
        if isinstance(each, Mapping):
            yield each


def _read(text: JSON) -> datetime | None:
    try:
        return from_timestamp(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _moment(at: datetime) -> int:
    return _nanoseconds(at.timestamp())


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000) * 1000
