"""The HTTP routes of the audit log, with its events as they happen."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext
from aileron.api.faults import Answer, Streamed, answer, encode
from aileron.api.guard import READERS
from aileron.api.shapes.schemas import (
    BOOLEAN,
    COUNT,
    CURSOR,
    LIMIT,
    MOMENT,
    TEXT,
    made_of,
    page_of,
    ref,
)
from aileron.api.shapes.values import page, to_json
from aileron.base.json import timestamp
from aileron.model.audit import Record
from aileron.model.errors import NotFound, refuse_while_stopping
from aileron.model.queries import AuditQuery

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
        "logins": {**BOOLEAN, "description": "false: leave out the login and logout of each command"},
        "limit": LIMIT,
        "cursor": CURSOR,
    },
)
_TIMES = made_of({}, {"since": MOMENT, "until": MOMENT})
_LINES = {**TEXT, "contentMediaType": "application/x-ndjson"}


@TABLE.route("GET", "/v1/audit", operators=READERS, query=_FILTERS, answers={200: page_of("Record")})
async def list_records(context: RequestContext, deps: Dependencies) -> Answer:
    """List the records that match every given filter, newest first.

    :raises InvalidRequest: if the cursor is not of this list.
    """
    query = AuditQuery(
        since=context.moment("since"),
        until=context.moment("until"),
        type=context.text("type"),
        action=context.text("action"),
        connector=context.text("connector"),
        session_id=context.text("session"),
        run_id=context.text("run"),
        failure_class=context.text("class"),
        commands=context.query.get("logins") is not False,
        limit=int(context.number("limit", 100)),
        cursor=context.text("cursor"),
    )
    return answer(page(await deps.audit.list(query), to_json))


@TABLE.route("GET", "/v1/audit/verify", operators=READERS, answers={200: ref("Verdict")})
async def verify_record(context: RequestContext, deps: Dependencies) -> Answer:
    """Verify the whole audit log, and return the verdict with what is wrong.

    :raises StoreUnavailable: if the store cannot be read.
    """
    return answer(to_json(await deps.signer.verify()))


@TABLE.route("GET", "/v1/audit/export", operators=READERS, query=_TIMES, answers={200: _LINES})
async def export_record(context: RequestContext, deps: Dependencies) -> Streamed:
    """Export the audit log, or a period of it, as lines of JSON that can be verified.

    :raises StoreUnavailable: if the store cannot be read.
    :raises InvalidRequest: if a moment of the period is not valid.
    """
    return Streamed(deps.signer.export(context.moment("since"), context.moment("until")), "application/x-ndjson")


@TABLE.route("GET", "/v1/audit/<audit_id>", operators=READERS, answers={200: ref("Record")})
async def show_record(context: RequestContext, deps: Dependencies, audit_id: str) -> Answer:
    """Return one record.

    :raises NotFound: if there is no such record.
    """
    record = await deps.audit.get(audit_id)
    if record is None:
        raise NotFound("There is no such record.")
    return answer(to_json(record))


STILL_HERE_SECONDS = 15.0
"""The longest silence of an event stream, in seconds."""

STREAM = {**TEXT, "contentMediaType": "text/event-stream"}


@TABLE.route("GET", "/v1/events", operators=READERS, query=made_of({}, {"after": COUNT}), answers={200: STREAM})
async def follow_events(context: RequestContext, deps: Dependencies) -> Streamed:
    """Stream the records after the sequence C{after}, or from now on, as server-sent events.

    The id of an event is the sequence. Its data is JSON with the type and subject, without contents. The stream ends
    with the login, and if the daemon stops while others go on.

    :raises Stopping: if the daemon is stopping.
    """
    if deps.is_stopping():
        raise refuse_while_stopping()
    if "after" in context.query:
        after = int(context.number("after", 0))
    else:
        after, _ = await deps.audit.head() or (0, "")
    return Streamed(_stream(context, deps, after), "text/event-stream")


async def _stream(context: RequestContext, deps: Dependencies, after: int) -> AsyncIterator[bytes]:
    yield f"id: {after}\nevent: ready\ndata: {{}}\n\n".encode("ascii")
    while await _is_logged_in(context, deps):
        news = await deps.audit.news(after, STILL_HERE_SECONDS)
        if deps.is_stopping() or not await _is_logged_in(context, deps):  # the wait may have been long
            return
        if not news:
            yield b": still here\n\n"
            continue
        after = news[-1].sequence
        yield b"".join(map(_event, news))


async def _is_logged_in(context: RequestContext, deps: Dependencies) -> bool:
    caller = context.caller.operator
    if caller is None:  # a command without a login, which used the local key
        return context.caller.is_reader
    # guard of roles: a stream ends when its account is removed -> features.people.test_roles.RoleTests.test_stream
    if caller.account is not None and await deps.find_role(caller.account) is None:
        return False
    return any(each.id == caller.id for each in deps.operators.list())


def _event(record: Record) -> bytes:
    event = record.event
    told = {
        "type": event.type,
        "at": timestamp(event.at),
        "run_id": event.run_id,
        "session_id": event.session_id,
        "action": event.action,
    }
    return b"id: %d\nevent: record\ndata: %s\n\n" % (record.sequence, encode(told))
