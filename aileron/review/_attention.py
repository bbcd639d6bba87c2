"""Sorts requests into those to look at closely and those of routine."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from aileron.model.reviews import PreviewStatus
from aileron.model.runs import Approval

from ._warnings import ReviewWarning, WarningSeverity

_DESTROYS = frozenset(("destructive", "irreversible"))


class InboxGroup(StrEnum):
    """The group of a request in lists."""

    LOOK_CLOSELY = "look_closely"
    ROUTINE = "routine"


def attention(approval: Approval, warnings: Sequence[ReviewWarning]) -> InboxGroup:
    """Return whether a pending request is one to look at closely.

    It is if a warning is high or medium, if it may change or remove existing things, if something has changed since it
    was requested, or if its preview is missing.
    """
    heavy = any(each.severity is not WarningSeverity.LOW or each.id in _DESTROYS for each in warnings)
    closely = heavy or bool(approval.stale) or _lacks_preview(approval) or approval.review.unread is not None
    return InboxGroup.LOOK_CLOSELY if closely else InboxGroup.ROUTINE


def _lacks_preview(approval: Approval) -> bool:
    preview = approval.review.preview
    return preview is not None and (preview.shown.status is not PreviewStatus.SHOWN or preview.lacking is not None)
