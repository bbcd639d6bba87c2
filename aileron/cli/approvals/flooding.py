"""A session that asks too much: it is ended, and all that it asks is denied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aileron.client import Operator

_PAGE = 200
_GONE = frozenset(("conflict", "not_found"))


async def deny_all_of(operator: Operator, session_id: str, reason: str | None) -> int:
    """End a session, so that it asks no more; then deny what it has asked and how much that was."""
    await operator.end_session(session_id)
    denied = 0
    while waiting := (await operator.approvals({"session": session_id, "limit": _PAGE}))["items"]:
        told = [await _deny(operator, item, reason) for item in waiting]
        denied += sum(told)
        if not any(told):
            break
    return denied


async def _deny(operator: Operator, item: Mapping[str, Any], reason: str | None) -> bool:
    """Whether it was this that ended it.  Of what changes meanwhile, what it is now is denied."""
    from aileron.client import DaemonFault

    try:
        await operator.decide(item["id"], False, item["digest"], reason=reason)
    except DaemonFault as fault:
        if fault.fault.kind == "approval_stale":
            return await _deny_anew(operator, item["id"], reason)
        if fault.fault.kind in _GONE:
            return False
        raise
    return True


async def _deny_anew(operator: Operator, approval_id: str, reason: str | None) -> bool:
    now = await operator.approval(approval_id)
    await operator.decide(approval_id, False, now["digest"], reason=reason)
    return True
