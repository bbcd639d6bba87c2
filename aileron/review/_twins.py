"""Finds requests of one session that are identical, and says how they stand to each other."""

from __future__ import annotations

from collections.abc import Sequence

from aileron.base.json import compact
from aileron.base.text import visible
from aileron.model.runs import Run, RunState

_STANDINGS = {
    RunState.PENDING: "is waiting for your approval",
    RunState.COMPLETED: "is completed",
    RunState.UNKNOWN: "has an unknown outcome",
}
_ORDINALS = ("Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth")
_DENY_ALL = "If you deny it, the identical pending requests are denied as well."


def describe_standing(run: Run) -> str:
    """Say what became of an earlier request, as the end of a sentence."""
    return _STANDINGS.get(run.state, "is approved and not finished")


def describe_twins(run: Run, twins: Sequence[Run]) -> str:
    """Say which of several identical requests of its session C{run} is; empty if there is no other.

    :param twins: the others, oldest first.
    """
    if not twins:
        return ""
    before = [each for each in twins if (each.received_at, each.id) < (run.received_at, run.id)]
    denial = f" {_DENY_ALL}" if any(each.state is RunState.PENDING for each in twins) else ""
    if not before:
        later = f"Identical requests of this session that came later: {len(twins)}."
        return f"{later} Approving runs this one only.{denial}"
    ordinal = _ORDINALS[len(before) - 1] if len(before) <= len(_ORDINALS) else f"{len(before) + 1}th"
    first = before[0]
    standing = f"The first {describe_standing(first)} (run {visible(first.id)})."
    return f"{ordinal} identical request of this session. {standing}{denial}"


def is_twin(one: Run, other: Run) -> bool:
    """Tell whether two pending runs are the same request of one session, which a list shows as one row.

    They are not if their agent gave them different idempotency keys.
    """
    same = (one.session_id, one.action, compact(one.asked_for)) == (
        other.session_id,
        other.action,
        compact(other.asked_for),
    )
    apart = one.idempotency_key != other.idempotency_key and one.has_own_key and other.has_own_key
    return same and one.session_id is not None and one.asked == other.asked and not apart
