"""The page of one request: its outcome, its events, the requests and responses, and the decision."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen
from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.attachments import Attachment, set_apart
from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.model.audit import Actor, Event, EventName, Record
from aileron.model.authority import StandingGrant
from aileron.model.faults import Fault
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.reviews import Card, Review
from aileron.model.runs import NOT_BEGUN, Approval, AttemptRow, Run, RunState, StepRow
from aileron.model.sessions import Session
from aileron.review import edits

from ._exchanges_part import draw_exchanges, list_exchanges
from ._grants_page import describe_grant
from ._runs_page import draw_state, read_approval, state_chip, took
from ._timeline_part import draw_timeline
from .approvals.decision import cancel_button
from .approvals.listing import Inbox, draw_rows, read_inbox
from .approvals.page import draw_approval, draw_asked_by, draw_origin, draw_payload, draw_unread, headline
from .approvals.reading import differences
from .blocks import Cell, Part, act, answer, back, copied, draw_whole, facts, link, quiet
from .event_names import event_names
from .parts import Drawing, Visit, titled
from .texts import STATES, countdown, find_address, moment, name_run, segment

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
_NEVER_SENT = frozenset((RunState.DENIED, RunState.CANCELLED, RunState.EXPIRED))
_MOST_EVENTS = 100


@frozen
class RunRecord:
    """The stored data of one request.

    :ivar approval: the run's approval, or None if it needed none.
    :ivar session: the requesting session, or None if it is not stored.
    :ivar cards: the cards that the approval showed; empty if the action or its connector has changed since.
    :ivar grants: the grant that allowed the run, and the grant that was created with its approval.
    :ivar records: the run's newest audit records, oldest first.
    :ivar names: the words for event types.
    """

    run: Run
    approval: Approval | None
    session: Session | None
    cards: Sequence[Card]
    grants: Sequence[StandingGrant]
    steps: Sequence[StepRow]
    attempts: Sequence[AttemptRow]
    records: Sequence[Record]
    names: Mapping[str, EventName]


async def draw_run(deps: Dependencies, visit: Visit, run_id: str) -> Drawing:
    """Draw the page of one request: the decision to make while it is pending, and its outcome afterwards.

    :raises NotFound: if no run has that ID.
    """
    run = await deps.submission.run(run_id)
    pending = await _find_pending(deps, visit, run)
    if pending is not None:
        return await draw_approval(deps, visit, pending)
    outcome = await _read_outcome(deps, run_id)
    return Drawing(lambda: _page(outcome))


async def draw_request(deps: Dependencies, visit: Visit, run_id: str) -> Drawing:
    """Draw the page of one request, with the pending approvals beside it.

    While the request is pending, the page shows the decision to make; afterwards, its outcome. A login that may decide
    is recorded as shown the approval.

    :raises NotFound: if no run has that ID.
    """
    run = await deps.submission.run(run_id)
    pending = await _find_pending(deps, visit, run)
    if pending is not None:
        return await draw_approval(deps, visit, pending)
    outcome, inbox = await _read_outcome(deps, run_id), await read_inbox(deps, visit)
    return Drawing(lambda: _page_beside(outcome, inbox))


async def _find_pending(deps: Dependencies, visit: Visit, run: Run) -> Approval | None:
    """Return the approval of a pending run, or None if the run is not pending.

    :raises NotFound: if its approval is missing.
    """
    if run.state is not RunState.PENDING:
        return None
    approval = await deps.decisions.approval(run.id, only_read=visit.only_reads)
    return approval if approval.run.state is RunState.PENDING else None


@frozen
class _DecidedRequest:
    """The content of the page of a decided request.

    :ivar choices: the buttons for what can still be done.
    :ivar said: the text that a screen reader announces.
    """

    record: RunRecord
    choices: Sequence[Part]
    said: str


async def _read_outcome(deps: Dependencies, run_id: str) -> _DecidedRequest:
    run = await deps.submission.run(run_id)
    record = await _read(deps, run)
    undoing = (await deps.submission.runs(RunQuery(undoes=run.id, limit=1))).items
    lookup = await _find_last_lookup(deps, run)
    look = run.state is RunState.UNKNOWN and await deps.reconciliation.is_reconcilable(run.id)
    choices = [
        *_choices(run, _find_inverse(deps, run), lookup, look=look),
        *(_draw_undoing(each) for each in undoing),
    ]
    said = f"{run.action}: {STATES[run.state]}"
    if lookup is not None:
        said = f"{said}. Looked up at {lookup.at:%H:%M:%S} UTC. {_describe_finding(lookup)}"
    return _DecidedRequest(record, choices, said)


async def _read(deps: Dependencies, run: Run) -> RunRecord:
    steps, attempts = await deps.submission.history(run.id)
    approval = await read_approval(deps, run)
    cards = () if approval is None else deps.decisions.cards(approval)
    found = await deps.audit.list(AuditQuery(run_id=run.id, limit=_MOST_EVENTS))
    records = [each for each in reversed(found.items) if not each.altered]
    names = event_names(deps.features.features)
    grants = [] if approval is None else await _find_grants(deps, approval)
    return RunRecord(run, approval, await _find_session(deps, run), cards, grants, steps, attempts, records, names)


async def _find_session(deps: Dependencies, run: Run) -> Session | None:
    return None if run.session_id is None else await deps.sessions.get(run.session_id)


async def _find_grants(deps: Dependencies, approval: Approval) -> list[StandingGrant]:
    """Find the grant that allowed a run, and the one that was created with its approval.

    :raises VaultLocked: if the vault was never unlocked in this process.
    """
    grants = await deps.grants.grants()
    return [each for each in grants if each.grant.id == approval.grant_id or each.grant.run_id == approval.run.id]


async def _find_last_lookup(deps: Dependencies, run: Run) -> Event | None:
    """Return the event of the last outcome check, or None if there was none or the run's outcome is not unknown."""
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
    return quiet("Undone by ", link(find_address(run), name_run(run)), ": ", state_chip(run.state))


def _find_inverse(deps: Dependencies, run: Run) -> str | None:
    """Return the name of the action that undoes a run.

    Return None if the run's action declares no such action, is not offered, or has changed since the run.
    """
    offer = deps.submission.offering().offers.get(run.action)
    if offer is None or offer.action.digest != run.manifest_digest or offer.action.inverse is None:
        return None
    return offer.action.inverse.action


def _page(outcome: _DecidedRequest) -> Tag:
    return _mark(tags.article(back("/runs", "Activity"), *_draw_outcome(outcome)), outcome)


def _page_beside(outcome: _DecidedRequest, inbox: Inbox) -> Tag:
    way = tags.a("Inbox", href="/approvals", **{"class": "back-to", "data-key": "i"})
    detail = tags.div(
        tags.div(way, **{"class": "detail-head"}),
        tags.div(*_draw_outcome(outcome), id="request", tabindex="-1", **{"class": "detail-body"}),
        **{"class": "detail"},
    )
    rows = draw_rows(inbox, outcome.record.run.id)
    return _mark(tags.article(rows, detail, **{"class": "split open"}), outcome)


def _mark(article: Tag, outcome: _DecidedRequest) -> Tag:
    """Add the data that the page's script needs: title, text for screen readers, and the run's ID and state."""
    run = outcome.record.run
    title, said = f"{visible(run.action)} – Aileron", visible(outcome.said)
    return titled(title, said)(article)(**{"data-id": visible(run.id), "data-state": run.state.value})


def _draw_outcome(outcome: _DecidedRequest) -> Iterator[Part]:
    """Draw the content of the page of a decided request."""
    record, run = outcome.record, outcome.record.run
    approval = record.approval or _bare_approval(run)
    why = run.reason or approval.reason
    yield tags.h1(headline(approval), tabindex="-1")
    yield tags.p(*draw_asked_by(approval, record.session, record.cards), **{"class": "meta asked"})
    yield tags.p(draw_state(run), " ", *_describe_outcome(record), " ", answer(), **{"class": "outcome"})
    if why:
        yield quiet("Reason: ", tags.bdi(visible(why)))
    yield from outcome.choices
    yield from _draw_failure(run)
    yield from _draw_payload(record)
    yield from draw_timeline(record.records, record.names)
    yield from _draw_result(run, record.steps)
    yield from _draw_exchanges(record, approval)
    yield from _draw_grants(record)
    yield tags.details(tags.summary("Details"), *_draw_details(record), id="details-of-run")


def _draw_exchanges(record: RunRecord, approval: Approval) -> Iterator[Part]:
    _, outputs, _ = _set_apart(record.run, record.steps)
    exchanges = list_exchanges(approval.review.steps, record.steps, outputs, record.attempts)
    yield from draw_exchanges(record.run, exchanges)


def _draw_details(record: RunRecord) -> Iterator[Part]:
    yield facts(_about(record.run))
    if record.approval is not None:
        yield quiet(*draw_origin(record.approval, record.session))
        yield tags.h3("Decision")
        yield facts(_describe_decision(record.approval))


def _describe_outcome(record: RunRecord) -> Iterator[Part]:
    """Draw who decided a request, how long it waited for the decision, and how long its run took."""
    run, approval = record.run, record.approval
    if approval is not None and approval.decided_at is not None:
        word = "Approved" if approval.approved else "Denied"
        waited = took(approval.requested_at, approval.decided_at)
        by = (
            "a grant" if approval.grant_id is not None else f"{visible(_find_person(approval) or 'you')} after {waited}"
        )
        if approval.forced:
            yield from (tags.strong("Approved alone", **{"class": "bad"}), f" by {by}. ")
        else:
            yield f"{word} by {by}. "
    elif not run.gated:
        yield "Needed no approval. "
    elif run.state in _NEVER_SENT:
        yield f"Not decided within {took(run.received_at, run.changed_at)}. "
    if run.state in _NEVER_SENT:
        yield "Nothing was sent. "
    began = min((each.started_at for each in record.attempts), default=None)
    if began is not None and run.state.settled:
        yield f"Ran for {took(began, run.changed_at)}. "


def _about(run: Run) -> Iterator[tuple[str, Cell]]:
    yield "Run ID", copied(run.id, "run ID")
    yield "Requested", run.received_at
    yield "Updated", run.changed_at
    yield "Starts", run.start_after if run.state is RunState.APPROVED else None
    yield "Session", "None (yours)" if run.session_id is None else link(f"/sessions/{run.session_id}", run.session_id)
    yield "Repeats", None if run.parent_id is None else link(f"/runs/{run.parent_id}", run.parent_id)
    again = run.repeated_by
    yield "Run again as", None if again is None else link(f"/runs/{again}", again)
    yield "Undoes", None if run.undoes is None else link(f"/runs/{run.undoes}", run.undoes)
    yield "Effect key", copied(run.effect_key, "effect key")
    yield "Idempotency key", run.idempotency_key
    yield "Reason", run.reason
    yield "Audit record", None if run.audit_id is None else link(f"/audit/{run.audit_id}", run.audit_id)
    yield "Audit log", link(f"/audit?run={run.id}", "Records of this run")


def _find_person(approval: Approval) -> str | None:
    """Return the name of the account that decided, or None if the operator or nobody did."""
    return Actor("human", approval.decided_by or "").person


def _describe_decision(approval: Approval) -> Iterator[tuple[str, Cell]]:
    said = {None: "Pending", True: "Approved", False: "Denied"}[approval.approved]
    yield "Decision", "Approved alone, without the approvals of others" if approval.forced else said
    yield "Decided", approval.decided_at
    by_person = approval.grant_id is None and approval.approved is not None
    yield "Decided by", _find_person(approval) or "You" if by_person else None
    yield "Grant", approval.grant_id
    yield "Reason", approval.reason
    yield "Not before", approval.not_before
    yield "Not after", approval.not_after
    yield "No longer valid", approval.stale
    yield "Digest", copied(approval.digest, "digest")


def _draw_payload(record: RunRecord) -> Iterator[Part]:
    """Draw what was asked for: cards and arguments as they were shown, the edits, and the preview."""
    run, approval = record.run, record.approval or _bare_approval(record.run)
    edited = edits(run)
    yield tags.section(draw_payload(approval, record.cards), id="payload")
    if edited:
        rows = ([tags.dt(each["place"]), each["difference"]] for each in differences(edited, Review(), "edited"))
        yield tags.section(tags.h2("Your edits"), tags.dl(*map(tags.div, rows), id="edits"))
    if approval.review.unread is not None:
        yield draw_unread(approval.review.unread)


def _bare_approval(run: Run) -> Approval:
    """Return a made-up approval of a run that needed none, so that its arguments can be drawn like those of others."""
    return Approval(run, "", Review(title=run.title), run.received_at)


def _draw_grants(record: RunRecord) -> Iterator[Part]:
    """Draw the grant that allowed the run, and the one that was created with its approval."""
    for standing in record.grants:
        yield tags.h2("Grant created" if standing.grant.run_id == record.run.id else "Grant used")
        yield facts((*describe_grant(standing), ("All grants", link("/grants", "Grants and limits"))))


def _choices(run: Run, inverse: str | None, lookup: Event | None, *, look: bool) -> list[Part]:
    if run.state is RunState.COMPLETED and inverse is not None:
        undo = act("Undo", f"POST /v1/runs/{segment(run.id)}/undo", name="undo", leads="/approvals/")
        return [
            tags.p(undo, **{"class": "buttons"}),
            quiet(f"Requests {visible(inverse)} for what this run did. Nothing is sent before you approve it."),
        ]
    if run.state is RunState.APPROVED and run.start_after is not None:
        at, left, button = countdown(run)
        return [tags.p("Starts ", left, " (", at, ") ", button, **{"class": "begins"})]
    if run.state in NOT_BEGUN:
        return [tags.p(cancel_button(run), **{"class": "buttons"})]
    if run.state is not RunState.UNKNOWN:
        return []
    button = act("Look up outcome", f"POST /v1/runs/{segment(run.id)}/reconcile", name="reconcile")
    return [
        tags.p(_UNKNOWN, _LOOK if look else _NO_LOOK, **{"class": "stale"}),
        *([tags.p(button, **{"class": "buttons"})] if look else []),
        *([] if lookup is None else [_draw_lookup(lookup)]),
        _draw_settling(run),
    ]


def _draw_lookup(lookup: Event) -> Tag:
    step, where = visible(str(lookup.payload.get("step"))), visible(lookup.connector or "")
    what = ("Looked up step ", tags.code(step), " at ", tags.code(where), " ")
    return tags.p(*what, moment(lookup.at), f": {visible(_describe_finding(lookup))}", id="lookup")


def _draw_settling(run: Run) -> Tag:
    """Draw the buttons that record what happened, with one field for a note that each of them sends."""
    note = tags.input(name="note", id="note", type="text", maxlength="2000", autocomplete="off")
    buttons = [
        _draw_settling_button(run, outcome, words)(**{"data-sure": sure} if sure else {})
        for outcome, words, sure in (
            ("happened", "Mark as completed", ""),
            ("did_not_happen", "Mark as not done", ""),
            ("run_again", "Run again", "Confirm: run again, even if it happens twice"),
        )
    ]
    label = tags.label("Note (saved in the audit log)", **{"for": "note"})
    return tags.div(label, note, tags.div(*buttons, **{"class": "buttons"}), id="settling", **{"class": "settling"})


def _draw_settling_button(run: Run, outcome: str, words: str) -> Tag:
    attributes = {
        "data-act": f"POST /v1/runs/{segment(run.id)}/resolve",
        "data-body": json.dumps({"outcome": outcome}),
        "data-with": "settling",
    }
    return tags.button(words, type="button", disabled="disabled", id=outcome, **attributes)


def _draw_failure(run: Run) -> Iterator[Part]:
    if run.fault is not None:
        yield tags.h2("Failure")
        yield tags.p(visible(run.fault.message), **{"class": "failure"})
        yield tags.details(tags.summary("More about the failure"), facts(_fault(run.fault)), id="failure")


def _draw_result(run: Run, steps: Sequence[StepRow]) -> Iterator[Part]:
    result, _, attachments = _set_apart(run, steps)
    if run.fault is None and run.result is not None:
        yield tags.h2("Result returned to the agent")
        yield draw_whole("result", result, "Result")
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
    yield "Where", fault.boundary
    yield "Retriable", "Yes" if fault.retriable else "No"
    yield "Details", draw_whole("details", dict(fault.details), "Details") if fault.details else None
