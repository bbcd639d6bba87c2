"""Schemas that several routes share. Each is a component of the OpenAPI document under its key here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, cast, get_args, get_origin

from attrs import fields, has, resolve_types

from aileron.api.endpoint import Schema
from aileron.base.converter import Member
from aileron.base.json import JSON
from aileron.base.load_error import LoadError
from aileron.model.actions import Offer, PreviewRule
from aileron.model.audit import Actor, Record, Verdict
from aileron.model.authority import Grant, Pause, Predicate, StandingGrant
from aileron.model.connectors import ConnectorDescription, Operation
from aileron.model.errors import STATUS
from aileron.model.faults import Fault
from aileron.model.runs import Approval, Change, Run, RunState, Vote
from aileron.model.sessions import ActionSelection, OperatorSession, Process, Session, SessionTally
from aileron.model.trust import TrustItem, TrustKind
from aileron.model.vault import Binding, BindingFlag, CredentialState, Scope, VaultState
from aileron.review import InboxGroup, WarningSeverity

from .values import ANSWERS

TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
MOMENT: Schema = {
    "type": "string",
    "description": "RFC 3339, with Z or an offset",
    "pattern": r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)$",
}
MOMENT_OR_NULL: Schema = {"type": ["string", "null"], "pattern": str(MOMENT["pattern"])}
INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
ANY: Schema = {}
ANY_OBJECT: Schema = {"type": "object"}
LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": 1000, "description": "Most items of one page"}
CURSOR: Schema = {"type": "string", "minLength": 1, "maxLength": 512, "description": "Where the page before ended"}
WAIT: Schema = {"type": "number", "minimum": 0, "maximum": 3600, "description": "Seconds to wait for news"}
DIGEST: Schema = {"type": "string", "maxLength": 128}
REASON: Schema = {"type": ["string", "null"], "maxLength": 4096}

STATUSES = (
    "pending_approval",
    "awaiting_vault",
    "awaiting_credential",
    "running",
    "completed",
    "denied",
    "failed",
    "expired",
    "cancelled",
    "unknown",
)
STATUS_SCHEMA: Schema = {"enum": list(STATUSES)}
STATE: Schema = {"enum": [state.value for state in RunState]}
VAULT_STATE: Schema = {"enum": [state.value for state in VaultState]}
TRUST_KIND: Schema = {"enum": [kind.value for kind in TrustKind]}


def made_of(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with these members and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def widened(schema: Schema, optional: Mapping[str, Schema]) -> Schema:
    """Return a copy of the schema of an object, with further optional members."""
    return {**schema, "properties": {**cast("Mapping[str, JSON]", schema["properties"]), **optional}}


def list_of(item: Schema) -> Schema:
    """Return the schema of an array."""
    return {"type": "array", "items": item}


def ref(name: str) -> Schema:
    """Return a reference to a component, by name."""
    return {"$ref": f"#/components/schemas/{name}"}


def page_of(name: str) -> Schema:
    """Return the schema of one page of a list, whose items have the schema C{name}.

    Its C{cursor} is null at the end.
    """
    return made_of({"items": list_of(ref(name)), "cursor": TEXT_OR_NULL})


def or_null(schema: Schema) -> Schema:
    """Return a schema that also accepts null."""
    if isinstance(schema.get("type"), str) and "properties" not in schema:
        return {
            **{name: each for name, each in schema.items() if name != "description"},
            "type": [schema["type"], "null"],
        }
    return {"anyOf": [schema, {"type": "null"}]}


def described(cls: Any, **said: Schema) -> Schema:
    """Return the JSON Schema of a class, for the JSON that the converter L{ANSWERS} makes of its instances.

    :param said: schemas of members that the class does not describe or does not have.
    """
    members = _members(cls)
    for name, schema in said.items():
        members[name] = {**members[name], **schema} if set(schema) == {"description"} else schema
    optional = {name for name in _optional(cls) if name in members}
    return made_of(
        {name: schema for name, schema in members.items() if name not in optional},
        {name: members[name] for name in members if name in optional},
    )


def _optional(cls: Any) -> set[str]:
    """Return the names of the members that are left out if they have their default, including inlined ones."""
    form = ANSWERS.forms.get(cls)
    if form is None:
        return set()
    inline = (_optional(each.type) for each in fields(cls) if each.name in form.inline())
    return {form.name(name) for name, each in form.members.items() if each.optional}.union(*inline)


def _members(cls: Any) -> dict[str, Schema]:
    resolve_types(cls)
    form, found = ANSWERS.forms.get(cls), dict[str, Schema]()
    for each in fields(cls):
        member = Member() if form is None else form.members.get(each.name, Member())
        if member.inline:
            found |= _members(each.type)
        elif not member.omitted:
            found[member.name or each.name] = _schema_of(each.type) if member.write is None else ANY
    return found


def _schema_of(type_: Any) -> Schema:
    inner = get_args(type_)
    if type_ in _SCALARS:
        return _SCALARS[type_]
    if has(type_):
        return ref(type_.__name__) if type_ in _REFERRED else described(type_)
    if isinstance(type_, type) and issubclass(type_, StrEnum):
        return {"enum": [each.value for each in type_]}
    if get_origin(type_) is tuple:
        return list_of(_schema_of(inner[0]))
    if len(inner) == 2 and inner[1] is type(None):
        return or_null(_schema_of(inner[0]))
    return ANY_OBJECT if get_origin(type_) is Mapping else ANY


def _says(words: str) -> Schema:
    return {"description": words}


_SCALARS: Mapping[Any, Schema] = {str: TEXT, int: COUNT, float: NUMBER, bool: BOOLEAN, datetime: MOMENT}
_REFERRED = frozenset((Change, Fault, Grant, Predicate, Run, Scope))

_CARD = made_of({"step": TEXT, "kind": TEXT, "parts": list_of(made_of({"name": TEXT, "values": list_of(ANY)}))})

_WARNING = made_of(
    {
        "id": {**TEXT, "description": "the kind of the warning"},
        "severity": {"enum": [each.value for each in WarningSeverity]},
        "label": TEXT,
        "text": {**TEXT, "description": "one sentence"},
        "why": {**TEXT, "description": "why it matters"},
        "where": {
            **TEXT,
            "description": "an RFC 6901 pointer into this approval to the text that is meant; empty: the whole request",
        },
        "standing": {**BOOLEAN, "description": "it holds at every call of the action: a fact, and no label in lists"},
        "name": {**TEXT, "description": "the same as id"},
        "message": {**TEXT, "description": "the same as text"},
    }
)

_FAULT = described(
    Fault,
    boundary={"enum": ["user", "sandbox", "connector_manifest", "action", "runtime", "external"]},
    **{"class": {"enum": sorted({*STATUS, "internal_error"})}},
)
_SUMMARY = described(
    SessionTally,
    calls=_says("all that it asked for"),
    effects=_says("what was done"),
    in_doubt=_says("what may have been done"),
    seconds=COUNT,
)

COMPONENTS: Mapping[str, Schema] = {
    "Change": described(Change, path=_says("RFC 6901"), kind={"enum": ["added", "removed", "changed", "more"]}),
    "Fault": _FAULT,
    "Failure": made_of({"error": widened(_FAULT, {"run_id": TEXT, "audit_id": TEXT})}),
    "Run": described(
        Run,
        status=STATUS_SCHEMA,
        asked=_says("the arguments as asked for, where the operator edited them"),
        edited={**list_of(ref("Change")), **_says("in what they differ")},
        parent_id=_says("the run whose outcome is unknown and which this one does again"),
        undoes=_says("the completed run that this one undoes"),
        start_after=_says("an approved one begins no sooner"),
    ),
    "Approval": widened(
        described(
            Approval,
            id=TEXT,
            approval_id=TEXT,
            title={**TEXT, **_says("what would be done, in one line, fit to be shown")},
            review=ANY_OBJECT,
            review_url=TEXT,
            changes=_says("what of the review is otherwise than it was shown before"),
            grant_id=_says("the standing grant that decided; null: a person did, or nobody yet"),
            votes={**list_of(described(Vote, name=TEXT)), **_says("the approvals that count, if several are needed")},
            approvers=_says(
                "who may approve, and how many people must; if missing, anyone who may decide approves alone"
            ),
            forced=_says("whether an administrator approved alone, whatever the rule says"),
        ),
        {
            "grant": ref("Grant"),
            "progress": {**TEXT, **_says("how many of several needed approvals there are, and whose")},
            "suggested": list_of(ref("Predicate")),
            "cards": {**list_of(_CARD), **_says("what would be sent as what a person knows, such as a message")},
            "group": or_null(
                {
                    "enum": [each.value for each in InboxGroup],
                    **_says("which of the pending ones to look at closely; null: it is decided"),
                }
            ),
            "warnings": {**list_of(_WARNING), **_says("reasons to look twice before the decision")},
            "identical": {
                **list_of(TEXT),
                **_says("in a list: the other listed approvals that ask the same, of any session"),
            },
            "snoozed_until": {**or_null(MOMENT), **_says("until when the operator put it aside; null: it is not")},
            "novel": {
                "type": "object",
                "additionalProperties": TEXT,
                **_says("by argument, the note that its value was never used before"),
            },
        },
    ),
    "Grant": described(
        StandingGrant,
        suspended=_says("why it allows nothing though it is live"),
        exact=_says("what each other argument must be; one that is in neither must be absent"),
        left=COUNT,
        bound=_says("what it stands on, by name"),
    ),
    "Predicate": described(Predicate),
    "Pause": described(
        Pause,
        by=_says("the operator's session, or the agent's"),
        session_id=_says("whose runs alone; null: everybody's"),
    ),
    "LoadError": described(LoadError, line={"type": ["integer", "null"]}),
    "Action": described(
        Offer,
        asks={
            **list_of(TEXT),
            **_says("arguments for the person to say, where the call leaves them out and a form can be shown"),
        },
        destructive=_says("it may change or remove what was there"),
        irreversible=_says("what it changes or removes cannot be brought back, and no action undoes it"),
        undone_by={**TEXT, **_says("the action that undoes a completed run of it")},
        open_world=_says("it talks to something outside of the daemon"),
        output_schema=_says("JSON Schema of its output, where one is declared"),
        preview={
            **or_null(described(PreviewRule, shows=list_of(TEXT))),
            **_says("what the person who approves is shown of the service's side"),
        },
        on_repeat={
            "enum": ["replace", "keep"],
            **_says("what becomes of a pending request when an identical one arrives"),
        },
        on_cancel={
            "enum": ["withdraw", "keep"],
            **_says("what becomes of a call that waits for a decision when the agent's program cancels it"),
        },
    ),
    "Session": widened(
        described(
            Session,
            agent=_says("what the agent calls itself: a claim"),
            working_dir=_says("where the agent says that it works: a claim"),
            peer={
                **described(Process, pid=INTEGER),
                "type": ["object", "null"],
                **_says("the process that opened it, as the system shows it; null: it cannot be told"),
            },
            exit_code={"type": ["integer", "null"]},
            state={"enum": ["running", "quiet", "ended", "orphaned", "expired"]},
            leased=_says("whether it ends when whoever launched it is gone"),
            ends_at=_says("when it ends in any case"),
            notes_tools=_says("whether the tools that providers run for it are noted"),
            profile=_says("the profile that restricts its actions; empty: none"),
            selection={
                **or_null(described(ActionSelection)),
                **_says("the project's own choice of actions, which restricts it further"),
            },
            paused={**BOOLEAN, **_says("whether nothing of it begins now")},
        ),
        {"summary": _SUMMARY},
    ),
    "Record": described(
        Record,
        actor=described(Actor, type={"enum": ["agent", "human", "service"]}),
        pruned=BOOLEAN,
        attributes=ANY_OBJECT,
    ),
    "Verdict": described(Verdict, sound=BOOLEAN),
    "Scope": described(Scope),
    "Binding": described(
        Binding,
        revision=INTEGER,
        in_force=or_null(ref("Scope")),
        fits=BOOLEAN,
        flag=or_null(described(BindingFlag)),
        scopes=or_null(list_of(TEXT)),
        state=described(CredentialState, reason=_says("why it works again only after a person has renewed it")),
    ),
    "Connector": described(
        ConnectorDescription,
        operations=list_of(described(Operation, precondition=_says("inputs that tie a write to what was shown"))),
    ),
    "TrustItem": described(
        TrustItem,
        path=TEXT_OR_NULL,
        digest=TEXT_OR_NULL,
        lines=COUNT,
        bytes=COUNT,
        text=TEXT_OR_NULL,
        difference=TEXT,
        needs=list_of(TEXT),
        lacks=list_of({**TEXT, "description": "why the action cannot run"}),
        unasked={**BOOLEAN, "description": "it is an action that makes changes without an approval"},
    ),
    "OperatorSession": described(OperatorSession, yours=BOOLEAN),
}
