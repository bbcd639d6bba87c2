"""The names of audit event types in words, grouped by kind."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.features import FeatureSet
from aileron.model.audit import EventName
from aileron.model.runs import RunState

KINDS: Mapping[str, str] = {
    "runs": "Runs",
    "approvals": "Approvals and grants",
    "sessions": "Sessions",
    "setup": "Files, credentials and limits",
    "logins": "Vault and logins",
}
"""The kinds of events, each with its name."""

PERSON = "human"
"""The type of actor that is the operator."""

OUTCOMES: Mapping[str, RunState] = {
    "execution.succeeded": RunState.COMPLETED,
    "execution.failed": RunState.FAILED,
    "execution.unknown": RunState.UNKNOWN,
    "approval.denied": RunState.DENIED,
}
"""The event types that end a run, each with the resulting state."""


def _named(kind: str, words: Mapping[str, str]) -> dict[str, EventName]:
    return {name: EventName(said, kind, _COLOURS.get(name, "quiet")) for name, said in words.items()}


def event_names(features: FeatureSet) -> Mapping[str, EventName]:
    """Return the names of every event type that the core and the given features record."""
    return {**EVENTS, **features.event_types()}


_COLOURS = {
    **dict.fromkeys(("execution.succeeded", "approval.approved", "grant.used"), "good"),
    **dict.fromkeys(
        ("execution.failed", "execution.unknown", "tamper.detected", "secret.echoed", "api.refused", "approval.forced"),
        "bad",
    ),
    **dict.fromkeys(("approval.requested", "approval.stale", "run.awaiting_vault", "session.broken"), "waits"),
    **dict.fromkeys(("run.awaiting_credential", "run.scheduled", "binding.needs_you"), "waits"),
}
EVENTS: Mapping[str, EventName] = {
    **_named(
        "runs",
        {
            "run.approved": "Cleared to start",
            "run.awaiting_vault": "Waiting for the vault",
            "run.awaiting_credential": "Waiting for a credential",
            "run.scheduled": "Put off: rate limit of the service",
            "run.resumed": "Waiting is over",
            "run.cancelled": "Cancelled",
            "run.settled": "Outcome recorded",
            "run.run_again": "Run again requested",
            "run.superseded": "Run again approved",
            "execution.started": "Started",
            "execution.attempt": "Retried",
            "execution.succeeded": "Completed",
            "execution.failed": "Failed",
            "execution.unknown": "Outcome unknown",
            "execution.late_answer": "Late response",
            "execution.reconciled": "Outcome looked up",
            "secret.echoed": "Secret removed from a response",
        },
    ),
    **_named(
        "approvals",
        {
            "approval.requested": "Approval requested",
            "approval.previewed": "Preview fetched",
            "approval.shown": "Opened in the browser",
            "approval.forced": "Approved alone",
            "approval.modified": "Arguments edited",
            "approval.voted": "Approved, others missing",
            "approval.approved": "Approved",
            "approval.denied": "Denied",
            "approval.forgiven": "Denial lifted",
            "approval.snoozed": "Snoozed",
            "approval.expired": "Expired",
            "approval.stale": "Changed while pending",
            "grant.issued": "Grant created",
            "grant.used": "Allowed by a grant",
            "grant.revoked": "Grant revoked",
            "grant.suspended": "Grant suspended",
        },
    ),
    **_named(
        "sessions",
        {
            "session.started": "Session started",
            "session.ended": "Session ended",
            "session.broken": "Stopped for a while",
        },
    ),
    **_named(
        "setup",
        {
            "trust.given": "Trusted",
            "trust.taken": "Trust revoked",
            "action.enabled": "Action enabled",
            "action.disabled": "Action disabled",
            "binding.created": "Credential added",
            "binding.rebound": "Credential updated",
            "binding.replaced": "Credential replaced",
            "binding.needs_you": "Credential must be renewed",
            "binding.revoked": "Credential revoked",
            "api.refused": "MCP server refused: no call was running",
            "pause.begun": "Paused",
            "pause.ended": "Resumed",
            "cap.set": "Limit set",
            "cap.removed": "Limit removed",
        },
    ),
    **_named(
        "logins",
        {
            "vault.unlocked": "Vault unlocked",
            "vault.locked": "Vault locked",
            "vault.replaced": "Vault replaced",
            "tamper.detected": "Sign of tampering",
            "audit.pruned": "Old contents deleted",
            "operator.login": "Logged in",
            "operator.login_raised": "Browser may decide again",
            "operator.login_lapsed": "Browser may only watch",
            "operator.login_refused": "Login refused",
            "operator.logout": "Logged out",
            "operator.passkey_proposed": "Passkey proposed",
            "operator.passkey_added": "Passkey added",
            "operator.passkey_required": "Passkey rule changed",
            "operator.passkey_removed": "Passkey removed",
            "operator.passkey_reset": "Passkeys reset",
            "operator.handover_opened": "Browser login started",
            "operator.handover_refused": "Browser login refused",
        },
    ),
}
"""The event types that the core records."""
