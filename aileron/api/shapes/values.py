"""Converts values to JSON in the forms of L{aileron.api.shapes.schemas}, where these differ from the classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TypeVar

from attrs import AttrsInstance, evolve

from aileron.base.attachments import set_apart
from aileron.base.converter import INLINE, OMITTED, OWN, JsonConverter, Member
from aileron.base.json import JSON, timestamp
from aileron.model.actions import Action, ApprovalRule, ConnectorPin, Offer, PreviewRule
from aileron.model.audit import Event, Record
from aileron.model.authority import Grant, GrantState, Passkey, StandingGrant
from aileron.model.connectors import ConnectorDescription, CredentialNeed, Operation
from aileron.model.queries import Page
from aileron.model.runs import Approval, AttemptRow, Run, RunState, StepRow, Vote
from aileron.model.sessions import OperatorSession, Session
from aileron.model.trust import Trusted, TrustItem
from aileron.model.vault import Binding, BindingFlag
from aileron.review import edits, find_title, find_trust_difference

T = TypeVar("T")

_FAILURE = ("boundary", "message", "retriable", "details")

QUIET_AFTER = timedelta(minutes=10)

_STATUS = {RunState.RECEIVED: "running", RunState.APPROVED: "running", RunState.EXECUTING: "running"}

ANSWERS = JsonConverter(OWN)
"""The converter of values in answers. Each module of routes adds its own."""

to_json = ANSWERS.to_json


def optional_json(value: AttrsInstance | None) -> dict[str, JSON] | None:
    """Return the JSON of a value, or None for None."""
    return None if value is None else to_json(value)


def status_of(run: Run) -> str:
    """Return the status of a run in the word that agents are shown."""
    return _STATUS.get(run.state, run.state.value)


def page(found: Page[T], shape: Callable[[T], JSON]) -> dict[str, JSON]:
    """Return the JSON of one page of a list.

    :param shape: converts one item to JSON.
    """
    return {"items": [shape(item) for item in found.items], "cursor": found.cursor}


def moment(at: datetime | None) -> str | None:
    """Return a time as RFC 3339 text, or None if there is no time."""
    return None if at is None else timestamp(at)


def listed_run_json(run: Run) -> dict[str, JSON]:
    """Return the JSON of a run in a list, with a short description of any attachment in its result."""
    return {**to_json(run), "result": set_apart(run.result)[0]}


def approval_json(approval: Approval, review_url: Callable[[str], str]) -> dict[str, JSON]:
    """Return the JSON of an approval, with its arguments in the order of the action's inputs."""
    run = evolve(approval.run, arguments=approval.review.order_arguments(approval.run.arguments))
    title = find_title(run.action, approval.review)
    progress: dict[str, JSON] = {"progress": approval.progress} if approval.progress else {}
    return {**to_json(evolve(approval, run=run)), "title": title, "review_url": review_url(run.id), **progress}


def new_grant_json(grant: Grant) -> dict[str, JSON]:
    """Return the JSON of a grant that was just created."""
    return to_json(StandingGrant(grant, GrantState.LIVE))


def session_json(session: Session, now: datetime) -> dict[str, JSON]:
    """Return the JSON of a session. C{quiet} means that it sent no request for ten minutes."""
    quiet = now - session.seen_at > QUIET_AFTER
    ended = "ended" if session.ending is None else session.ending.value
    return {**to_json(session), "state": ended if not session.live else "quiet" if quiet else "running"}


def operator_json(session: OperatorSession, caller: OperatorSession | None = None) -> dict[str, JSON]:
    """Return the JSON of an operator session. Its member C{yours} is true if it is the session of C{caller}."""
    return {**to_json(session), "yours": caller is not None and session.id == caller.id}


def _run_id(approval: Approval) -> str:
    return approval.run.id


def _text(item: TrustItem) -> str:
    return "" if item.candidate is None else item.candidate.text


def _attributes(event: Event) -> dict[str, JSON]:
    """Return the attributes of an event by the names of common telemetry conventions, without empty ones."""
    fault = event.payload.get("failure")
    failure = fault if isinstance(fault, Mapping) else {}
    about_approval = event.type.startswith("approval.")
    named = {
        "aileron.action.name": event.action,
        "aileron.session.id": event.session_id,
        "aileron.approval.id" if about_approval else "aileron.invocation.id": event.run_id,
        "aileron.audit.id": event.id,
        "aileron.connector.name": event.connector,
        "aileron.failure.class": event.failure_class,
        **{f"aileron.failure.{name}": failure.get(name) for name in _FAILURE},
    }
    return {name: value for name, value in named.items() if value not in (None, {})}


ANSWERS.differ(
    Run,
    effect_key=OMITTED,
    fault=Member("failure"),
    undoes=Member(optional=True),
    title=OMITTED,
    owner=Member(optional=True),
    computed={"edited": edits, "status": status_of},
)
ANSWERS.differ(StepRow, run_id=OMITTED, step_id=Member("id"))
ANSWERS.differ(AttemptRow, run_id=OMITTED, step_id=Member("step"), fault=Member("failure"))
ANSWERS.differ(
    Approval,
    not_after=OMITTED,
    mark=OMITTED,
    signed=OMITTED,
    votes=Member(optional=True),
    approvers=Member(optional=True),
    approvers_digest=OMITTED,
    counted=OMITTED,
    forced=Member(optional=True),
    computed={"id": _run_id, "approval_id": _run_id},
)
ANSWERS.differ(
    Vote,
    run_id=OMITTED,
    person=OMITTED,
    digest=OMITTED,
    not_after=OMITTED,
    mark=OMITTED,
    signed=OMITTED,
    account=OMITTED,
    has_lapsed=OMITTED,
    computed={"name": attrgetter("name")},
)
ANSWERS.differ(StandingGrant, grant=INLINE)
ANSWERS.differ(Grant, used=OMITTED, owner=Member(optional=True), computed={"left": attrgetter("left")})
ANSWERS.differ(Offer, action=INLINE, own_hosts=OMITTED, tools_only=OMITTED)
ANSWERS.differ(
    Action,
    approval=INLINE,
    inputs=OMITTED,
    steps=OMITTED,
    path=OMITTED,
    text=OMITTED,
    output_schema=OMITTED,
    inverse=Member("undone_by", optional=True, write=lambda inverse: inverse.action),
    computed={"asks": lambda action: [one.name for one in action.inputs if one.ask]},
)
ANSWERS.differ(
    ApprovalRule,
    expires_after_seconds=OMITTED,
    withdrawn_on_cancel=Member("on_cancel", write=lambda withdrawn: "withdraw" if withdrawn else "keep"),
    replaced_on_repeat=Member("on_repeat", write=lambda replaced: "replace" if replaced else "keep"),
    by=Member(optional=True),
    not_requester=Member(optional=True),
    count=Member(optional=True),
)
ANSWERS.differ(ConnectorPin, hash=OMITTED)
ANSWERS.differ(
    PreviewRule,
    args=OMITTED,
    multiline=OMITTED,
    render=Member("shows", write=lambda render: [label for label, _ in render]),
)
ANSWERS.differ(Session, ending=OMITTED, owner=Member(optional=True))
ANSWERS.differ(
    Record,
    event=INLINE,
    altered=OMITTED,
    computed={"pruned": attrgetter("pruned"), "attributes": lambda record: _attributes(record.event)},
)
ANSWERS.differ(Event, id=Member("audit_id"), failure_class=Member("class"))
ANSWERS.differ(Binding, owner=Member(optional=True))
ANSWERS.differ(BindingFlag, binding=OMITTED, revision=OMITTED)
ANSWERS.differ(
    ConnectorDescription,
    operations=Member(write=lambda operations: [to_json(each) for each in operations.values()]),
    template=Member(optional=True),
    places=Member(optional=True),
    own_tools=OMITTED,
)
ANSWERS.differ(
    Operation,
    pin=Member(optional=True),
    destructive=OMITTED,
    output_schema=OMITTED,
    presentation=OMITTED,
    scopes=OMITTED,
    lookup=OMITTED,
    irreversible=OMITTED,
    needs_approval=OMITTED,
    tools_only=OMITTED,
)
ANSWERS.differ(CredentialNeed, format=OMITTED, settings=Member(optional=True))
ANSWERS.differ(Passkey, public_key=OMITTED)
ANSWERS.differ(
    TrustItem,
    candidate=OMITTED,
    before=OMITTED,
    computed={
        "difference": find_trust_difference,
        "path": lambda item: item.candidate and item.candidate.path,
        "digest": lambda item: item.candidate and item.candidate.digest,
        "lines": lambda item: _text(item).count("\n") + (_text(item)[-1:] not in {"", "\n"}),
        "bytes": lambda item: len(_text(item).encode("utf-8", "surrogatepass")),
        "text": lambda item: item.candidate and item.candidate.text,
        "needs": lambda item: item.candidate.needs if item.candidate else (),
        "lacks": lambda item: item.candidate.lacks if item.candidate else (),
        "unasked": lambda item: item.candidate is not None and item.candidate.unasked,
    },
)
ANSWERS.differ(Trusted, kind=OMITTED, name=OMITTED, changed_by=OMITTED)
