"""Finds identical requests of one session, and describes their order and state."""

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
    """Return the state of an earlier request, as the end of a sentence."""
    return _STANDINGS.get(run.state, "is approved and not finished")


def describe_twins(run: Run, twins: Sequence[Run]) -> str:
    """Return the position of C{run} among identical requests of its session, or an empty text if there are no others.

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
    """Return whether two pending runs are identical requests of one session, which a list shows as one row.

    They are not if their agent sent different idempotency keys.
    """
    same = (one.session_id, one.action, compact(one.asked_for)) == (
        other.session_id,
        other.action,
        compact(other.asked_for),
    )
    apart = one.idempotency_key != other.idempotency_key and one.has_own_key and other.has_own_key
    return same and one.session_id is not None and one.asked == other.asked and not apart
