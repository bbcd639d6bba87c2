"""Spans are sent in batches; a collector that fails costs spans and nothing else."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.tracing.export import MOST_AT_ONCE, MOST_WAITING, SpanExporter
from aileron.features.tracing.spans import TraceSpan

_SPAN = TraceSpan(
    "1" * 32, "2" * 16, None, "run x", 1, 10**9, 2 * 10**9, {"a": "b", "n": 3, "t": True}, ((10**9, "e"),)
)


class ExportTests(SynchronousTestCase):
    """An exporter to a collector in memory."""

    def setUp(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.answers: list[int | Exception | Deferred[int]] = []
        self.exporter = SpanExporter(self.post, {"service.name": "test"})

    async def post(self, body: bytes) -> int:
        """Take a body, and answer as told, else with 200."""
        self.bodies.append(json.loads(body))
        answer = self.answers.pop(0) if self.answers else 200
        if isinstance(answer, Exception):
            raise answer
        return await answer if isinstance(answer, Deferred) else answer

    def flush(self) -> None:
        """Send what waits."""
        self.successResultOf(Deferred.fromCoroutine(self.exporter.flush()))

    def counts(self) -> tuple[float, float, float]:
        """The spans that were sent and dropped, and those that wait."""
        samples = [sample.value for metric in self.exporter.metrics() for sample in metric.samples]
        sent, dropped, waiting = samples
        return sent, dropped, waiting

    def test_form(self) -> None:
        """The body is OTLP's JSON."""
        self.exporter.add([_SPAN, evolve(_SPAN, parent_id="3" * 16, failed=True)])
        self.flush()
        (body,) = self.bodies[0]["resourceSpans"]
        self.assertEqual(body["resource"]["attributes"], [{"key": "service.name", "value": {"stringValue": "test"}}])
        first, second = body["scopeSpans"][0]["spans"]
        wanted = [{"stringValue": "b"}, {"intValue": "3"}, {"boolValue": True}]
        self.assertEqual([each["value"] for each in first["attributes"]], wanted)
        self.assertEqual((first["startTimeUnixNano"], first["endTimeUnixNano"]), ("1000000000", "2000000000"))
        self.assertEqual((second["parentSpanId"], second["status"]), ("3" * 16, {"code": 2}))
        self.assertNotIn("parentSpanId", first)

    def test_batches(self) -> None:
        """Much is sent in several bodies, and nothing is sent when nothing waits."""
        self.flush()
        self.exporter.add([_SPAN] * (MOST_AT_ONCE + 1))
        self.flush()
        sizes = [len(each["resourceSpans"][0]["scopeSpans"][0]["spans"]) for each in self.bodies]
        self.assertEqual(sizes, [MOST_AT_ONCE, 1])
        self.assertEqual(self.counts(), (MOST_AT_ONCE + 1, 0, 0))

    def test_away(self) -> None:
        """While the collector is away, or asks to wait, spans are kept, and sent later."""
        self.answers += [OSError("refused"), 503, 429]
        self.exporter.add([_SPAN])
        for _ in range(3):
            self.flush()
            self.assertEqual(self.counts(), (0, 0, 1))
        self.flush()
        self.assertEqual(self.counts(), (1, 0, 0))

    def test_refused(self) -> None:
        """What the collector refuses is dropped and counted; a redirect is not followed."""
        for status in (400, 401, 307):
            self.answers.append(status)
            self.exporter.add([_SPAN])
            self.flush()
        self.assertEqual(self.counts(), (0, 3, 0))

    def test_full(self) -> None:
        """Only so many wait; further ones are dropped and counted."""
        self.exporter.add([_SPAN] * (MOST_WAITING + 7))
        self.assertEqual(self.counts(), (0, 7, MOST_WAITING))

    def test_slow(self) -> None:
        """While a batch is under way, no second one begins, and new spans wait."""
        answer: Deferred[int] = Deferred()
        self.answers.append(answer)
        self.exporter.add([_SPAN])
        sending = Deferred.fromCoroutine(self.exporter.flush())
        self.exporter.add([_SPAN])
        self.flush()
        self.assertEqual(len(self.bodies), 1)
        answer.callback(200)
        self.successResultOf(sending)
        self.assertEqual(self.counts(), (2, 0, 0))
