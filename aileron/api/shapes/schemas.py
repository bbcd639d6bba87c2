"""Schemas that several routes share; each is a component of the OpenAPI document under its key here."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.api._endpoint import Schema
from aileron.errors import STATUS
from aileron.values import JSON, GrantState, PredicateKind, RunState, TrustKind, TrustState, VaultState

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
    """Describe an object with these members and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def list_of(item: Schema) -> Schema:
    """Describe an array."""
    return {"type": "array", "items": item}


def ref(name: str) -> Schema:
    """Refer to a component, by name."""
    return {"$ref": f"#/components/schemas/{name}"}


def page_of(name: str) -> Schema:
    """One page of components; C{cursor} is null at the end."""
    return made_of({"items": list_of(ref(name)), "cursor": TEXT_OR_NULL})


FAULT: Mapping[str, Schema] = {
    "class": {"enum": sorted({*STATUS, "internal_error"})},
    "message": TEXT,
    "retriable": BOOLEAN,
    "boundary": {"enum": ["user", "sandbox", "connector_manifest", "action", "runtime", "external"]},
    "details": ANY_OBJECT,
}

RUN: Mapping[str, Schema] = {
    "id": TEXT,
    "action": TEXT,
    "action_version": TEXT,
    "manifest_digest": TEXT,
    "arguments": ANY_OBJECT,
    "asked": {"type": ["object", "null"], "description": "the arguments as asked for, where the operator edited them"},
    "edited": {**list_of(ref("Change")), "description": "in what they differ"},
    "state": STATE,
    "status": STATUS_SCHEMA,
    "gated": BOOLEAN,
    "received_at": MOMENT,
    "changed_at": MOMENT,
    "session_id": TEXT_OR_NULL,
    "idempotency_key": TEXT_OR_NULL,
    "result": ANY,
    "failure": {"anyOf": [ref("Fault"), {"type": "null"}]},
    "reason": TEXT_OR_NULL,
    "audit_id": TEXT_OR_NULL,
    "parent_id": {**TEXT_OR_NULL, "description": "the run whose outcome is unknown and which this one does again"},
    "start_after": {**MOMENT_OR_NULL, "description": "an approved one begins no sooner"},
}

APPROVAL: Mapping[str, Schema] = {
    "id": TEXT,
    "approval_id": TEXT,
    "run": ref("Run"),
    "digest": TEXT,
    "review": ANY_OBJECT,
    "review_url": TEXT,
    "requested_at": MOMENT,
    "expires_at": MOMENT_OR_NULL,
    "stale": TEXT_OR_NULL,
    "changes": {**list_of(ref("Change")), "description": "what of the review is otherwise than it was shown before"},
    "approved": {"type": ["boolean", "null"]},
    "decided_at": MOMENT_OR_NULL,
    "decided_by": TEXT_OR_NULL,
    "reason": TEXT_OR_NULL,
    "grant_id": {**TEXT_OR_NULL, "description": "the standing grant that decided; null: a person did, or nobody yet"},
    "not_before": MOMENT_OR_NULL,
}

PREDICATE: Mapping[str, Schema] = {
    "argument": TEXT,
    "kind": {"enum": [kind.value for kind in PredicateKind]},
    "given": ANY,
}

GRANT: Mapping[str, Schema] = {
    "id": TEXT,
    "action": TEXT,
    "state": {"enum": [state.value for state in GrantState]},
    "suspended": {**TEXT_OR_NULL, "description": "why it allows nothing though it is live"},
    "predicates": list_of(ref("Predicate")),
    "exact": {**ANY_OBJECT, "description": "what each other argument must be; one that is in neither must be absent"},
    "uses": COUNT,
    "left": COUNT,
    "not_after": MOMENT,
    "session_id": TEXT_OR_NULL,
    "run_id": TEXT,
    "made_at": MOMENT,
    "made_by": TEXT,
    "used_at": MOMENT_OR_NULL,
    "revoked_at": MOMENT_OR_NULL,
    "bound": {**ANY_OBJECT, "description": "what it stands on, by name"},
}

PAUSE: Mapping[str, Schema] = {
    "since": MOMENT,
    "by": {**TEXT, "description": "the operator's session, or the agent's"},
    "reason": TEXT_OR_NULL,
    "session_id": {**TEXT_OR_NULL, "description": "whose runs alone; null: everybody's"},
}

LOAD_ERROR: Mapping[str, Schema] = {
    "kind": TEXT,
    "message": TEXT,
    "file": TEXT,
    "line": {"type": ["integer", "null"]},
    "boundary": TEXT,
}

ACTION: Mapping[str, Schema] = {
    "name": TEXT,
    "version": TEXT,
    "tool_name": TEXT,
    "source": TEXT,
    "intent": TEXT,
    "description": TEXT,
    "input_schema": ANY_OBJECT,
    "asks": {
        **list_of(TEXT),
        "description": "arguments for the person to say, where the call leaves them out and a form can be shown",
    },
    "enabled": BOOLEAN,
    "gated": BOOLEAN,
    "read_only": BOOLEAN,
    "idempotent": BOOLEAN,
    "destructive": {**BOOLEAN, "description": "it may change or remove what was there"},
    "open_world": {**BOOLEAN, "description": "it talks to something outside of the daemon"},
    "output_schema": {"type": ["object", "null"], "description": "JSON Schema of its output, where one is declared"},
    "timeout_seconds": NUMBER,
    "digest": TEXT,
    "preview": {
        "anyOf": [made_of({"connector": TEXT, "operation": TEXT, "shows": list_of(TEXT)}), {"type": "null"}],
        "description": "what the person who approves is shown of the service's side",
    },
    "undo_seconds": NUMBER,
    "cool_down_seconds": NUMBER,
    "on_cancel": {
        "enum": ["withdraw", "keep"],
        "description": "what becomes of a call that waits for a decision when the agent's program cancels it",
    },
    "limits": list_of(made_of({"most": COUNT, "seconds": NUMBER, "argument": TEXT_OR_NULL, "per_session": BOOLEAN})),
    "connectors": list_of(made_of({"name": TEXT, "version": TEXT, "capabilities": list_of(TEXT)})),
}

PROCESS_OR_NULL: Schema = {
    "description": "the process that opened it, as the system shows it; null: it cannot be told",
    "type": ["object", "null"],
    "properties": {
        "pid": {"type": "integer"},
        "executable": {"type": ["string", "null"]},
        "working_dir": {"type": ["string", "null"]},
    },
    "required": ["pid", "executable", "working_dir"],
    "additionalProperties": False,
}

CALLS: Mapping[str, Schema] = {
    "requests": COUNT,
    "input_tokens": {**COUNT, "description": "all that was read, cached or not"},
    "output_tokens": COUNT,
}

SESSION: Mapping[str, Schema] = {
    "id": TEXT,
    "agent": {**TEXT, "description": "what the agent calls itself: a claim"},
    "working_dir": {**TEXT, "description": "where the agent says that it works: a claim"},
    "peer": PROCESS_OR_NULL,
    "started_at": MOMENT,
    "seen_at": MOMENT,
    "ended_at": MOMENT_OR_NULL,
    "exit_code": {"type": ["integer", "null"]},
    "state": {"enum": ["running", "quiet", "ended", "orphaned", "expired"]},
    "leased": {**BOOLEAN, "description": "whether it ends when whoever launched it is gone"},
    "ends_at": {**MOMENT_OR_NULL, "description": "when it ends in any case"},
    "paused": {**BOOLEAN, "description": "whether nothing of it begins now"},
}

SUMMARY: Mapping[str, Schema] = {
    "calls": {**COUNT, "description": "all that it asked for"},
    "waiting": COUNT,
    "approvals": COUNT,
    "denials": COUNT,
    "effects": {**COUNT, "description": "what was done"},
    "in_doubt": {**COUNT, "description": "what may have been done"},
    "seconds": COUNT,
}

RECORD: Mapping[str, Schema] = {
    "audit_id": TEXT,
    "sequence": COUNT,
    "type": TEXT,
    "at": MOMENT,
    "actor": made_of({"type": {"enum": ["agent", "human", "service"]}, "id": TEXT}),
    "payload": ANY_OBJECT,
    "run_id": TEXT_OR_NULL,
    "session_id": TEXT_OR_NULL,
    "action": TEXT_OR_NULL,
    "connector": TEXT_OR_NULL,
    "class": TEXT_OR_NULL,
    "previous_hash": TEXT,
    "hash": TEXT,
    "payload_digest": TEXT,
    "salt": TEXT_OR_NULL,
    "pruned": BOOLEAN,
    "attributes": ANY_OBJECT,
}

VERDICT: Mapping[str, Schema] = {
    "sound": BOOLEAN,
    "first": COUNT,
    "last": COUNT,
    "head": TEXT,
    "pruned": COUNT,
    "checkpoints": COUNT,
    "signed": COUNT,
    "covered": COUNT,
    "keys": list_of(TEXT),
    "compared": BOOLEAN,
    "anchored": COUNT,
    "broken": {"anyOf": [made_of({"kind": TEXT, "sequence": COUNT, "why": TEXT}), {"type": "null"}]},
}

BINDING: Mapping[str, Schema] = {
    "name": TEXT,
    "kind": TEXT,
    "service": TEXT,
    "identity": TEXT,
    "connector": TEXT,
    "created_at": MOMENT,
    "revision": INTEGER,
    "base_url": TEXT_OR_NULL,
    "account": TEXT_OR_NULL,
    "scope": {"anyOf": [ref("Scope"), {"type": "null"}]},
    "in_force": {"anyOf": [ref("Scope"), {"type": "null"}]},
    "fits": BOOLEAN,
    "flag": {"anyOf": [made_of({"since": MOMENT, "reason": TEXT}), {"type": "null"}]},
}

CONNECTOR: Mapping[str, Schema] = {
    "name": TEXT,
    "version": TEXT,
    "content_hash": TEXT,
    "base_url": TEXT_OR_NULL,
    "bindable": BOOLEAN,
    "hosts": list_of(TEXT),
    "operations": list_of(
        made_of(
            {
                "name": TEXT,
                "effect": TEXT,
                "idempotent": BOOLEAN,
                "reconcilable": BOOLEAN,
                "precondition": {**list_of(TEXT), "description": "inputs that tie a write to what was shown"},
                "timeout_seconds": NUMBER,
                "description": TEXT,
            }
        )
    ),
    "credential": {"anyOf": [made_of({"kind": TEXT, "header": TEXT}), {"type": "null"}]},
}

TRUST_ITEM: Mapping[str, Schema] = {
    "kind": TRUST_KIND,
    "name": TEXT,
    "state": {"enum": [state.value for state in TrustState]},
    "path": TEXT_OR_NULL,
    "digest": TEXT_OR_NULL,
    "lines": COUNT,
    "bytes": COUNT,
    "text": TEXT_OR_NULL,
    "difference": TEXT,
    "needs": list_of(TEXT),
    "trusted": {
        "anyOf": [made_of({"digest": TEXT, "changed_at": MOMENT, "enabled": BOOLEAN}), {"type": "null"}],
    },
}

CHANGE: Mapping[str, Schema] = {
    "path": {**TEXT, "description": "RFC 6901"},
    "kind": {"enum": ["added", "removed", "changed", "more"]},
    "before": ANY,
    "after": ANY,
}

COMPONENTS: Mapping[str, Schema] = {
    "Change": made_of(CHANGE),
    "Fault": made_of(FAULT),
    "Failure": made_of({"error": made_of(FAULT, {"run_id": TEXT, "audit_id": TEXT})}),
    "Run": made_of(RUN),
    "Approval": made_of(APPROVAL, {"grant": ref("Grant"), "suggested": list_of(ref("Predicate"))}),
    "Grant": made_of(GRANT),
    "Predicate": made_of(PREDICATE),
    "Pause": made_of(PAUSE),
    "LoadError": made_of(LOAD_ERROR),
    "Action": made_of(ACTION),
    "Session": made_of(SESSION, {"gateway": made_of(CALLS), "summary": made_of(SUMMARY)}),
    "Record": made_of(RECORD),
    "Verdict": made_of(VERDICT),
    "Scope": made_of({"hosts": list_of(TEXT), "base_url": TEXT, "header": TEXT, "format": TEXT}),
    "Binding": made_of(BINDING),
    "Connector": made_of(CONNECTOR),
    "TrustItem": made_of(TRUST_ITEM),
    "OperatorSession": made_of(
        {
            "id": TEXT,
            "started_at": MOMENT,
            "used_at": MOMENT,
            "expires_at": MOMENT,
            "ends_at": MOMENT,
            "browser": BOOLEAN,
            "yours": BOOLEAN,
        }
    ),
}


def with_components(schema: Schema) -> dict[str, JSON]:
    """Give a schema what its own references need."""
    return {**schema, "components": {"schemas": dict(COMPONENTS)}}
