"""The header of a trace goes to the services whose connectors are declared to get it, and changes nothing else."""

from __future__ import annotations

from attrs import evolve

from aileron.base.trace_context import read_traceparent
from aileron.features.tracing.spans import find_header, place_of
from aileron.model.connectors import Outcome
from aileron.model.faults import Fault
from aileron.model.runs import RunState

from .kit import RunnerCase


class TraceTests(RunnerCase):
    """The requests of a run."""

    def headers(self) -> list[str]:
        """The trace headers of all requests that were sent."""
        sent = (dict(each.request.headers) for each in self.connector.sendings)
        return [headers["traceparent"] for headers in sent if "traceparent" in headers]

    def declare(self) -> None:
        """Declare the connector to get the header."""
        self.connector.description = evolve(self.connector.description, traced=True)

    def test_declared(self) -> None:
        """A declared service gets the place of the step in the run's trace, in each attempt the same."""
        self.declare()
        self.runner.traces.find = find_header
        self.connector.script.append(Outcome(fault=Fault("network_error", "away", "external", True), sent=False))
        run = self.submit("open")
        self.clock.pump([1.0] * 10)
        self.assertIs(self.now(run).state, RunState.COMPLETED)
        place = place_of(run.id, "step", "only")
        self.assertEqual(self.headers(), [place.header] * 2)
        self.assertEqual(read_traceparent([place.header.encode()]), place)

    def test_undeclared(self) -> None:
        """A service that is not declared gets none."""
        self.runner.traces.find = find_header
        self.assertIs(self.now(self.submit("open")).state, RunState.COMPLETED)
        self.assertEqual((len(self.connector.sendings), self.headers()), (1, []))

    def test_absent(self) -> None:
        """Without the feature, no service gets one."""
        self.declare()
        self.now(self.submit("open"))
        self.assertEqual((len(self.connector.sendings), self.headers()), (1, []))

    def test_own_header(self) -> None:
        """The request is otherwise the one that was shown, and its digest is the same."""
        self.declare()
        plain = self.shown(self.submit("gated"))
        self.runner.traces.find = find_header
        traced = self.shown(self.submit("gated"))
        self.assertNotIn("traceparent", f"{plain.review}{traced.review}".lower())
        self.approve(traced.run)
        self.clock.pump([1.0] * 10)
        first = self.connector.sendings[0].request
        self.assertEqual([name for name, _ in first.headers][-1], "traceparent")
        self.assertNotIn("traceparent", str(self.recorded("execution.started")[0].payload))
