"""The routes of runs, with and without approval."""

from __future__ import annotations

from attrs import evolve

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import (
    BOOLEAN,
    COMPONENTS,
    CURSOR,
    INTEGER,
    LIMIT,
    STATE,
    TEXT,
    WAIT,
    described,
    list_of,
    made_of,
    or_null,
    page_of,
    ref,
    widened,
)
from aileron.api.shapes.values import listed_run_json, optional_json, page, to_json
from aileron.model.errors import NotFound
from aileron.model.queries import RunQuery
from aileron.model.runs import AttemptRow, Run, RunState, StepRow

TABLE = EndpointTable()

_RUN = widened(
    COMPONENTS["Run"],
    {
        "steps": list_of(described(StepRow, position=INTEGER)),
        "attempts": list_of(described(AttemptRow, number=INTEGER)),
        "reconcilable": BOOLEAN,
    },
)
_FOUND = made_of(
    {
        "run": ref("Run"),
        "happened": {"type": ["boolean", "null"]},
        "failure": or_null(ref("Fault")),
    }
)
_FILTERS = made_of(
    {},
    {
        "state": list_of(STATE),
        "session": TEXT,
        "action": TEXT,
        "gated": BOOLEAN,
        "limit": LIMIT,
        "cursor": CURSOR,
    },
)
_NO_RUN = "There is no such run."
_NO_RUN_OF_SESSION = (
    "This session has no run with this ID. If it belongs to an earlier session, ask the user what became of it; do not "
    "repeat the call."
)


async def visible_run(context: RequestContext, deps: Dependencies, run_id: str) -> Run:
    """Return a run that the caller may see. The error for another session's run is that for an unknown run.

    :raises NotFound: if there is no such run, or the caller may not see it.
    """
    run = await _find_run(deps, run_id)
    if run is None or not context.caller.may_see(run.session_id):
        raise _no_run(context)
    return run


async def awaited_run(context: RequestContext, deps: Dependencies, run_id: str) -> Run:
    """Wait until a run is settled, at most as long as the caller requested (C{wait}, or else C{Prefer}), and return it.

    If the daemon stops, wait only for a run that it is executing. An agent may follow the runs of its own session, and
    those of an earlier session that its own may resume.

    :raises NotFound: if there is no such run, or the caller may not follow it.
    :raises LimitExceeded: if too many requests of the caller's session wait already.
    :raises Unauthorized: if the session ends during the wait.
    """
    run = await _find_run(deps, run_id)
    if run is None or not await _may_follow(context, deps, run):
        raise _no_run(context)
    seconds = context.number("wait", context.wait_seconds or 0.0)
    moves_on = deps.is_stopping() and run.state is not RunState.EXECUTING
    if seconds > 0 and not run.state.settled and not moves_on:
        run = await deps.waits.wait(context.caller.session_id, deps.submission.wait(run_id, seconds))
    deps.note_told(run, context.caller.session)
    return run


async def _find_run(deps: Dependencies, run_id: str) -> Run | None:
    try:
        return await deps.submission.run(run_id)
    except NotFound:
        return None


async def _may_follow(context: RequestContext, deps: Dependencies, run: Run) -> bool:
    if context.caller.may_see(run.session_id):
        return True
    own = context.caller.session
    if own is None or run.session_id is None:
        return False
    earlier = await deps.sessions.get(run.session_id)
    return earlier is not None and own.follows(earlier)


def _no_run(context: RequestContext) -> NotFound:
    return NotFound(_NO_RUN if context.caller.session is None else _NO_RUN_OF_SESSION)


def run_query(context: RequestContext, usual: tuple[RunState, ...] = ()) -> RunQuery:
    """Return the query that the caller's filters describe. An agent's query is limited to its session.

    :param usual: the states to list if none is named, or empty for all.
    """
    states = context.query.get("state")
    gated = context.query.get("gated")
    own = context.caller.session
    return RunQuery(
        states=tuple(RunState(str(state)) for state in states) if isinstance(states, list) else usual,
        session_id=context.text("session") if own is None else own.id,
        action=context.text("action"),
        gated=gated if isinstance(gated, bool) else None,
        limit=int(context.number("limit", 100)),
        cursor=context.text("cursor"),
    )


@TABLE.route(
    "GET",
    "/v1/runs",
    agents=Who.AGENT,
    operators=READERS,
    query=_FILTERS,
    answers={200: page_of("Run")},
)
async def list_runs(context: RequestContext, deps: Dependencies) -> Answer:
    """List runs, newest first. An agent sees only its own session's."""
    return answer(page(await deps.submission.runs(run_query(context)), listed_run_json))


@TABLE.route(
    "GET",
    "/v1/runs/<run_id>",
    agents=Who.AGENT,
    operators=READERS,
    query=made_of({}, {"wait": WAIT}),
    answers={200: _RUN},
)
async def show_run(context: RequestContext, deps: Dependencies, run_id: str) -> Answer:
    """Return one run when it is settled or the wait is over. The operator also gets its steps and attempts.

    :raises NotFound: if there is no such run, or the caller may not follow it.
    :raises LimitExceeded: if too many requests of the caller's session wait already.
    :raises Unauthorized: if the session ends during the wait.
    """
    run = await awaited_run(context, deps, run_id)
    offer = deps.submission.offering().offers.get(run.action)
    if offer is not None:
        run = evolve(run, arguments=offer.action.order_arguments(run.arguments))
    shown = to_json(run)
    if context.caller.is_reader:
        steps, attempts = await deps.submission.history(run_id)
        shown["steps"] = [to_json(step) for step in steps]
        shown["attempts"] = [to_json(attempt) for attempt in attempts]
        if run.state is RunState.UNKNOWN:
            shown["reconcilable"] = await deps.reconciliation.is_reconcilable(run_id)
    return answer(shown)


@TABLE.route(
    "POST",
    "/v1/runs/<run_id>/resolve",
    operators=Who.OPERATOR,
    body=made_of(
        {"outcome": {"enum": ["happened", "did_not_happen", "run_again"]}},
        {"note": {"type": "string", "maxLength": 4096}},
    ),
    answers={200: ref("Run")},
)
async def resolve_run(context: RequestContext, deps: Dependencies, run_id: str) -> Answer:
    """Settle a run whose outcome is unknown, or run it again, which returns the new run.

    :raises NotFound: if there is no such run, or its action no longer exists.
    :raises Conflict: if its outcome is not unknown, or a run that repeats it is not settled.
    :raises InvalidRequest, BindingRequired, CapabilityDenied: if the run cannot be planned again.
    :raises LimitExceeded: if too many approvals are pending.
    """
    outcome, note, actor = context.text("outcome"), context.text("note") or "", context.caller.actor
    if outcome == "run_again":
        return answer(to_json(await deps.reconciliation.run_again(run_id, note, actor)))
    return answer(to_json(await deps.reconciliation.settle(run_id, outcome == "happened", note, actor)))


@TABLE.route("POST", "/v1/runs/<run_id>/undo", operators=Who.OPERATOR, body=made_of({}), answers={200: ref("Run")})
async def undo_run(context: RequestContext, deps: Dependencies, run_id: str) -> Answer:
    """Request the undo of a completed run, which needs the operator's approval. Return the new run.

    :raises NotFound: if the run or an action is missing or not trusted.
    :raises Conflict: if the run is not completed, or an action has changed or is switched off.
    :raises CapabilityDenied: if the action declares no undo.
    :raises InvalidRequest: if the run's result lacks values for the arguments.
    :raises BindingRequired: if a connector has no binding.
    :raises Paused, LimitExceeded: if the call may not be made now.
    :raises StoreUnavailable: if it cannot be stored.
    """
    return answer(to_json(await deps.submission.undo(run_id, context.caller.actor)))


@TABLE.route("POST", "/v1/runs/<run_id>/reconcile", operators=Who.OPERATOR, body=made_of({}), answers={200: _FOUND})
async def reconcile_run(context: RequestContext, deps: Dependencies, run_id: str) -> Answer:
    """Look up now whether a run whose outcome is unknown happened.

    The answer has the run, whether it happened (null if unknown), and the failure of the search or null.

    :raises NotFound: if there is no such run.
    :raises Conflict, CapabilityDenied: if its outcome is not unknown, or cannot be looked up.
    :raises VaultLocked, BindingFailed: if the vault is not unlocked, or was altered.
    """
    run, finding = await deps.reconciliation.find_out(run_id, context.caller.actor)
    return answer({"run": to_json(run), "happened": finding.happened, "failure": optional_json(finding.fault)})
