"""The pages of runs: the list, and one whole run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.attachments import Attachment, set_apart
from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.model.audit import Event
from aileron.model.errors import NotFound
from aileron.model.faults import Fault
from aileron.model.queries import AuditQuery, Page, RunQuery
from aileron.model.reviews import Review
from aileron.model.runs import NOT_BEGUN, Approval, AttemptRow, Run, RunState, StepRow

from .blocks import (
    Cell,
    Part,
    act,
    answer,
    back,
    chip,
    choice,
    draw_whole,
    facts,
    field,
    filters,
    heading,
    link,
    older,
    page,
    quiet,
    table,
)
from .parts import Drawing, Visit
from .texts import STATES, count, moment, segment

_MOST = 50
_KINDS = {
    RunState.COMPLETED: "good",
    RunState.FAILED: "bad",
    RunState.UNKNOWN: "bad",
    RunState.PENDING: "waits",
    RunState.AWAITING_VAULT: "waits",
    RunState.AWAITING_CREDENTIAL: "waits",
    RunState.APPROVED: "moves",
    RunState.EXECUTING: "moves",
}
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


def state_chip(state: RunState) -> Tag:
    """Draw a run state as a chip."""
    return chip(STATES[state], _KINDS.get(state, "quiet"))


def _draw_state(run: Run) -> Tag:
    """Draw the state of a run. A run that was run again is drawn as "Run again"."""
    return chip("Run again", "quiet") if run.superseded_by is not None else state_chip(run.state)


def took(start: datetime, end: datetime | None) -> str:
    """Return a duration in words, or an empty string if it has no end."""
    if end is None:
        return ""
    seconds = max(timedelta(), end - start).total_seconds()
    if seconds < 100:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


def runs_table(runs: Iterable[Run], caption: str) -> Tag:
    """Draw runs as a table."""
    return table(caption, ("Action", "State", "Requested", "Duration", "Reason"), map(_row, runs), "No matching runs")


async def draw_runs(deps: Dependencies, visit: Visit) -> Drawing:
    """Draw the list of runs, newest first."""
    query = visit.query
    state, action, session = (query.get(name, "") for name in ("state", "action", "session"))
    states = tuple(each for each in RunState if each.value == state)
    wanted = RunQuery(states, session or None, action or None, limit=_MOST, cursor=query.get("cursor"))
    found = await deps.submission.runs(wanted)
    return Drawing(lambda: _list(found, query))


def _list(found: Page[Run], query: Mapping[str, str]) -> Tag:
    options = [("", "Any"), *((each.value, STATES[each]) for each in RunState)]
    state, action, session = (query.get(name, "") for name in ("state", "action", "session"))
    return page(
        "Runs",
        count(len(found.items), "run", "runs"),
        heading("Runs"),
        filters(
            "/runs",
            choice("state", "State", options, state),
            field("action", "Action", action),
            field("session", "Session", session),
            given=bool(state or action or session),
        ),
        runs_table(found.items, "Runs, newest first"),
        older("/runs", {name: query[name] for name in ("state", "action", "session") if name in query}, found.cursor),
    )


async def draw_run(deps: Dependencies, visit: Visit, run_id: str) -> Drawing:
    """Draw the page of one run."""
    run = await deps.submission.run(run_id)
    history = await deps.submission.history(run_id)
    approval = await _approval(deps, run)
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
    return Drawing(lambda: _page(run, history, approval, choices, said))


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


def _page(
    run: Run,
    history: tuple[Sequence[StepRow], Sequence[AttemptRow]],
    approval: Approval | None,
    choices: Sequence[Part],
    said: str,
) -> Tag:
    steps, attempts = history
    return page(
        run.action,
        said,
        back("/runs", "All runs"),
        heading(run.action, run.action_version),
        tags.p(_draw_state(run), " ", answer()),
        *choices,
        facts(_about(run)),
        *([] if approval is None else [tags.h2("Decision"), facts(_draw_decided(approval))]),
        *_arguments(run, approval),
        tags.h2("Attempts"),
        _attempts(attempts),
        *_answers(attempts),
        *_outcome(run, steps),
    )


def _row(run: Run) -> tuple[Cell, ...]:
    why = run.fault.message if run.fault is not None else run.reason
    state, lasted = _draw_state(run), took(run.received_at, run.changed_at if run.state.settled else None)
    return link(f"/runs/{run.id}", run.action), state, run.received_at, lasted, why or ""


async def _approval(deps: Dependencies, run: Run) -> Approval | None:
    try:
        return await deps.decisions.approval(run.id) if run.gated else None
    except NotFound:  # refused before an approval was requested
        return None


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
    result, outputs, attachments = _set_apart(run, steps)
    for step, output in zip(steps, outputs, strict=True):
        yield tags.h3(f"Response to step {step.position + 1}")
        yield draw_whole(f"step-{step.position}", output, "Response")
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
