"""The routes of the daemon's health, status and Prometheus metrics."""

from __future__ import annotations

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import (
    BOOLEAN,
    COUNT,
    MOMENT,
    MOMENT_OR_NULL,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    VAULT_STATE,
    made_of,
    or_null,
    ref,
)
from aileron.api.shapes.values import to_json
from aileron.base.json import JSON, timestamp
from aileron.model.errors import StoreUnavailable, VaultLocked, refuse_while_stopping
from aileron.model.queries import RunQuery
from aileron.model.runs import RunState
from aileron.model.sessions import Session
from aileron.model.vault import VaultState

from .limits import paused_for

SERVICE = "aileron"
MOST_LIVE_SESSIONS = 1000

TABLE = EndpointTable()

_HEALTH = made_of({"status": {"enum": ["ok"]}, "service": {"const": SERVICE}, "version": TEXT, "timestamp": MOMENT})
_READY = made_of({"status": {"enum": ["ready"]}})
_COUNTS = made_of(
    {"actions": COUNT, "load_errors": COUNT}, {"pending_approvals": COUNT, "sessions": COUNT, "unknown_outcomes": COUNT}
)
_STATUS = made_of(
    {
        "service": {"const": SERVICE},
        "version": TEXT,
        "started_at": MOMENT,
        "uptime_seconds": NUMBER,
        "vault_state": VAULT_STATE,
        "counts": _COUNTS,
        "paused": BOOLEAN,
        "store": {"enum": ["ok", "unavailable"]},
        "record": made_of(
            {
                "key": TEXT_OR_NULL,
                "signed_up_to": COUNT,
                "signed_at": MOMENT_OR_NULL,
                "head": or_null(made_of({"sequence": COUNT, "hash": TEXT})),
                "tampered": COUNT,
            }
        ),
    },
    {"pause": ref("Pause")},
)


@TABLE.route("GET", "/v1/health", agents=Who.ANYONE, operators=Who.ANYONE, answers={200: _HEALTH})
async def health(context: RequestContext, deps: Dependencies) -> Answer:
    """Return that the daemon answers."""
    now = timestamp(deps.now())
    return answer({"status": "ok", "service": SERVICE, "version": deps.version, "timestamp": now})


@TABLE.route("GET", "/v1/ready", agents=Who.ANYONE, operators=Who.ANYONE, answers={200: _READY})
async def ready(context: RequestContext, deps: Dependencies) -> Answer:
    """Return that requests can be stored and carried out, for a load balancer.

    :raises Stopping: if the daemon is stopping.
    :raises VaultLocked: if the vault is not unlocked.
    :raises StoreUnavailable: if the database does not respond.
    """
    # guard of several daemons: a balancer learns at once that a daemon stops
    #    -> api.test_stopping.RouteTests.test_ready
    if deps.is_stopping():
        raise refuse_while_stopping()
    state = deps.vault.state()
    if state is not VaultState.UNLOCKED:
        raise VaultLocked("Not ready: the vault is not unlocked.", {"state": state.value})
    await deps.pending(None)
    return answer({"status": "ready"})


@TABLE.route("GET", "/v1/status", agents=Who.LAUNCH | Who.AGENT, operators=READERS, answers={200: _STATUS})
async def status(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the daemon's status, even if its store is unavailable.

    For an agent, only its own pending approvals are counted.
    """
    now, own = deps.now(), context.caller.session
    kept, offering = await _count_kept(own, deps), deps.submission.offering()
    paused = paused_for(deps, None if own is None else own.id)
    counts = {"actions": len(offering.offers), "load_errors": len(offering.load_errors), **(kept or {})}
    return answer(
        {
            "service": SERVICE,
            "version": deps.version,
            "started_at": timestamp(deps.started_at),
            "uptime_seconds": round((now - deps.started_at).total_seconds(), 3),
            "vault_state": deps.vault.state().value,
            "counts": counts,
            "paused": paused is not None,
            **({} if paused is None else {"pause": to_json(paused)}),
            "store": "ok" if kept is not None else "unavailable",
            "record": _record(deps),
            **({} if context.caller.session else deps.features.status()),
        }
    )


def _record(deps: Dependencies) -> JSON:
    signer, latest = deps.signer, deps.signer.latest
    return {
        "key": signer.fingerprint,
        "signed_up_to": 0 if latest is None else latest.sequence,
        "signed_at": None if latest is None else latest.at,
        "head": None if signer.head is None else {"sequence": signer.head[0], "hash": signer.head[1]},
        "tampered": signer.tampered,
    }


async def _count_kept(own: Session | None, deps: Dependencies) -> dict[str, int] | None:
    """Return the counts for the status from the database, or None if the database does not respond.

    :param own: the agent's session, for which only its pending approvals are counted. None for all counts of the
        daemon: pending approvals, live sessions, and runs whose outcome is unknown.
    """
    try:
        pending = await deps.pending(None if own is None else own.id)
        if own is not None:
            return {"pending_approvals": pending}
        live = await deps.sessions.list(True, MOST_LIVE_SESSIONS, None)
        unknown = await deps.submission.count(RunQuery(states=(RunState.UNKNOWN,)))
    except StoreUnavailable:
        return None
    return {"pending_approvals": pending, "sessions": len(live.items), "unknown_outcomes": unknown}


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


_TEXT = {**TEXT, "contentMediaType": "text/plain"}


@TABLE.route("GET", "/metrics", operators=READERS | Who.SCRAPER, answers={200: _TEXT})
async def metrics(context: RequestContext, deps: Dependencies) -> Answer:
    """Return all metrics in the text format of Prometheus."""
    # Imported here, since most daemons never serve metrics and need not load this.
    from aileron.api.shapes.exposition import exposition

    kept = await _count_kept(None, deps)
    return Answer(200, exposition(deps, kept or {}), content_type=CONTENT_TYPE)
