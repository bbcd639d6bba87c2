"""What was decided of a request, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from twisted.web.template import Tag, tags

from aileron.values import JSON, Approval, RunState, StepRow, visible
from aileron.web._texts import moment, shown

from .boxes import box
from .reading import reading

BEGUN = frozenset((RunState.EXECUTING, RunState.FAILED, RunState.UNKNOWN))
"""Of which it matters what steps were done."""

_Words: TypeAlias = "Tag | str | list[Tag | str]"


def outcome(approval: Approval, history: Sequence[StepRow]) -> Iterator[tuple[str, _Words]]:
    """What there is to say of a request that waits no longer, each under its name.

    :param history: the steps that ended.
    """
    run = approval.run
    if run.state is RunState.PENDING:
        return
    if approval.decided_at is not None:
        word = "approved at " if approval.approved else "denied at "
        yield "Decision", [word, moment(approval.decided_at), f" by {visible(approval.decided_by or 'unknown')}"]
    yield from _said("Reason", run.reason or approval.reason)
    yield from _said("Result", run.result)
    if run.fault is not None:
        yield "Failure", shown(run.fault.message)
    if run.state in BEGUN:
        done = [visible(step.step_id) for step in history if step.state == "succeeded"]
        yield "Steps that were done", ", ".join(done) or "none"
    if run.state is RunState.UNKNOWN:
        page = tags.a("its page", href=f"/runs/{visible(run.id)}")
        command = f", or by: aileron runs settle {visible(run.id)}"
        yield "What to do", ["See whether it happened, then tell it on ", page, command]
    if run.audit_id:
        yield "On record as", tags.a(visible(run.audit_id), href=f"/audit/{visible(run.audit_id)}")


def _said(name: str, value: JSON) -> Iterator[tuple[str, _Words]]:
    if value is not None:
        yield name, box(reading(value), f"outcome-{name.lower()}")
