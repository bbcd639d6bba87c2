"""The routes of approvals: pending decisions, the operator's decision, and its result for the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from operator import attrgetter

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.roles import require_role
from aileron.api.shapes.schemas import (
    ANY,
    ANY_OBJECT,
    BOOLEAN,
    COUNT,
    CURSOR,
    DIGEST,
    LIMIT,
    MOMENT,
    REASON,
    STATE,
    STATUS_SCHEMA,
    TEXT,
    TEXT_OR_NULL,
    WAIT,
    list_of,
    made_of,
    or_null,
    page_of,
    ref,
    widened,
)
from aileron.api.shapes.values import ANSWERS, approval_json, moment, new_grant_json, page, status_of, to_json
from aileron.base.converter import Member
from aileron.base.json import JSON
from aileron.model.audit import Event
from aileron.model.deciders import check_may_change
from aileron.model.errors import Conflict, InvalidRequest
from aileron.model.reviews import Card
from aileron.model.runs import Approval, Decision, Run, RunState
from aileron.review import RequestReview, ReviewWarning, group_identical, review_requests

from .grants import NEW_GRANT, SIGNED, read_wish, sign_decision, take_decision
from .run import RETRY_AFTER_SECONDS, begins_later, edits_payload, fault_of
from .runs import awaited_run, run_query, visible_run

TABLE = EndpointTable()

MOST_SNOOZED = timedelta(days=30)
"""The longest time for which a request can be put aside."""

_FILTERS = made_of({}, {"state": list_of(STATE), "session": TEXT, "action": TEXT, "limit": LIMIT, "cursor": CURSOR})
_RESULT = made_of(
    {"status": STATUS_SCHEMA, "run_id": TEXT, "retry_after": COUNT},
    {
        "audit_id": TEXT_OR_NULL,
        "result": ANY,
        "reason": TEXT_OR_NULL,
        "edited": list_of(ref("Change")),
        "failure": ref("Fault"),
        "review_url": TEXT,
        "progress": {**TEXT, "description": "how many of several needed approvals there are, and whose"},
        "begins_at": {**MOMENT, "description": "approved, and can be taken back until then"},
    },
)
DECISION = made_of(
    {"approved": BOOLEAN, "digest": DIGEST},
    {
        "reason": REASON,
        "not_before": MOMENT,
        "grant": NEW_GRANT,
        "forced": {**BOOLEAN, "description": "an administrator approves alone, with a reason, whatever the rule says"},
    },
)
_PASSKEY = made_of({"nonce": TEXT, "credential": ANY_OBJECT})
_DECIDED = widened(DECISION, {"passkey": _PASSKEY, "signed": SIGNED})


@TABLE.route("GET", "/v1/action-approvals", operators=READERS, query=_FILTERS, answers={200: page_of("Approval")})
async def list_approvals(context: RequestContext, deps: Dependencies) -> Answer:
    """List approvals, oldest first. Without C{state}, list the pending ones.

    The answer has a page of approvals, each with its group, its warnings, the end of its snooze, and the ids of the
    other pending approvals on the page that ask the same.
    """
    query = run_query(context, usual=(RunState.PENDING,))
    found = await deps.decisions.approvals(query, only_read=context.caller.only_reads)
    notes = await _judge(deps, [each for each in found.items if each.run.state is RunState.PENDING])
    snoozes = await deps.snoozes.all()
    plain: dict[str, JSON] = {"group": None, "warnings": [], "identical": []}

    def to_row(each: Approval) -> dict[str, JSON]:
        notes_of_run = {**notes.get(each.run.id, plain), "snoozed_until": moment(snoozes.get(each.run.id))}
        return {**approval_json(each, deps.review_url), **notes_of_run}

    return answer(page(found, to_row))


@TABLE.route("GET", "/v1/action-approvals/<approval_id>", operators=READERS, answers={200: ref("Approval")})
async def show_approval(context: RequestContext, deps: Dependencies, approval_id: str) -> Answer:
    """Return one approval in full, after checking whether it is stale.

    Only a request with a login fetches a missing preview again.

    :raises NotFound: if there is no such approval.
    """
    approval = await deps.decisions.approval(approval_id, only_read=context.caller.only_reads)
    suggested: JSON = [to_json(each) for each in deps.decisions.suggested(approval)]
    cards: JSON = [to_json(each) for each in deps.decisions.cards(approval)]
    snoozed: JSON = moment((await deps.snoozes.all()).get(approval.run.id))
    shown = {
        **approval_json(approval, deps.review_url),
        "suggested": suggested,
        "cards": cards,
        "snoozed_until": snoozed,
    }
    if approval.run.state is not RunState.PENDING:
        return answer({**shown, "group": None, "warnings": [], "novel": {}})
    (review,) = await review_requests(deps.decisions, deps.submission.offering().offers, (approval,))
    return answer({**shown, **_notes(review), "novel": review.novel})


async def _judge(deps: Dependencies, pending: Sequence[Approval]) -> Mapping[str, dict[str, JSON]]:
    """Return for each pending approval its warnings and its group in the inbox, and which others ask for the same.

    The result has one entry for each run's id.
    """
    reviews = await review_requests(deps.decisions, deps.submission.offering().offers, pending)
    groups = [[each.run.id for each in group] for group in group_identical(pending)]
    others = {run_id: [each for each in group if each != run_id] for group in groups for run_id in group}
    return {each.approval.run.id: {**_notes(each), "identical": others[each.approval.run.id]} for each in reviews}


def _notes(review: RequestReview) -> dict[str, JSON]:
    return {"group": review.group.value, "warnings": [to_json(each) for each in review.warnings]}


# Clients of version 0.2 read the id as "name" and the text as "message".
ANSWERS.differ(ReviewWarning, computed={"name": attrgetter("id"), "message": attrgetter("text")})
ANSWERS.differ(Card, parts=Member(write=lambda parts: [{"name": name, "values": values} for name, values in parts]))


@TABLE.route(
    "POST",
    "/v1/action-approvals/<approval_id>/decide",
    # guard of promise 2: only the operator decides -> AgentTests.test_decides_nothing,
    #    instead Who.OPERATOR | Who.ANYONE
    operators=Who.OPERATOR,
    body=_DECIDED,
    answers={200: ref("Approval")},
)
async def decide(context: RequestContext, deps: Dependencies, approval_id: str) -> Answer:
    """Approve or deny the request with this digest. An approval can also grant similar calls.

    :raises NotFound: if there is no such approval.
    :raises ApprovalStale: if the digest is not the present one.
    :raises Conflict: if the request is not pending any more.
    :raises Forbidden: if a needed signature is missing or not valid.
    :raises Paused, VaultLocked, BindingFailed, StoreUnavailable: if nothing can be decided now.
    :raises InvalidRequest: if a time is not valid or too far ahead, or a grant is requested with a denial.
    """
    wish = read_wish(context)
    # guard of roles: a grant needs an administrator -> features.people.test_roles.DecidingTests.test_grant
    if wish is not None and context.caller.role is not None:
        require_role("make_grant", context.caller.role)
    wanted = read_decision(context)
    # guard of roles: an approver forces nothing -> features.people.test_roles.DecidingTests.test_forced
    if wanted.forced and context.caller.role is not None:
        require_role("force_approval", context.caller.role)
    decision = sign_decision(context, deps, approval_id, wanted, wish)
    approval, grant = await take_decision(deps, approval_id, decision, wish)
    shown = approval_json(approval, deps.review_url)
    return answer(shown if grant is None else {**shown, "grant": new_grant_json(grant)})


@TABLE.route(
    "POST",
    "/v1/action-approvals/<approval_id>/edit",
    operators=Who.OPERATOR,
    body=made_of({"args": ANY_OBJECT}, {"digest": DIGEST}),
    answers={200: ref("Approval")},
)
async def edit(context: RequestContext, deps: Dependencies, approval_id: str) -> Answer:
    """Replace the arguments of a pending request, with a new preview and digest. Invalid ones change nothing.

    :raises NotFound: if there is no such approval.
    :raises InvalidRequest: if the arguments are not valid.
    :raises Forbidden: if the request belongs to another person, or the action's rule does not let this one edit.
    :raises ApprovalStale, Conflict: if the digest is not the present one, or the request is not pending any more.
    :raises BindingRequired, CapabilityDenied: if the request cannot be built from the arguments.
    :raises StoreUnavailable: if they cannot be stored.
    """
    # guard of roles: nobody edits what another person's agent requested
    #    -> features.people.test_agents.OthersTests.test_edit
    check_may_change(context.caller.account, (await visible_run(context, deps, approval_id)).owner)
    given = context.body["args"]
    arguments = given if isinstance(given, Mapping) else {}
    approval = await deps.decisions.edit(approval_id, arguments, context.text("digest"), context.caller.actor)
    return answer(approval_json(approval, deps.review_url))


@TABLE.route(
    "POST",
    "/v1/action-approvals/<approval_id>/snooze",
    operators=Who.OPERATOR,
    body=made_of({"until": or_null(MOMENT)}),
    answers={200: made_of({"snoozed_until": or_null(MOMENT)})},
)
async def snooze(context: RequestContext, deps: Dependencies, approval_id: str) -> Answer:
    """Hide a pending request in every inbox until a time, or show it again. It still expires and can be decided.

    The event C{approval.snoozed} is recorded.

    :raises NotFound: if there is no such run.
    :raises Conflict: if the request is not pending.
    :raises Forbidden: if the request belongs to another person.
    :raises InvalidRequest: if the time is past, or more than 30 days ahead.
    :raises StoreUnavailable: if it cannot be stored.
    """
    run, until = await visible_run(context, deps, approval_id), context.moment("until")
    # guard of roles: nobody hides what another person's agent requested
    #    -> features.people.test_agents.OthersTests.test_snooze
    check_may_change(context.caller.account, run.owner)
    if run.state is not RunState.PENDING:
        raise _not_pending(run)
    if until is not None and not deps.now() < until <= deps.now() + MOST_SNOOZED:
        raise InvalidRequest.listing("A request can be snoozed for at most 30 days.", ("/until", "out of range"))
    payload: dict[str, JSON] = {"until": moment(until)}
    event = Event(
        deps.ids(), "approval.snoozed", deps.now(), context.caller.actor, payload, run.id, run.session_id, run.action
    )
    if not await deps.snoozes.put(run.id, until, (event,)) and until is not None:
        raise _not_pending(await visible_run(context, deps, approval_id))
    return answer({"snoozed_until": moment(until)})


def _not_pending(run: Run) -> Conflict:
    return Conflict("Only a pending request can be snoozed.", {"state": run.state.value})


@TABLE.route(
    "GET",
    "/v1/action-approvals/<approval_id>/result",
    agents=Who.AGENT,
    operators=READERS,
    query=made_of({}, {"wait": WAIT}),
    answers={200: _RESULT},
)
async def show_result(context: RequestContext, deps: Dependencies, approval_id: str) -> Answer:
    """Return a run's status and result, gated or not, when the run is settled or the wait is over.

    :raises NotFound: if there is no such run, or the caller may not follow it.
    :raises LimitExceeded: if too many requests of the caller's session wait already.
    :raises Unauthorized: if the session ends during the wait.
    """
    run = await awaited_run(context, deps, approval_id)
    progress = await deps.decisions.progress(run)
    return answer({**_result(context, run, deps), **({"progress": progress} if progress else {})})


@TABLE.route(
    "POST",
    "/v1/action-approvals/<approval_id>/withdraw",
    agents=Who.AGENT,
    operators=Who.OPERATOR,
    body=made_of({}, {"reason": REASON}),
    answers={200: _RESULT},
)
async def withdraw(context: RequestContext, deps: Dependencies, approval_id: str) -> Answer:
    """Withdraw a run before anything is sent.

    :raises NotFound: if there is no such run, or the caller may not see it.
    :raises Conflict: if the run has started or is settled.
    """
    await visible_run(context, deps, approval_id)
    run = await deps.submission.withdraw(approval_id, context.caller.actor, context.text("reason"))
    deps.note_told(run, context.caller.session)
    return answer(_result(context, run, deps))


def read_decision(context: RequestContext) -> Decision:
    """Parse the decision (approve or deny) in the request's body.

    :raises InvalidRequest: if C{not_before} is not a valid date-time.
    """
    return Decision(
        approved=context.body["approved"] is True,
        digest=str(context.body["digest"]),
        decided_by=context.caller.actor.id,
        reason=context.text("reason"),
        not_before=context.moment("not_before"),
        account=context.caller.account,
        forced=context.body["approved"] is True and context.body.get("forced") is True,
    )


def _result(context: RequestContext, run: Run, deps: Dependencies) -> Mapping[str, JSON]:
    settled = run.state.settled
    shown: dict[str, JSON] = {
        "status": status_of(run),
        "run_id": run.id,
        "retry_after": 0 if settled else RETRY_AFTER_SECONDS,
    }
    if begins_later(run, deps):
        shown["begins_at"] = moment(run.start_after)
    if run.gated and not settled:
        shown["review_url"] = deps.review_url(run.id)
    if settled:
        shown["audit_id"], shown["reason"] = run.audit_id, run.reason
        shown |= edits_payload(run)
    if run.state is RunState.COMPLETED:
        shown["result"] = run.result
    elif settled:
        shown["failure"] = to_json(fault_of(run, person=context.caller.is_reader))
    return shown
