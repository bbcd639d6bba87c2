"""The route of the daemons that use the database."""

from __future__ import annotations

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS
from aileron.api.shapes.schemas import BOOLEAN, COUNT, MOMENT, TEXT, TEXT_OR_NULL, list_of, made_of, or_null
from aileron.base.json import JSON, timestamp
from aileron.model.daemons import ServingDaemon

TABLE = EndpointTable()

_DAEMON = made_of(
    {
        "id": TEXT,
        "own": {**BOOLEAN, "description": "whether it is the daemon that answers"},
        "host": TEXT_OR_NULL,
        "pid": or_null(COUNT),
        "version": TEXT_OR_NULL,
        "schema_version": or_null(COUNT),
        "started_at": MOMENT,
        "lease_seconds_left": or_null(
            {"type": "number", "description": "negative if the lease has ended; null if the daemon is alone"}
        ),
        "unfinished_runs": COUNT,
    }
)


@TABLE.route("GET", "/v1/daemons", operators=READERS, answers={200: made_of({"items": list_of(_DAEMON)})})
async def list_daemons(context: RequestContext, deps: Dependencies) -> Answer:
    """List the daemons that use the database, oldest first, each with its lease and the runs that it holds.

    :raises StoreUnavailable: if they cannot be read.
    """
    items: list[JSON] = [_describe(each) for each in await deps.daemons.list()]
    return answer({"items": items})


def _describe(daemon: ServingDaemon) -> dict[str, JSON]:
    left = daemon.seconds_left
    return {
        "id": daemon.id,
        "own": daemon.own,
        "host": daemon.process.host or None,
        "pid": daemon.process.pid or None,
        "version": daemon.process.version or None,
        "schema_version": daemon.schema or None,
        "started_at": timestamp(daemon.started_at),
        "lease_seconds_left": None if left is None else round(left, 1),
        "unfinished_runs": daemon.runs,
    }
