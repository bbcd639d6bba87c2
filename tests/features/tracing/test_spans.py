"""Spans are made of what is on record, with ids that depend on the run alone, and without contents."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import timestamp
from aileron.base.trace_context import TraceParent, read_traceparent
from aileron.features.tracing.otlp import encode_spans
from aileron.features.tracing.spans import TraceSpan, find_header, place_of, span_of_request, spans_of_run
from aileron.model.audit import DAEMON, Event
from aileron.model.runs import RunState
from aileron.model.traces import RequestedRun
from aileron.testing import example_run

_RUN = example_run(state=RunState.COMPLETED)
_AT = _RUN.received_at


def event(type_: str, seconds: float, **payload: Any) -> Event:
    """An event of the run so many seconds after it was received."""
    return Event(f"e-{type_}", type_, _AT + timedelta(seconds=seconds), DAEMON, payload, run_id=_RUN.id)


def _at(seconds: float) -> int:
    return round((_AT.timestamp() + seconds) * 10**6) * 10**3


_TRIES = [
    {"step": "post", "attempt": 1, "started_at": timestamp(_AT + timedelta(seconds=60)), "status": 503, "failure": {}},
    {"step": "post", "attempt": 2, "ended_at": timestamp(_AT + timedelta(seconds=63)), "status": 200},
]
_EVENTS = [
    event("approval.requested", 0, arguments={"text": "canary"}),
    event("approval.approved", 59, reason="canary"),
    event("execution.started", 60, steps=[{"id": "post", "connector": "local://me/x", "operation": "send"}]),
    event("execution.succeeded", 63, attempts=_TRIES),
]


class SpanTests(SynchronousTestCase):
    """The spans of one run."""

    def spans(self, *events: Event, **changes: Any) -> dict[str, TraceSpan]:
        """The spans by name."""
        return {each.name: each for each in spans_of_run(evolve(_RUN, **changes), events)}

    def test_one_trace(self) -> None:
        """The run, the wait, the execution and the step are one tree in one trace, each with its time."""
        found = self.spans(*_EVENTS)
        root = found["run ship-update"]
        self.assertEqual({each.trace_id for each in found.values()}, {root.trace_id})
        self.assertEqual(len({each.span_id for each in found.values()}), 4)
        parents = {name: each.parent_id for name, each in found.items()}
        execution = found["execution"].span_id
        wanted = {"approval": root.span_id, "execution": root.span_id, "step post": execution, root.name: None}
        self.assertEqual(parents, wanted)
        times = {name: (each.started_at, each.ended_at) for name, each in found.items()}
        self.assertEqual(times["approval"], (_at(0), _at(59)))
        self.assertEqual(times["step post"], (_at(60), _at(63)))
        self.assertEqual(times[root.name], (_at(0), _at(63)))
        self.assertEqual([name for _, name in root.events], [each.type for each in _EVENTS])

    def test_attributes(self) -> None:
        """A step has its connector, operation and status; nothing has arguments or reasons."""
        step = self.spans(*_EVENTS)["step post"]
        self.assertEqual(step.attributes["aileron.connector"], "local://me/x")
        self.assertEqual((step.attributes["aileron.attempts"], step.attributes["http.response.status_code"]), (2, 200))
        self.assertNotIn("canary", encode_spans(self.spans(*_EVENTS).values(), {}).decode())

    def test_header(self) -> None:
        """The header for a step's requests names the span of the step, in the trace of the run."""
        step = self.spans(*_EVENTS)["step post"]
        parent = read_traceparent([find_header(_RUN.id, "post").encode()])
        self.assertEqual(parent, TraceParent(step.trace_id, step.span_id))

    def test_denied(self) -> None:
        """A run that did not begin has no execution."""
        found = self.spans(_EVENTS[0], event("approval.denied", 9), state=RunState.DENIED)
        self.assertEqual(found.keys(), {"run ship-update", "approval"})
        self.assertEqual(found["approval"].attributes["aileron.decision"], "denied")

    def test_failed(self) -> None:
        """A failure is marked on the run, its execution and its step."""
        ended = event("execution.failed", 63, attempts=[{**_TRIES[0], "ended_at": timestamp(_AT)}])
        found = self.spans(*_EVENTS[:3], ended, state=RunState.FAILED)
        self.assertEqual([name for name, each in found.items() if not each.failed], ["approval"])

    def test_request(self) -> None:
        """The request's span is below the run's, and linked to the caller's trace."""
        parent = TraceParent("1" * 32, "2" * 16)
        span = span_of_request(RequestedRun(_RUN.id, "ship-update", None, "r1", 5.0, parent), 6.5)
        root = self.spans(*_EVENTS)["run ship-update"]
        self.assertEqual((span.trace_id, span.parent_id, span.link), (root.trace_id, root.span_id, parent))
        self.assertEqual((span.started_at, span.ended_at), (5_000_000_000, 6_500_000_000))

    @given(st.text(max_size=30), st.text(max_size=30))
    def test_ids(self, run_id: str, step: str) -> None:
        """Ids of any run and step are valid, and repeatable."""
        place = place_of(run_id, step)
        self.assertEqual(read_traceparent([place.header.encode()]), place)
        self.assertEqual(place, place_of(run_id, step))

    @given(
        st.dictionaries(
            st.sampled_from(("attempts", "steps")),
            st.lists(st.dictionaries(st.sampled_from(("step", "id", "started_at", "ended_at", "status")), st.text())),
        )
    )
    def test_any_payload(self, payload: dict[str, Any]) -> None:
        """Payloads that were altered or pruned cost spans, and raise nothing."""
        events = (event("execution.started", 1, **payload), event("execution.succeeded", 2, **payload))
        json.loads(encode_spans(spans_of_run(_RUN, events), {"service.name": "x"}))
