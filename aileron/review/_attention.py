"""Sorts pending requests into two groups for the inbox: those to review closely, and routine ones."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from aileron.model.reviews import PreviewStatus
from aileron.model.runs import Approval

from ._warnings import ReviewWarning, WarningSeverity

_DESTROYS = frozenset(("destructive", "irreversible"))


class InboxGroup(StrEnum):
    """The group of a request in the inbox: to review closely, or routine."""

    LOOK_CLOSELY = "look_closely"
    ROUTINE = "routine"


def attention(approval: Approval, warnings: Sequence[ReviewWarning]) -> InboxGroup:
    """Return the group of a pending request in lists.

    A request must be reviewed closely if it has a high or medium warning, may change or remove existing things, has
    changed since it was requested, or lacks its preview. All others are routine.
    """
    heavy = any(each.severity is not WarningSeverity.LOW or each.id in _DESTROYS for each in warnings)
    closely = heavy or bool(approval.stale) or _lacks_preview(approval) or approval.review.unread is not None
    return InboxGroup.LOOK_CLOSELY if closely else InboxGroup.ROUTINE


def _lacks_preview(approval: Approval) -> bool:
    preview = approval.review.preview
    return preview is not None and (preview.shown.status is not PreviewStatus.SHOWN or preview.lacking is not None)
