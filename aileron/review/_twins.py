"""Groups identical requests, and describes the order and state of those of one session ("twins")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from aileron.base.converter import to_json
from aileron.base.json import JSON, compact
from aileron.base.text import visible
from aileron.model.reviews import ReviewedStep
from aileron.model.runs import Approval, Run, RunState

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
    """Return sentences on the other identical requests of the session, or an empty text if there are none.

    The sentences say the position of C{run} among these requests, the state of the first one, and that a denial denies
    all.

    :param twins: the other requests, oldest first.
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


def group_identical(approvals: Sequence[Approval]) -> tuple[tuple[Approval, ...], ...]:
    """Group pending approvals that show the same: equal arguments, steps, bindings, preview and owner, of any session.

    Each group has its approvals in the given order, and the groups are in the order of their first ones. An approval
    without an identical one is a group of its own. Two requests of one session for which the agent sent different
    idempotency keys are never in one group, nor is a request that repeats or undoes a run.
    """
    groups: dict[Hashable, list[list[Approval]]] = {}
    found: list[list[Approval]] = []
    calls = [(each.run.action, compact(each.run.asked_for)) for each in approvals]
    counts = Counter(calls)
    for approval, call in zip(approvals, calls, strict=True):
        known = groups.setdefault((call, _find_question(approval) if counts[call] > 1 else None), [])
        for group in known:
            if not any(_are_apart(each.run, approval.run) for each in group):
                group.append(approval)
                break
        else:
            known.append([approval])
            found.append(known[-1])
    return tuple(map(tuple, found))


def _find_question(approval: Approval) -> Hashable:
    """Return all data of an approval that must be equal in two approvals for them to be shown as identical.

    A request's body and headers are left out. They are computed from these data and from the effect key of the run, and
    the digest of each approval covers them.
    """
    run, review, preview = approval.run, approval.review, approval.review.preview
    if review.unread is not None or run.parent_id is not None or run.undoes is not None:
        return run.id
    read = None if preview is None else (_find_step(preview.read, run), preview.shown.digest(), preview.lacking)
    changes: JSON = [to_json(each) for each in approval.changes]
    return (
        run.owner,
        None if run.asked is None else compact(run.arguments),
        (approval.stale, compact(changes)),
        (review.manifest_digest, review.title, compact([to_json(each) for each in review.arguments])),
        tuple(_find_step(each, run) for each in review.steps),
        read,
    )


def _find_step(step: ReviewedStep, run: Run) -> Hashable:
    """Return the data of a step that are equal in two identical requests: connector, operation, binding and target."""
    request = step.request
    target = None
    if request is not None:
        url = request.url.replace(run.effect_key, "") if run.effect_key else request.url
        names = tuple(name for name, _ in request.headers)
        credential = (request.credential_header, request.credential_query, request.credential_path)
        target = (request.connector, request.operation, request.effect, request.method, url, names, credential)
    return (
        step.id,
        step.connector,
        step.version,
        step.content_hash,
        step.operation,
        step.base_url,
        step.binding,
        target,
    )


def _are_apart(one: Run, other: Run) -> bool:
    """Return whether the agent of a session sent a different idempotency key for each of two runs."""
    keyed = one.has_own_key and other.has_own_key and one.idempotency_key != other.idempotency_key
    return keyed and one.session_id == other.session_id
