"""Values as JSON: the shapes of L{aileron.api.shapes.schemas}."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from aileron.values import (
    JSON,
    Approval,
    Binding,
    Change,
    ConnectorDescription,
    Event,
    LoadError,
    Offer,
    OperatorSession,
    Page,
    Pause,
    PreviewRule,
    Process,
    Record,
    Run,
    RunState,
    Session,
    StandingGrant,
    Trusted,
    TrustItem,
    edits,
    set_apart,
    timestamp,
)

T = TypeVar("T")

_FAILURE = ("boundary", "message", "retriable", "details")

QUIET_AFTER = timedelta(minutes=10)

_STATUS = {RunState.RECEIVED: "running", RunState.APPROVED: "running", RunState.EXECUTING: "running"}


def status_of(run: Run) -> str:
    """Where the run stands, in the words for agents."""
    return _STATUS.get(run.state, run.state.value)


def page(found: Page[T], shape: Callable[[T], JSON]) -> dict[str, JSON]:
    """One page of a list."""
    return {"items": [shape(item) for item in found.items], "cursor": found.cursor}


def moment(at: datetime | None) -> str | None:
    """A moment that may not have come."""
    return None if at is None else timestamp(at)


def changes_json(changes: Iterable[Change]) -> list[JSON]:
    """C{Change}s."""
    return [change.as_json() for change in changes]


def listed_run_json(run: Run) -> dict[str, JSON]:
    """C{Run} in a list: of what is attached to its result a few words."""
    return {**run_json(run), "result": set_apart(run.result)[0]}


def run_json(run: Run) -> dict[str, JSON]:
    """C{Run}."""
    return {
        "id": run.id,
        "action": run.action,
        "action_version": run.action_version,
        "manifest_digest": run.manifest_digest,
        "arguments": run.arguments,
        "asked": run.asked,
        "edited": changes_json(edits(run)),
        "state": run.state.value,
        "status": status_of(run),
        "gated": run.gated,
        "received_at": timestamp(run.received_at),
        "changed_at": timestamp(run.changed_at),
        "session_id": run.session_id,
        "idempotency_key": run.idempotency_key,
        "result": run.result,
        "failure": None if run.fault is None else run.fault.as_json(),
        "reason": run.reason,
        "audit_id": run.audit_id,
        "parent_id": run.parent_id,
        "start_after": moment(run.start_after),
    }


def pause_json(pause: Pause) -> dict[str, JSON]:
    """C{Pause}."""
    return pause.as_json()


def approval_json(approval: Approval, review_url: Callable[[str], str]) -> dict[str, JSON]:
    """C{Approval}."""
    run = approval.run
    return {
        "id": run.id,
        "approval_id": run.id,
        "run": run_json(run),
        "digest": approval.digest,
        "review": approval.review,
        "review_url": review_url(run.id),
        "requested_at": timestamp(approval.requested_at),
        "expires_at": moment(approval.expires_at),
        "stale": approval.stale,
        "changes": changes_json(approval.changes),
        "approved": approval.approved,
        "decided_at": moment(approval.decided_at),
        "decided_by": approval.decided_by,
        "reason": approval.reason,
        "grant_id": approval.grant_id,
        "not_before": moment(approval.not_before),
    }


def grant_json(standing: StandingGrant) -> dict[str, JSON]:
    """C{Grant}."""
    grant = standing.grant
    return {
        "id": grant.id,
        "action": grant.action,
        "state": standing.state.value,
        "suspended": standing.suspended,
        "predicates": [each.as_json() for each in grant.predicates],
        "exact": grant.exact,
        "uses": grant.uses,
        "left": grant.left,
        "not_after": timestamp(grant.not_after),
        "session_id": grant.session_id,
        "run_id": grant.run_id,
        "made_at": timestamp(grant.made_at),
        "made_by": grant.made_by,
        "used_at": moment(grant.used_at),
        "revoked_at": moment(grant.revoked_at),
        "bound": dict(grant.bound),
    }


def action_json(offer: Offer) -> dict[str, JSON]:
    """C{Action}."""
    action = offer.action
    return {
        "name": action.name,
        "version": action.version,
        "tool_name": action.tool_name,
        "source": action.source,
        "intent": action.intent,
        "description": action.body,
        "input_schema": action.input_schema,
        "asks": [one.name for one in action.inputs if one.ask],
        "enabled": offer.enabled,
        "gated": action.approval.required,
        "read_only": offer.read_only,
        "idempotent": offer.idempotent,
        "destructive": offer.destructive,
        "open_world": offer.open_world,
        "output_schema": offer.output_schema,
        "timeout_seconds": action.timeout_seconds,
        "digest": action.digest,
        "preview": _preview_json(action.approval.preview),
        "undo_seconds": action.approval.undo_seconds,
        "cool_down_seconds": action.approval.cool_down_seconds,
        "on_cancel": "withdraw" if action.approval.withdrawn_on_cancel else "keep",
        "limits": [
            {"most": cap.most, "seconds": cap.seconds, "argument": cap.argument, "per_session": cap.per_session}
            for cap in action.caps
        ],
        "connectors": [
            {"name": pin.name, "version": pin.version, "capabilities": list(pin.capabilities)}
            for pin in action.requires
        ],
    }


def _preview_json(rule: PreviewRule | None) -> JSON:
    if rule is None:
        return None
    return {"connector": rule.connector, "operation": rule.operation, "shows": [label for label, _ in rule.render]}


def load_error_json(error: LoadError) -> dict[str, JSON]:
    """C{LoadError}."""
    return {
        "kind": error.kind,
        "message": error.message,
        "file": error.file,
        "line": error.line,
        "boundary": error.boundary,
    }


def peer_json(peer: Process | None) -> JSON:
    """The process that was seen to open a session."""
    return None if peer is None else peer.as_json()


def session_json(session: Session, now: datetime) -> dict[str, JSON]:
    """C{Session}; C{quiet} says no more than that nothing was heard of it for ten minutes."""
    quiet = now - session.seen_at > QUIET_AFTER
    ended = "ended" if session.ending is None else session.ending.value
    return {
        "id": session.id,
        "agent": session.agent,
        "working_dir": session.working_dir,
        "started_at": timestamp(session.started_at),
        "seen_at": timestamp(session.seen_at),
        "ended_at": moment(session.ended_at),
        "exit_code": session.exit_code,
        "peer": peer_json(session.peer),
        "state": ended if not session.live else "quiet" if quiet else "running",
        "leased": session.leased,
        "ends_at": moment(session.ends_at),
    }


def record_json(record: Record) -> dict[str, JSON]:
    """C{Record}."""
    event = record.event
    return {
        "audit_id": event.id,
        "sequence": record.sequence,
        "type": event.type,
        "at": timestamp(event.at),
        "actor": {"type": event.actor.type, "id": event.actor.id},
        "payload": event.payload,
        "run_id": event.run_id,
        "session_id": event.session_id,
        "action": event.action,
        "connector": event.connector,
        "class": event.failure_class,
        "previous_hash": record.previous_hash,
        "hash": record.hash,
        "payload_digest": record.payload_digest,
        "salt": record.salt,
        "pruned": record.pruned,
        "attributes": _attributes(event),
    }


def _attributes(event: Event) -> dict[str, JSON]:
    """What the event says, by the names that other tools of this kind use; nothing that it does not say."""
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


def binding_json(binding: Binding) -> dict[str, JSON]:
    """C{Binding}."""
    return {
        **binding.as_json(),
        "service": binding.service,
        "identity": binding.identity,
        "created_at": timestamp(binding.created_at),
    }


def connector_json(connector: ConnectorDescription) -> dict[str, JSON]:
    """C{Connector}."""
    need = connector.credential
    return {
        "name": connector.fqn,
        "version": connector.version,
        "content_hash": connector.content_hash,
        "base_url": connector.base_url,
        "bindable": connector.bindable,
        "hosts": list(connector.hosts),
        "operations": [
            {
                "name": each.name,
                "effect": each.effect,
                "idempotent": each.idempotent,
                "reconcilable": each.reconcilable,
                "precondition": list(each.precondition),
                "timeout_seconds": each.timeout_seconds,
                "description": each.description,
            }
            for each in connector.operations.values()
        ],
        "credential": None if need is None else {"kind": need.kind, "header": need.header},
    }


def operator_json(session: OperatorSession, caller: OperatorSession | None = None) -> dict[str, JSON]:
    """C{OperatorSession}; C{yours} is the caller's."""
    return {
        "id": session.id,
        "started_at": timestamp(session.started_at),
        "used_at": timestamp(session.used_at),
        "expires_at": timestamp(session.expires_at),
        "ends_at": timestamp(session.ends_at),
        "browser": session.browser,
        "yours": caller is not None and session.id == caller.id,
    }


def trust_item_json(item: TrustItem) -> dict[str, JSON]:
    """C{TrustItem}; C{text} and C{path} are null where the file no longer exists."""
    lying = item.candidate
    text = "" if lying is None else lying.text
    return {
        "kind": item.kind.value,
        "name": item.name,
        "state": item.state.value,
        "path": None if lying is None else lying.path,
        "digest": None if lying is None else lying.digest,
        "lines": text.count("\n") + (text[-1:] not in {"", "\n"}),
        "bytes": len(text.encode("utf-8", "surrogatepass")),
        "text": None if lying is None else text,
        "difference": item.difference,
        "needs": [] if lying is None else list(lying.needs),
        "trusted": None if item.trusted is None else _trusted_json(item.trusted),
    }


def _trusted_json(word: Trusted) -> dict[str, JSON]:
    return {"digest": word.digest, "changed_at": timestamp(word.changed_at), "enabled": word.enabled}
