"""The rules by which the operator is notified: of events of the core, of sessions that request too much, of tests."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.model.features import NoticeRule
from aileron.model.runs import RunState

TAMPER = NoticeRule(
    "tamper_detected",
    "signs of tampering found",
    "signs of tampering found {n} times",
    rank=10,
    reason="found",
    urgent=True,
    immediate=True,
)
BROKEN = NoticeRule(
    "session_broken",
    "{what} is stopped temporarily",
    "{n} sessions or actions are stopped temporarily",
    rank=20,
    reason="why",
    urgent=True,
    immediate=True,
)
FLOOD = NoticeRule(
    "session_floods",
    "a session makes too many requests",
    "{n} sessions make too many requests",
    rank=30,
    urgent=True,
    immediate=True,
)
UNKNOWN = NoticeRule(
    "outcome_unknown",
    "outcome of {action} is unknown",
    "outcome of {n} runs is unknown",
    rank=40,
    while_state=RunState.UNKNOWN,
    urgent=True,
)
LOCKED = NoticeRule(
    "awaiting_vault",
    "{action} is waiting for the vault",
    "{n} runs are waiting for the vault",
    rank=50,
    while_state=RunState.AWAITING_VAULT,
)
STALLED = NoticeRule(
    "awaiting_credential",
    "{action} is waiting for a credential",
    "{n} runs are waiting for a credential",
    rank=60,
    reason="reason",
    while_state=RunState.AWAITING_CREDENTIAL,
)
NEEDS_YOU = NoticeRule(
    "credential_needs_you",
    "a credential must be renewed",
    "{n} credentials must be renewed",
    rank=70,
    reason="reason",
)
APPROVAL = NoticeRule(
    "approval_requested",
    "{action} is waiting for your approval",
    "{n} requests are waiting for your approval",
    rank=80,
    while_state=RunState.PENDING,
)
ASKED_ANEW = NoticeRule(
    "approval_asked_anew",
    "{action} needs your approval again",
    "{n} requests need your approval again",
    rank=90,
    reason="reason",
    # The operator was notified of a request that was not approved yet when it was received.
    only_if="was_approved",
    while_state=RunState.PENDING,
)
PAUSED = NoticeRule("paused", "{whole} is paused", "{n} items are paused", rank=110, reason="reason")
RESUMED = NoticeRule("resumed", "{whole} is resumed", "{n} items are resumed", rank=120, reason="reason")
TEST = NoticeRule("test", "this is a test", "this is a test", rank=130)

CORE_RULES: Mapping[str, NoticeRule] = {
    "tamper.detected": TAMPER,
    "session.broken": BROKEN,
    "execution.unknown": UNKNOWN,
    "run.awaiting_vault": LOCKED,
    "run.awaiting_credential": STALLED,
    "binding.needs_you": NEEDS_YOU,
    "approval.requested": APPROVAL,
    "approval.stale": ASKED_ANEW,
    "pause.begun": PAUSED,
    "pause.ended": RESUMED,
}
"""The rules of the core's events, by type; features add theirs (L{IFeature.notices})."""
