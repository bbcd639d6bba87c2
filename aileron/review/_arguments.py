"""Lists the arguments of a request for display."""

from __future__ import annotations

from attrs import evolve

from aileron.model.reviews import ReviewedArgument
from aileron.model.runs import Approval


def list_arguments(approval: Approval) -> tuple[ReviewedArgument, ...]:
    """Return every argument of the run with its label from the review, then those that the review does not have."""
    given = dict(approval.run.arguments)
    shown = [evolve(each, value=given.pop(each.name, each.value)) for each in approval.review.arguments]
    return (*shown, *(ReviewedArgument(name, name, value) for name, value in given.items()))
