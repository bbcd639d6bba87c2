"""Spans are sent in batches; a collector that fails costs spans and nothing else."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.posting import PostAnswer
from aileron.features.tracing.export import MOST_AT_ONCE, MOST_WAITING, SpanExporter
from aileron.features.tracing.otlp import count_rejected
from aileron.features.tracing.spans import TraceSpan

_SPAN = TraceSpan(
    "1" * 32, "2" * 16, None, "run x", 1, 10**9, 2 * 10**9, {"a": "b", "n": 3, "t": True}, ((10**9, "e"),)
)


def _answer(status: int, retry_after: float | None = None, body: bytes = b"{}") -> PostAnswer:
    return PostAnswer(status, retry_after, body)


class ExportTests(SynchronousTestCase):
    """An exporter to a collector in memory."""

    def setUp(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.answers: list[PostAnswer | Exception | Deferred[PostAnswer]] = []
        self.clock = Clock()
        self.exporter = SpanExporter(self.post, {"service.name": "test"}, self.clock)

    async def post(self, body: bytes) -> PostAnswer:
        """Take a body, and answer as told, else with 200."""
        self.bodies.append(json.loads(body))
        answer = self.answers.pop(0) if self.answers else _answer(200)
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
        """While the collector is away, spans are kept. Each attempt waits twice as long as the last, up to a minute."""
        self.answers += [OSError("refused"), *(_answer(status) for status in (502, 503, 504, 429, 503, 503))]
        self.exporter.add([_SPAN])
        for seconds in (2, 4, 8, 16, 32, 60, 60):
            self.flush()
            asked = len(self.bodies)
            self.assertEqual(self.counts(), (0, 0, 1))
            self.clock.advance(seconds - 0.1)
            self.flush()
            self.assertEqual(len(self.bodies), asked)
            self.clock.advance(0.2)
        self.flush()
        self.assertEqual(self.counts(), (1, 0, 0))

    def test_asked_to_wait(self) -> None:
        """A collector that asks for a time is left alone for it, for an hour at most."""
        for asked, waited in ((100.0, 100), (0.0, 0), (80_000.0, 3600)):
            self.answers.append(_answer(503, asked))
            self.exporter.add([_SPAN])
            self.flush()
            if waited:
                self.clock.advance(waited - 1)
                self.flush()
                self.assertEqual(self.counts()[2], 1)
                self.clock.advance(1)
            self.flush()
            self.assertEqual(self.counts()[2], 0)
        self.assertEqual(self.counts(), (3, 0, 0))

    def test_refused(self) -> None:
        """What the collector refuses is dropped and counted, and not sent again; a redirect is not followed."""
        for status in (400, 401, 307, 408, 413, 500, 501):
            self.answers.append(_answer(status, 100.0))
            self.exporter.add([_SPAN])
            self.flush()
        self.assertEqual(self.counts(), (0, 7, 0))

    def test_rejected_in_part(self) -> None:
        """Spans that the collector rejects from a batch that it takes are counted, and not sent again."""
        said = json.dumps({"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}).encode()
        self.answers.append(_answer(200, None, said))
        self.exporter.add([_SPAN] * 5)
        self.flush()
        self.assertEqual((len(self.bodies), self.counts()), (1, (3, 2, 0)))

    def test_answers(self) -> None:
        """An answer of another form has rejected nothing, and never more spans than the batch had."""
        forms = (b"", b"{}", b"\0", b"[" * 100_000, b'{"partialSuccess": {}}', b'{"partialSuccess": null}')
        odd = (b'{"partialSuccess": {"rejectedSpans": %b}}' % each for each in (b"-1", b"Infinity", b"[]", b'"x"'))
        for said in (*forms, *odd):
            self.assertEqual(count_rejected(said), 0, said[:60])
        self.answers.append(_answer(200, None, b'{"partialSuccess": {"rejectedSpans": 7}}'))
        self.exporter.add([_SPAN])
        self.flush()
        self.assertEqual(self.counts(), (0, 1, 0))

    def test_full(self) -> None:
        """Only so many wait; further ones are dropped and counted."""
        self.exporter.add([_SPAN] * (MOST_WAITING + 7))
        self.assertEqual(self.counts(), (0, 7, MOST_WAITING))

    def test_slow(self) -> None:
        """While a batch is under way, no second one begins, and new spans wait."""
        answer: Deferred[PostAnswer] = Deferred()
        self.answers.append(answer)
        self.exporter.add([_SPAN])
        sending = Deferred.fromCoroutine(self.exporter.flush())
        self.exporter.add([_SPAN])
        self.flush()
        self.assertEqual(len(self.bodies), 1)
        answer.callback(_answer(200))
        self.successResultOf(sending)
        self.assertEqual(self.counts(), (2, 0, 0))
