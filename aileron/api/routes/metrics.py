"""Numbers for whoever watches over the daemon, as Prometheus collects them."""

from __future__ import annotations

from aileron.api._endpoint import Parts, Table, Visit
from aileron.api._faults import Answer
from aileron.api._guard import Who
from aileron.api.shapes.facts import Facts
from aileron.api.shapes.schemas import TEXT
from aileron.api.shapes.traffic import totals
from aileron.errors import StoreUnavailable

from .health import MOST_LIVE_SESSIONS

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

TABLE = Table()


_TEXT = {**TEXT, "contentMediaType": "text/plain"}


@TABLE.route("GET", "/metrics", operators=Who.OPERATOR | Who.SCRAPER, answers={200: _TEXT})
async def metrics(visit: Visit, parts: Parts) -> Answer:
    """Every number that is kept, in the text format of Prometheus."""
    # Imported here: most daemons are never asked, and need not hold what it takes.
    from aileron.api.shapes.exposition import exposition

    return Answer(200, exposition(await _facts(parts)), content_type=CONTENT_TYPE)


async def _facts(parts: Parts) -> Facts:
    offering = parts.submission.offering()
    pending, sessions = await _kept(parts)
    paused = {pause.session_id for pause in parts.limits.pauses()}
    return Facts(
        version=parts.version,
        uptime_seconds=(parts.now() - parts.started_at).total_seconds(),
        vault=parts.vault.state(),
        actions=len(offering.offers),
        load_errors=len(offering.load_errors),
        pending_approvals=pending,
        sessions=sessions,
        gateway=totals(parts),
        paused=None in paused,
        paused_sessions=len(paused - {None}),
        long_turns=parts.long_turns(),
    )


async def _kept(parts: Parts) -> tuple[int | None, int | None]:
    """Approvals that wait and sessions that live; L{None} while the store does not answer."""
    try:
        pending = await parts.decisions.pending(None)
        live = await parts.sessions.list(True, MOST_LIVE_SESSIONS, None)
    except StoreUnavailable:
        return None, None
    return pending, len(live.items)
