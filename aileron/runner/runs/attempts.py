"""What the record tells of each attempt once it has ended."""

from __future__ import annotations

from aileron.values import JSON, AttemptRow, Outcome, Request, compact, digest_of_bytes, timestamp


def describe_attempt(ended: AttemptRow, outcome: Outcome, built: Request | None) -> dict[str, JSON]:
    """How one attempt went, without what it answered: of that the digest and the size; the run's own row has it.

    :param built: the request, if it could be built only from earlier answers; others are pinned by
        C{execution.started}.
    """
    return {
        "step": ended.step_id,
        "attempt": ended.number,
        "state": ended.state,
        "started_at": timestamp(ended.started_at),
        "ended_at": None if ended.ended_at is None else timestamp(ended.ended_at),
        "sent": outcome.sent,
        "status": outcome.status,
        **({"output": _measured(outcome.output)} if outcome.fault is None else {"failure": outcome.fault.as_json()}),
        **({} if built is None else {"request": built.as_json()}),
    }


def _measured(output: JSON) -> JSON:
    text = compact(output).encode("ascii")
    return {"digest": digest_of_bytes(text), "bytes": len(text)}
