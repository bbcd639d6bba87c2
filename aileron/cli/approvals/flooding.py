"""A session that asks too much: it is ended, and all that it asks is denied."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aileron.client import Operator


async def deny_all_of(operator: Operator, session_id: str, reason: str | None) -> int:
    """End a session, so that it asks no more; deny what it has asked, and tell how much that was."""
    return len((await operator.deny_session(session_id, reason))["denied"])
