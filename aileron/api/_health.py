"""Is it alive, and how does it do."""

from __future__ import annotations

from aileron.values import JSON, timestamp

from ._endpoint import Parts, Table, Visit
from ._faults import Answer, answer
from ._guard import Who
from ._schemas import BOOLEAN, COUNT, MOMENT, NUMBER, TEXT, VAULT_STATE, made_of

SERVICE = "aileron"
MOST_LIVE_SESSIONS = 1000

TABLE = Table()

_HEALTH = made_of({"status": {"enum": ["ok"]}, "service": {"const": SERVICE}, "version": TEXT, "timestamp": MOMENT})
_COUNTS = made_of({"pending_approvals": COUNT, "actions": COUNT, "load_errors": COUNT}, {"sessions": COUNT})
_STATUS = made_of(
    {
        "service": {"const": SERVICE},
        "version": TEXT,
        "started_at": MOMENT,
        "uptime_seconds": NUMBER,
        "vault_state": VAULT_STATE,
        "counts": _COUNTS,
        "paused": BOOLEAN,
        "store": {"enum": ["ok"]},
    }
)


@TABLE.route("GET", "/v1/health", agents=Who.ANYONE, operators=Who.ANYONE, answers={200: _HEALTH})
async def health(visit: Visit, parts: Parts) -> Answer:
    """Whether the daemon answers."""
    now = timestamp(parts.now())
    return answer({"status": "ok", "service": SERVICE, "version": parts.version, "timestamp": now})


@TABLE.route("GET", "/v1/status", agents=Who.LAUNCH | Who.AGENT, operators=Who.OPERATOR, answers={200: _STATUS})
async def status(visit: Visit, parts: Parts) -> Answer:
    """How the daemon does; an agent learns of its own pending approvals only."""
    now = parts.now()
    return answer(
        {
            "service": SERVICE,
            "version": parts.version,
            "started_at": timestamp(parts.started_at),
            "uptime_seconds": round((now - parts.started_at).total_seconds(), 3),
            "vault_state": parts.vault.state().value,
            "counts": await _counts(visit, parts),
            "paused": False,
            "store": "ok",
        }
    )


async def _counts(visit: Visit, parts: Parts) -> dict[str, JSON]:
    offering = parts.runner.offering()
    own = visit.caller.session
    counts: dict[str, JSON] = {
        "pending_approvals": await parts.runner.pending(None if own is None else own.id),
        "actions": len(offering.offers),
        "load_errors": len(offering.load_errors),
    }
    if own is None:
        counts["sessions"] = len((await parts.sessions.list(True, MOST_LIVE_SESSIONS, None)).items)
    return counts
