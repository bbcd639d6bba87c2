"""Spans in the JSON of OTLP, the protocol of OpenTelemetry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from aileron import __version__
from aileron.base.json import JSON

from .spans import TraceSpan

_ERROR = 2


def encode_spans(spans: Iterable[TraceSpan], resource: Mapping[str, str]) -> bytes:
    """Return a request of the OTLP trace service (ExportTraceServiceRequest) as JSON.

    :param resource: the attributes of the process that made the spans.
    """
    scope = {"name": "aileron", "version": __version__}
    of_scope = {"scope": scope, "spans": [_encode(each) for each in spans]}
    found = {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [of_scope]}
    return json.dumps({"resourceSpans": [found]}).encode("ascii")


def count_rejected(body: bytes) -> int:
    """Return how many spans of a request the collector has rejected although it took the request.

    :param body: the answer (ExportTraceServiceResponse). One that is no such answer has rejected none.
    """
    try:
        answer = json.loads(body) if body else {}
        found = int(answer["partialSuccess"]["rejectedSpans"])
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return 0
    return max(found, 0)


def _encode(span: TraceSpan) -> dict[str, JSON]:
    found: dict[str, JSON] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.started_at),
        "endTimeUnixNano": str(span.ended_at),
        "attributes": _attributes(span.attributes),
        "events": [{"timeUnixNano": str(at), "name": name} for at, name in span.events],
        "status": {"code": _ERROR} if span.failed else {},
    }
    if span.parent_id is not None:
        found["parentSpanId"] = span.parent_id
    if span.link is not None:
        found["links"] = [{"traceId": span.link.trace_id, "spanId": span.link.span_id}]
    return found


def _attributes(given: Mapping[str, str | int | bool]) -> list[JSON]:
    return [{"key": name, "value": _value(each)} for name, each in given.items()]


def _value(value: str | int | bool) -> JSON:
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
