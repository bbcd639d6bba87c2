"""The route that runs an action, and the answers for each state of a run."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext
from aileron.api.faults import Answer, answer, failure
from aileron.api.guard import Who
from aileron.api.serving import MAX_WAIT_SECONDS
from aileron.api.shapes.schemas import ANY, ANY_OBJECT, COUNT, STATUS_SCHEMA, TEXT, TEXT_OR_NULL, list_of, made_of, ref
from aileron.api.shapes.values import moment, status_of, to_json
from aileron.base.json import JSON
from aileron.model.errors import (
    ApprovalDenied,
    ApprovalExpired,
    Cancelled,
    Conflict,
    InternalError,
    NotFound,
    OutcomeUnknown,
)
from aileron.model.faults import Fault
from aileron.model.runs import AWAITING, Call, Run, RunState
from aileron.model.traces import RequestedRun
from aileron.review import edits

TABLE = EndpointTable()

RETRY_AFTER_SECONDS = 5
_CARRIED_OUT = frozenset((RunState.COMPLETED, RunState.FAILED, RunState.UNKNOWN))

_ID = {"type": "string", "pattern": "^[!-~]{1,128}$"}
_BODY = made_of({}, {"args": ANY_OBJECT, "idempotency_key": _ID, "tool_call": _ID})
_DONE = made_of(
    {"run_id": TEXT, "audit_id": TEXT_OR_NULL, "result": ANY}, {"edited": list_of(ref("Change")), "reason": TEXT}
)
_WAITS = made_of(
    {"status": STATUS_SCHEMA, "run_id": TEXT, "message": TEXT, "retry_after": COUNT},
    {"approval_id": TEXT, "review_url": TEXT},
)


def _require_known(deps: Dependencies, name: str) -> None:
    """Check that an action exists and is switched on, before errors of the body are reported.

    If no actions are loaded, do nothing.

    :raises NotFound: if there is no action of this name.
    :raises Conflict: if the action is switched off.
    """
    offers = deps.submission.offering().offers
    if not offers:
        return
    offer = offers.get(name)
    if offer is None:
        raise NotFound("There is no action of this name.")
    if not offer.enabled:
        raise Conflict("This action is switched off.", {"enabled": False})


@TABLE.route(
    "POST",
    "/v1/actions/<name>/run",
    agents=Who.AGENT,
    operators=Who.OPERATOR,
    body=_BODY,
    answers={200: _DONE, 202: _WAITS},
    known=_require_known,
)
async def run_action(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Run an action, and return its result, or the reason why it waits.

    The answer has status 200 with the result, 202 if the run is not settled yet, or the failure of the run.

    :raises NotFound: if there is no such action.
    :raises Forbidden: if the session may not use it.
    :raises Conflict: if the action is switched off, or the idempotency key was used for other arguments.
    :raises InvalidRequest: if the arguments are not valid.
    :raises Paused, LimitExceeded, ApprovalDenied: if the call may not be made now.
    :raises BindingRequired, CapabilityDenied: if a connector cannot make the request.
    :raises VaultLocked, StoreUnavailable: if the call cannot be checked or stored.
    :raises Unauthorized: if the session ends during the wait.
    """
    arguments = context.body.get("args", {})
    call = Call(
        name,
        arguments if isinstance(arguments, Mapping) else {},
        context.caller.actor,
        context.caller.session,
        context.text("idempotency_key"),
        tool_call=context.text("tool_call"),
    )
    run = await deps.submission.submit(call)
    _note_requested(context, deps, run)
    if not run.state.settled:
        run = await _wait(context, deps, run)
    deps.note_told(run, context.caller.session)
    return outcome(run, deps, person=context.caller.is_reader)


def _note_requested(context: RequestContext, deps: Dependencies, run: Run) -> None:
    """Note for the log which run a request is about, and tell the features of it."""
    notes = context.received.notes
    notes.run_id = run.id
    requested = RequestedRun(run.id, run.action, context.caller.session_id, notes.id, context.began_at, notes.parent)
    deps.features.run_requested(requested)


async def _wait(context: RequestContext, deps: Dependencies, run: Run) -> Run:
    """Wait until the run is settled, at most as long as the request asks.

    If the request does not say how long, return at once if the run waits for a person or has a start time, else wait at
    most L{MAX_WAIT_SECONDS}. If too many requests of the session wait, return at once. If the daemon stops, wait only
    for a run that it is executing.

    :raises Unauthorized: if the session ends during the wait.
    """
    wish = context.wait_seconds
    if wish is None:
        wish = 0.0 if _waits_for_somebody(run) else float(MAX_WAIT_SECONDS)
    left = wish - (deps.clock.seconds() - context.began_at)
    session_id = context.caller.session_id
    moves_on = deps.is_stopping() and run.state is not RunState.EXECUTING
    if left <= 0 or moves_on or not deps.waits.allows(session_id):
        return run
    return await deps.waits.wait(session_id, deps.submission.wait(run.id, left))


def _waits_for_somebody(run: Run) -> bool:
    """Return whether the run waits for a person or for a time that may be far. A run under a grant does not."""
    return run.state in (RunState.PENDING, *AWAITING) or run.start_after is not None


def outcome(run: Run, deps: Dependencies, *, person: bool = False) -> Answer:
    """Return the answer to a request to run an action.

    If the run is settled, the answer is its result or its failure. Otherwise, it is 202 with what the run waits for.

    :param person: True if the operator reads it, not an agent.
    """
    if run.state is RunState.COMPLETED:
        said: dict[str, JSON] = {} if run.reason is None else {"reason": run.reason}
        return answer({"run_id": run.id, "audit_id": run.audit_id, "result": run.result, **said, **edits_payload(run)})
    if run.state.settled:
        return failure(
            fault_of(run, person=person).with_details(**edits_payload(run)), run_id=run.id, audit_id=run.audit_id
        )
    return answer(_waiting(run, deps), 202)


def edits_payload(run: Run) -> dict[str, JSON]:
    """Return C{{"edited": …}} with the operator's changes to the run's arguments.

    Return an empty dict if the operator changed nothing, or the run was not carried out.
    """
    changes = edits(run) if run.state in _CARRIED_OUT else ()
    return {"edited": [to_json(change) for change in changes]} if changes else {}


def fault_of(run: Run, *, person: bool = False) -> Fault:
    """Return why a settled run has no result.

    :param person: True if the operator reads it, not an agent.
    """
    details: dict[str, JSON] = {} if run.reason is None else {"reason": run.reason}
    because = f" Reason: {run.reason}" if run.reason else ""
    if run.state is RunState.DENIED:
        return ApprovalDenied(f"{'You' if person else 'The user'} denied this.{because}", details).fault()
    if run.state is RunState.EXPIRED:
        return ApprovalExpired("Nobody decided in time; nothing was sent.", details).fault()
    if run.state is RunState.CANCELLED:
        return Cancelled(f"This was withdrawn; nothing was sent.{because}", details).fault()
    if run.state is RunState.UNKNOWN:
        return _unknown(run.fault, details, person=person)
    return run.fault or InternalError("The run failed, and does not say why.").fault()


def _unknown(cause: Fault | None, details: dict[str, JSON], *, person: bool) -> Fault:
    message = "It may have happened: do not repeat it. The user checks what happened and records it."
    if person:
        message = "The outcome is unknown."
    again = None if cause is None else cause.details.get("run_again")
    if again is not None:
        message = f"{message} Run {again} is to repeat it, if {'you approve' if person else 'the user approves'}."
        details = {**details, "run_again": again}
    if cause is not None:
        message, details = f"{message} {cause.message}", {**details, "cause": to_json(cause)}
    return OutcomeUnknown(message, details).fault()


def _waiting(run: Run, deps: Dependencies) -> dict[str, JSON]:
    again = 0 if deps.is_stopping() else RETRY_AFTER_SECONDS  # another daemon can be asked at once
    waiting: dict[str, JSON] = {"status": status_of(run), "run_id": run.id, "retry_after": again}
    if not run.gated:
        return {**waiting, "message": f"{run.action} runs; check_action_status with {run.id} tells the outcome."}
    url = deps.review_url(run.id)
    return {**waiting, "approval_id": run.id, "review_url": url, "message": _message(run, url, deps)}


def _message(run: Run, url: str, deps: Dependencies) -> str:
    """Return the message that tells the LLM what the run waits for and what to do."""
    tells = f"Do not call it again: check_action_status with approval_id {run.id} tells the outcome."
    if run.state is RunState.PENDING:
        return (
            f"{run.action} waits for the user's approval; nothing was sent yet. Ask the user to review it at {url} "
            f"or by: aileron open approval {run.id}. {tells}"
        )
    if run.state is RunState.AWAITING_VAULT:
        return (
            f"{run.action} is approved and waits until the vault is unlocked. "
            f"Ask the user to run: aileron vault unlock. {tells}"
        )
    if run.state is RunState.AWAITING_CREDENTIAL:
        return (
            f"{run.action} is approved and waits until the user renews the credential that it needs; nothing was sent "
            f"yet. Ask the user to run: aileron credential list. {tells}"
        )
    if begins_later(run, deps):
        return (
            f"{run.action} is approved and starts at {moment(run.start_after)}; nothing was sent yet, and until then "
            f"the user can undo it. {tells}"
        )
    return f"{run.action} is approved and runs. {tells}"


def begins_later(run: Run, deps: Dependencies) -> bool:
    """Return whether the run is approved and its start time is in the future."""
    return run.state is RunState.APPROVED and run.start_after is not None and run.start_after > deps.now()
