"""The routes of limits on spending: the operator lists, sets, removes and raises them, and reads the use."""

from __future__ import annotations

from datetime import date, timedelta

from aileron.api.dependencies import Dependencies
from aileron.api.endpoint import EndpointTable, RequestContext
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import made_of
from aileron.base.json import JSON
from aileron.model.errors import InvalidRequest, NotFound

from .running import RunningSpending
from .shapes import (
    LIMIT,
    LIMITS,
    NEW_LIMIT,
    RAISE,
    USAGE,
    DailyUse,
    spent_json,
    state_json,
)
from .values import Per, SpendLimit, Unit

TABLE = EndpointTable()

DAYS = 14
"""How many days before a day are summed up with it."""

_DAY = made_of({}, {"day": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"}})


@TABLE.route("GET", "/v1/gateway/limits", operators=READERS, answers={200: LIMITS})
async def list_spend_limits(context: RequestContext, deps: Dependencies) -> Answer:
    """List the limits on spending, each with its use today, and in each session with use today.

    :raises NotFound: if limits on spending are switched off.
    """
    return answer(_list(find_spending(deps)))


@TABLE.route("POST", "/v1/gateway/limits", operators=Who.OPERATOR, body=NEW_LIMIT, answers={200: LIMITS})
async def set_spend_limit(context: RequestContext, deps: Dependencies) -> Answer:
    """Set a limit on spending and return all limits. An earlier limit with the same ID is replaced.

    :raises InvalidRequest: if the limit is one of requests for each request, or there are too many limits.
    :raises Conflict: if config.yaml has a stricter limit, or the file on disk is not trusted.
    :raises NotFound: if limits on spending are switched off.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if the limit could not be stored.
    """
    spending, body = find_spending(deps), context.body
    unit, per = Unit(str(body["unit"])), Per(str(body["per"]))
    if unit is Unit.REQUESTS and per is Per.REQUEST:
        raise InvalidRequest("The requests of one request cannot be limited.")
    limit = SpendLimit(unit, per, int(str(body["most"])), context.text("provider"), context.text("model"))
    await spending.set(limit, context.caller.actor)
    return answer(_list(spending))


@TABLE.route("DELETE", "/v1/gateway/limits/<limit_id>", operators=Who.OPERATOR, answers={200: LIMITS})
async def remove_spend_limit(context: RequestContext, deps: Dependencies, limit_id: str) -> Answer:
    """Remove a limit that was set by a command, and return the others.

    :raises NotFound: if there is no such limit, or limits on spending are switched off.
    :raises Conflict: if it is set in config.yaml, or the file on disk is not trusted.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if the change could not be stored.
    """
    spending = find_spending(deps)
    await spending.remove(limit_id, context.caller.actor)
    return answer(_list(spending))


@TABLE.route("POST", "/v1/gateway/limits/<limit_id>/raise", operators=Who.OPERATOR, body=RAISE, answers={200: LIMIT})
async def raise_spend_limit(context: RequestContext, deps: Dependencies, limit_id: str) -> Answer:
    """Allow more within one session or on one day.

    If the limit there is not C{most} any more, return 409.

    :raises NotFound: if there is no such limit, or limits on spending are switched off.
    :raises Conflict: if the limit has changed, is for single requests, or the file on disk is not trusted.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if the change could not be stored.
    """
    by, seen = int(str(context.body["by"])), int(str(context.body["most"]))
    window = str(context.body["window"])
    return answer(state_json(await find_spending(deps).raise_limit(limit_id, window, by, seen, context.caller.actor)))


@TABLE.route("GET", "/v1/gateway/usage", operators=READERS, query=_DAY, answers={200: USAGE})
async def show_usage(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the use of models on a day, by session, provider and model, and on each day of the two weeks before.

    The default is today, in the daemon's time zone.

    :raises InvalidRequest: if there is no such day.
    :raises NotFound: if limits on spending are switched off.
    """
    spending, given = find_spending(deps), context.text("day")
    try:
        day = spending.today() if given is None else date.fromisoformat(given)
    except ValueError:
        raise InvalidRequest.listing("There is no such day.", ("/day", "is no day")) from None
    used = read_use(spending, day)
    agents = await name_agents(deps, used)
    items: list[JSON] = [
        {
            "session_id": key.session_id,
            "agent": agents.get(key.session_id, ""),
            "provider": key.provider,
            "model": key.model,
            **spent_json(spent),
        }
        for key, spent in used.items
    ]
    days: list[JSON] = [{"day": each.isoformat(), **spent_json(spent)} for each, spent in used.days]
    return answer({"day": day.isoformat(), "total": spent_json(used.total), "items": items, "days": days})


def read_use(spending: RunningSpending, day: date) -> DailyUse:
    """Return the use on a day, and on each day of the two weeks before."""
    first = day - timedelta(days=min(DAYS - 1, (day - date.min).days))
    return DailyUse.of(spending.totals(), day, first)


async def name_agents(deps: Dependencies, used: DailyUse) -> dict[str, str]:
    """Return the names that the agents of a day's sessions claim, by session."""
    ids = dict.fromkeys(key.session_id for key, _ in used.items if key.session_id)
    found = [await deps.sessions.get(each) for each in ids]
    return {session.id: session.agent for session in found if session is not None}


def find_spending(deps: Dependencies) -> RunningSpending:
    """Return the limits on spending that are in force in this daemon.

    :raises NotFound: if limits on spending are switched off.
    """
    found = deps.features.find(RunningSpending)
    if found is None:
        raise NotFound("This daemon has no limits on spending.")
    return found


def _list(spending: RunningSpending) -> JSON:
    return {"items": [state_json(each) for each in spending.states()], "readable": spending.is_readable()}
