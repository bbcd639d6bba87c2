"""The body is what OpenTelemetry's own definition of the protocol reads, with the values of the spans."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from twisted.trial.unittest import SynchronousTestCase

from aileron import __version__
from aileron.base.trace_context import TraceParent
from aileron.features.tracing.otlp import count_rejected, encode_spans
from aileron.features.tracing.spans import CLIENT, INTERNAL, SERVER, TraceSpan

_BYTES = frozenset(("traceId", "spanId", "parentSpanId"))
_KINDS = {INTERNAL: Span.SPAN_KIND_INTERNAL, SERVER: Span.SPAN_KIND_SERVER, CLIENT: Span.SPAN_KIND_CLIENT}


def _ids(size: int) -> st.SearchStrategy[str]:
    return st.binary(min_size=size, max_size=size).filter(any).map(bytes.hex)


_NAMES = st.text(min_size=1, max_size=30)
_TIMES = st.integers(min_value=0, max_value=2**63)
_PLACES = st.builds(TraceParent, _ids(16), _ids(8), st.booleans())
_SPANS = st.builds(
    TraceSpan,
    trace_id=_ids(16),
    span_id=_ids(8),
    parent_id=st.none() | _ids(8),
    name=_NAMES,
    kind=st.sampled_from(sorted(_KINDS)),
    started_at=_TIMES,
    ended_at=_TIMES,
    attributes=st.dictionaries(_NAMES, st.text() | st.booleans() | st.integers(-(2**63), 2**63 - 1), max_size=5),
    events=st.lists(st.tuples(_TIMES, _NAMES), max_size=3).map(tuple),
    link=st.none() | _PLACES,
    failed=st.booleans(),
)


def _read(body: bytes) -> ExportTraceServiceRequest:
    """Parse a body by the published definition. An unknown member or a value of another type raises ParseError.

    In the JSON of OTLP ids are hexadecimal, and in the JSON of Protocol Buffers they are Base64. This is the only
    difference between the two that matters here.
    """
    return ParseDict(_with_base64(json.loads(body)), ExportTraceServiceRequest())


def _with_base64(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_base64(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: b64encode(bytes.fromhex(each)).decode() if name in _BYTES else _with_base64(each)
        for name, each in value.items()
    }


def _attributes(given: Sequence[Any]) -> dict[str, str | bool | int]:
    """The attributes by name, each with a value of one type."""
    found = {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in given}
    assert len(found) == len(given), "two attributes have one name"
    return found


class ProtocolTests(SynchronousTestCase):
    """Bodies, read by the package C{opentelemetry-proto}."""

    @given(st.lists(_SPANS, max_size=4), st.dictionaries(_NAMES, st.text(), max_size=3))
    def test_any_spans(self, spans: list[TraceSpan], resource: dict[str, str]) -> None:
        """A collector reads each span with its ids, parent, kind, times, status, attributes, events and link."""
        (read,) = _read(encode_spans(spans, resource)).resource_spans
        (scope,) = read.scope_spans
        self.assertEqual(_attributes(read.resource.attributes), resource)
        self.assertEqual((scope.scope.name, scope.scope.version), ("aileron", __version__))
        self.assertEqual(len(scope.spans), len(spans))
        for got, span in zip(scope.spans, spans, strict=True):
            self._check(got, span)

    def _check(self, got: Span, span: TraceSpan) -> None:
        ids = got.trace_id.hex(), got.span_id.hex(), got.parent_span_id.hex() or None
        self.assertEqual(ids, (span.trace_id, span.span_id, span.parent_id))
        self.assertEqual((len(got.trace_id), len(got.span_id)), (16, 8))
        self.assertEqual((got.name, got.kind), (span.name, _KINDS[span.kind]))
        self.assertEqual((got.start_time_unix_nano, got.end_time_unix_nano), (span.started_at, span.ended_at))
        wanted = Status.STATUS_CODE_ERROR if span.failed else Status.STATUS_CODE_UNSET
        self.assertEqual((got.status.code, got.status.message), (wanted, ""))
        read = _attributes(got.attributes)
        self.assertEqual(read, span.attributes)
        self.assertEqual([type(read[name]) for name in read], [type(span.attributes[name]) for name in read])
        self.assertEqual([(each.time_unix_nano, each.name) for each in got.events], [*span.events])
        links = [] if span.link is None else [(span.link.trace_id, span.link.span_id)]
        self.assertEqual([(each.trace_id.hex(), each.span_id.hex()) for each in got.links], links)

    def test_rejected(self) -> None:
        """The count of rejected spans is read from an answer as a collector writes it."""
        from google.protobuf.json_format import MessageToJson

        partial = ExportTracePartialSuccess(rejected_spans=3, error_message="too old")
        answers: list[tuple[Message, int]] = [
            (ExportTraceServiceResponse(partial_success=partial), 3),
            (ExportTraceServiceResponse(), 0),
        ]
        for answer, rejected in answers:
            self.assertEqual(count_rejected(MessageToJson(answer).encode()), rejected)
