"""The page of one request: what came of it, when what happened, what was sent and answered, and its decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen
from twisted.web.template import Flattenable, Tag, tags

from aileron.api import Dependencies
from aileron.base.attachments import Attachment, set_apart
from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.model.audit import Event, EventName, Record
from aileron.model.faults import Fault
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.reviews import Review
from aileron.model.runs import NOT_BEGUN, Approval, AttemptRow, Run, RunState, StepRow
from aileron.model.sessions import Session
from aileron.review import find_title

from ._runs_page import draw_state, read_approval, state_chip, took
from .approvals.requests import draw_request
from .blocks import Cell, Part, act, answer, back, chip, draw_whole, facts, heading, link, page, quiet, table
from .event_names import PERSON, event_names
from .parts import Drawing, Visit
from .texts import STATES, agent, moment, segment

_UNKNOWN = (
    "The request may have been sent, and no response says whether it happened. It is not repeated automatically. Check"
    " the service and record what you found"
)
_LOOK, _NO_LOOK = ", or look up the outcome.", ". Aileron cannot look up the outcome of this run."
_FOUND: Mapping[JSON, str] = {
    True: "This step happened, as the service says. The steps after it never started.",
    False: "This step did not happen, and the steps after it never started.",
    None: "Nothing was found, which does not prove that it did not happen. The outcome is still unknown.",
}
_ENDS = frozenset((RunState.PENDING, *NOT_BEGUN))
_MOST_EVENTS = 100
_SENT = frozenset((RunState.EXECUTING, RunState.COMPLETED, RunState.FAILED, RunState.UNKNOWN))


@frozen
class RunRecord:
    """All that is stored about one request.

    :ivar approval: its approval, or None if it needed none.
    :ivar session: the session that asked, or None if it is not stored.
    :ivar records: its newest audit records, oldest first.
    :ivar names: the words for event types.
    """

    run: Run
    approval: Approval | None
    session: Session | None
    steps: Sequence[StepRow]
    attempts: Sequence[AttemptRow]
    records: Sequence[Record]
    names: Mapping[str, EventName]


async def draw_run(deps: Dependencies, visit: Visit, run_id: str) -> Drawing:
    """Draw the page of one request.

    :raises NotFound: no run has that ID.
    """
    run = await deps.submission.run(run_id)
    record = await _read(deps, run)
    undoing = (await deps.submission.runs(RunQuery(undoes=run_id, limit=1))).items
    lookup = await _find_last_lookup(deps, run)
    look = run.state is RunState.UNKNOWN and await deps.reconciliation.is_reconcilable(run_id)
    choices = [
        *_choices(run, _find_inverse(deps, run), lookup, look=look),
        *(_draw_undoing(each) for each in undoing),
    ]
    said = f"{run.action}: {STATES[run.state]}"
    if lookup is not None:
        said = f"{said}. Looked up at {lookup.at:%H:%M:%S} UTC. {_describe_finding(lookup)}"
    return Drawing(lambda: _page(record, choices, said))


async def _read(deps: Dependencies, run: Run) -> RunRecord:
    steps, attempts = await deps.submission.history(run.id)
    session = None if run.session_id is None else await deps.sessions.get(run.session_id)
    found = await deps.audit.list(AuditQuery(run_id=run.id, limit=_MOST_EVENTS))
    records = [each for each in reversed(found.items) if not each.altered]
    names = event_names(deps.features.features)
    return RunRecord(run, await read_approval(deps, run), session, steps, attempts, records, names)


async def _find_last_lookup(deps: Dependencies, run: Run) -> Event | None:
    """If the outcome of the run is unknown, find the event of the last outcome check."""
    if run.state is not RunState.UNKNOWN:
        return None
    found = await deps.audit.list(AuditQuery(run_id=run.id, type="execution.reconciled", limit=1))
    return next((record.event for record in found.items if not (record.pruned or record.altered)), None)


def _describe_finding(lookup: Event) -> str:
    failure = lookup.payload.get("failure")
    if not isinstance(failure, Mapping):
        return _FOUND[lookup.payload.get("happened")]
    return f"The lookup failed: {failure.get('message')} The outcome is still unknown."


def _draw_undoing(run: Run) -> Tag:
    return quiet("Undone by ", link(f"/runs/{run.id}", run.action), ": ", state_chip(run.state))


def _find_inverse(deps: Dependencies, run: Run) -> str | None:
    """Find the action that undoes a run, or return None if the run's action has changed since."""
    offer = deps.submission.offering().offers.get(run.action)
    if offer is None or offer.action.digest != run.manifest_digest or offer.action.inverse is None:
        return None
    return offer.action.inverse.action


def _page(record: RunRecord, choices: Sequence[Part], said: str) -> Tag:
    run, approval = record.run, record.approval
    return page(
        run.action,
        said,
        back("/runs", "Activity"),
        heading(_title(record), f"{run.action} {run.action_version}"),
        quiet(*_asked_by(record)),
        tags.p(draw_state(run), " ", *_describe_times(record), " ", answer(), **{"class": "outcome"}),
        *([quiet("Reason: ", tags.bdi(visible(said_why)))] if (said_why := run.reason or _reason(approval)) else []),
        *choices,
        *_outcome(run, record.steps),
        *_arguments(run, approval),
        tags.h2("Timeline"),
        tags.ol(*(_draw_event(each, record.names) for each in record.records), **{"class": "history"}),
        *_draw_exchanges(record),
        tags.details(
            tags.summary("Details"),
            facts(_about(run)),
            *([] if approval is None else [tags.h3("Decision"), facts(_draw_decided(approval))]),
            id="details-of-run",
        ),
    )


def _title(record: RunRecord) -> str:
    return record.run.action if record.approval is None else find_title(record.run.action, record.approval.review)


def _reason(approval: Approval | None) -> str | None:
    return None if approval is None else approval.reason


def _asked_by(record: RunRecord) -> Iterator[Part]:
    """Draw who asked, in which directory, and when."""
    run, session = record.run, record.session
    if run.session_id is None:
        yield "You"
    else:
        yield link(f"/sessions/{run.session_id}", agent(session))
        if session is not None:
            yield from (" in ", tags.bdi(visible(session.working_dir)))
    yield from (", ", moment(run.received_at))


def _describe_times(record: RunRecord) -> Iterator[Part]:
    """Draw who decided, how long the request waited for the decision, and how long it ran."""
    run, approval = record.run, record.approval
    if approval is not None and approval.decided_at is not None:
        word = "Approved" if approval.approved else "Denied"
        by = "you" if approval.grant_id is None else "a grant"
        waited = took(approval.requested_at, approval.decided_at)
        yield f"{word} by {by} after {waited}. " if approval.grant_id is None else f"{word} by {by}. "
    elif not run.gated:
        yield "Needed no approval. "
    began = min((each.started_at for each in record.attempts), default=None)
    if began is not None and run.state.settled:
        yield f"Ran for {took(began, run.changed_at)}. "


def _draw_event(record: Record, names: Mapping[str, EventName]) -> Tag:
    event = record.event
    known = names.get(event.type) or EventName(event.type)
    return tags.li(
        tags.div(chip(known.words, known.colour), *_describe_event(event)),
        tags.small(
            moment(event.at)(**{"data-clock": "yes"}),
            ", by you" if event.actor.type == PERSON else "",
            ", ",
            link(f"/audit/{event.id}", f"record {record.sequence:,}"),
            **{"class": "quiet"},
        ),
    )


def _describe_event(event: Event) -> Iterator[Part]:
    """Draw the step, the connector, the grant, the reason or the failure of an event, as far as it has one."""
    failure = event.payload.get("failure")
    if isinstance(failure, Mapping):
        failure = failure.get("message")
    said = (event.payload.get("step"), event.connector, event.payload.get("reason"), failure)
    yield "".join(f" {visible(each)}" for each in said if isinstance(each, str) and each)
    if isinstance(event.payload.get("grant"), str):
        yield from (" ", link("/grants", str(event.payload["grant"])))


def _draw_step(drawn: Mapping[str, Flattenable]) -> Tag:
    words = (tags.strong(drawn["operation"]), " of ", tags.strong(drawn["connector"]), ", ", drawn["account"])
    return tags.li(tags.p(*words), drawn["request"])


def _draw_exchanges(record: RunRecord) -> Iterator[Part]:
    """Draw what was sent and what the service answered, folded: the approved requests, attempts and responses."""
    run, approval, steps = record.run, record.approval, record.steps
    reviewed = () if approval is None else approval.review.steps
    _, outputs, _ = _set_apart(run, steps)
    yield tags.h2("Requests and responses")
    if reviewed:
        drawn = [
            draw_request(number, step, None, frozenset(), run.effect_key) for number, step in enumerate(reviewed, 1)
        ]
        words = "Requests as sent" if run.state in _SENT else "Requests as approved" if approval else "Requests"
        yield tags.details(tags.summary(words), tags.ol(*map(_draw_step, drawn), id="steps"), id="sent")
    yield _attempts(record.attempts)
    yield from _answers(record.attempts)
    for step, output in zip(steps, outputs, strict=True):
        name = f"step-{step.position}"
        summary = tags.summary(f"Response to step {step.position + 1}")
        yield tags.details(summary, draw_whole(name, output, "Response"), id=f"response-{step.position}")


def _about(run: Run) -> Iterator[tuple[str, Cell]]:
    yield "Run ID", run.id
    yield "Requested", run.received_at
    yield "Updated", run.changed_at
    yield "Starts", run.start_after if run.state is RunState.APPROVED else None
    yield "Session", "None (yours)" if run.session_id is None else link(f"/sessions/{run.session_id}", run.session_id)
    yield "Repeats", None if run.parent_id is None else link(f"/runs/{run.parent_id}", run.parent_id)
    again = run.repeated_by
    yield "Run again as", None if again is None else link(f"/runs/{again}", again)
    yield "Undoes", None if run.undoes is None else link(f"/runs/{run.undoes}", run.undoes)
    yield "Effect key", run.effect_key
    yield "Idempotency key", run.idempotency_key
    yield "Reason", run.reason
    yield "Audit log", link(f"/audit?run={run.id}", "Records of this run")


def _draw_decided(approval: Approval) -> Iterator[tuple[str, Cell]]:
    said = {None: "Pending", True: "Approved", False: "Denied"}[approval.approved]
    yield "Decision", link(f"/approvals/{approval.run.id}", said)
    yield "Decided", approval.decided_at
    by_you = approval.grant_id is None and approval.approved is not None
    yield "Decided by", "You" if by_you else None
    yield "Grant", approval.grant_id
    yield "Reason", approval.reason
    yield "Not before", approval.not_before
    yield "Not after", approval.not_after
    yield "No longer valid", approval.stale
    yield "Digest", approval.digest


def _arguments(run: Run, approval: Approval | None) -> Iterator[Part]:
    review = Review() if approval is None else approval.review
    yield tags.h2("Arguments")
    yield draw_whole("arguments", review.order_arguments(run.arguments), "Arguments")
    if run.asked is not None:
        yield tags.h3("As requested")
        yield draw_whole("asked", review.order_arguments(run.asked), "Arguments as requested")


def _choices(run: Run, inverse: str | None, lookup: Event | None, *, look: bool) -> list[Part]:
    if run.state is RunState.COMPLETED and inverse is not None:
        undo = act("Undo", f"POST /v1/runs/{segment(run.id)}/undo", name="undo", leads="/approvals/")
        return [
            tags.p(undo, **{"class": "buttons"}),
            quiet(f"Requests {visible(inverse)} for what this run did. Nothing is sent before you approve it."),
        ]
    if run.state in _ENDS:
        cancel = act("Cancel run", f"POST /v1/action-approvals/{segment(run.id)}/withdraw", name="withdraw")
        return [tags.p(cancel, **{"class": "buttons"})]
    if run.state is not RunState.UNKNOWN:
        return []
    button = act("Look up outcome", f"POST /v1/runs/{segment(run.id)}/reconcile", name="reconcile")
    again = "Confirm: run again, even if it happens twice"
    return [
        tags.p(_UNKNOWN, _LOOK if look else _NO_LOOK, **{"class": "stale"}),
        *([tags.p(button, **{"class": "buttons"})] if look else []),
        *([] if lookup is None else [_draw_lookup(lookup)]),
        _saying(run, "happened", "Mark as completed"),
        _saying(run, "did_not_happen", "Mark as not done"),
        _saying(run, "run_again", "Run again", again),
    ]


def _draw_lookup(lookup: Event) -> Tag:
    step, where = visible(str(lookup.payload.get("step"))), visible(lookup.connector or "")
    what = ("Looked up step ", tags.code(step), " at ", tags.code(where), " ")
    return tags.p(*what, moment(lookup.at), f": {visible(_describe_finding(lookup))}", id="lookup")


def _saying(run: Run, outcome: str, words: str, sure: str = "") -> Tag:
    name = f"note-{outcome}"
    note = tags.input(name="note", id=name, type="text", maxlength="2000", autocomplete="off")
    button = tags.button(words, type="submit", disabled="disabled", id=outcome)
    attributes = {
        "class": "filters",
        "data-act": f"POST /v1/runs/{segment(run.id)}/resolve",
        "data-body": f'{{"outcome": "{outcome}"}}',
        **({"data-sure": sure} if sure else {}),
    }
    return tags.form(tags.label("Note (saved in the audit log) ", note), button, **attributes)


def _attempts(attempts: Iterable[AttemptRow]) -> Tag:
    heads = ("Step, attempt", "State", "Started", "Duration", "Sent", "Reason")
    return table("Attempts", heads, map(_attempt, attempts), "No attempts")


def _answers(attempts: Iterable[AttemptRow]) -> Iterator[Part]:
    """Draw the service's response to each failed attempt, folded."""
    for number, each in enumerate(attempts):
        if each.answer is not None:
            name = f"Response to {each.step_id}, attempt {each.number}"
            kind = f" ({each.answer_type})" if each.answer_type else ""
            yield tags.details(tags.summary(visible(name + kind)), draw_whole(f"answer-{number}", each.answer, name))


def _attempt(attempt: AttemptRow) -> tuple[Cell, ...]:
    sent = {None: "", True: "Yes", False: "No"}[attempt.sent]
    why = "" if attempt.fault is None else attempt.fault.message
    name, lasted = f"{attempt.step_id}, {attempt.number}", took(attempt.started_at, attempt.ended_at)
    return name, attempt.state, attempt.started_at, lasted, sent, why


def _outcome(run: Run, steps: Sequence[StepRow]) -> Iterator[Part]:
    result, _, attachments = _set_apart(run, steps)
    if run.fault is not None:
        yield tags.h2("Failure")
        yield facts(_fault(run.fault))
    elif run.result is not None:
        yield tags.h2("Result returned to the agent")
        yield draw_whole("result", result, "Result")
    elif not run.state.settled:
        yield quiet("No outcome yet")
    yield from _draw_attached(run, attachments)


def _set_apart(run: Run, steps: Sequence[StepRow]) -> tuple[JSON, Sequence[JSON], tuple[Attachment, ...]]:
    """Return the result and the responses without their attachments, and each distinct attachment once."""
    told, attachments = set_apart([run.result, *(step.output for step in steps)])
    assert isinstance(told, list)  # noqa: S101
    return told[0], told[1:], attachments


def _draw_attached(run: Run, attachments: Sequence[Attachment]) -> Iterator[Part]:
    for number, attachment in enumerate(attachments, 1):
        if attachment.text is not None:
            yield tags.h3(f"Attachment {number}")
            yield draw_whole(f"attachment-{number}", attachment.text, f"Attachment {number}")
    if attachments:
        yield quiet(f"To save the attachments as files, run: aileron run save {run.id} DIRECTORY")


def _fault(fault: Fault) -> Iterator[tuple[str, Cell]]:
    yield "Class", fault.kind
    yield "Message", fault.message
    yield "Where", fault.boundary
    yield "Retriable", "Yes" if fault.retriable else "No"
    yield "Details", draw_whole("details", dict(fault.details), "Details") if fault.details else None
