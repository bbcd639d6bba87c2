"""The record, for the operator's eyes."""

from __future__ import annotations

from aileron.api._endpoint import Dependencies, EndpointTable, RequestContext
from aileron.api._faults import Answer, Streamed, answer
from aileron.api._guard import Who
from aileron.api.shapes.schemas import CURSOR, LIMIT, MOMENT, TEXT, made_of, page_of, ref
from aileron.api.shapes.values import page, to_json
from aileron.errors import NotFound
from aileron.values import AuditQuery

TABLE = EndpointTable()

_FILTERS = made_of(
    {},
    {
        "since": MOMENT,
        "until": MOMENT,
        "type": TEXT,
        "action": TEXT,
        "connector": TEXT,
        "session": TEXT,
        "run": TEXT,
        "class": TEXT,
        "limit": LIMIT,
        "cursor": CURSOR,
    },
)
_TIMES = made_of({}, {"since": MOMENT, "until": MOMENT})
_LINES = {**TEXT, "contentMediaType": "application/x-ndjson"}


@TABLE.route("GET", "/v1/audit", operators=Who.OPERATOR, query=_FILTERS, answers={200: page_of("Record")})
async def list_records(context: RequestContext, deps: Dependencies) -> Answer:
    """List records, newest first; every given filter must match."""
    query = AuditQuery(
        since=context.moment("since"),
        until=context.moment("until"),
        type=context.text("type"),
        action=context.text("action"),
        connector=context.text("connector"),
        session_id=context.text("session"),
        run_id=context.text("run"),
        failure_class=context.text("class"),
        limit=int(context.number("limit", 100)),
        cursor=context.text("cursor"),
    )
    return answer(page(await deps.audit.list(query), to_json))


@TABLE.route("GET", "/v1/audit/verify", operators=Who.OPERATOR, answers={200: ref("Verdict")})
async def verify_record(context: RequestContext, deps: Dependencies) -> Answer:
    """Tell whether the whole record holds, and what does not."""
    return answer(to_json(await deps.signer.verify()))


@TABLE.route("GET", "/v1/audit/export", operators=Who.OPERATOR, query=_TIMES, answers={200: _LINES})
async def export_record(context: RequestContext, deps: Dependencies) -> Streamed:
    """Export the record, or a part of it, as lines of JSON that can be verified."""
    return Streamed(deps.signer.export(context.moment("since"), context.moment("until")), "application/x-ndjson")


@TABLE.route("GET", "/v1/audit/<audit_id>", operators=Who.OPERATOR, answers={200: ref("Record")})
async def show_record(context: RequestContext, deps: Dependencies, audit_id: str) -> Answer:
    """One record."""
    record = await deps.audit.get(audit_id)
    if record is None:
        raise NotFound("There is no such record.")
    return answer(to_json(record))
