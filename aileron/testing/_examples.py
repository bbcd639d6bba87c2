"""Valid examples of runs, events and sessions."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count
from typing import Any

from attrs import evolve

from aileron.base.json import JSON, utc
from aileron.model.audit import DAEMON, Actor, Event
from aileron.model.reviews import Review, ReviewedArgument
from aileron.model.runs import Approval, Ask, Decision, Run, RunState, Transition
from aileron.model.sessions import Session

NOON = utc(1_700_000_000.25)
_numbers = count(1)


def example_run(run_id: str = "run-1", **changes: Any) -> Run:
    """Return a gated run that was just received."""
    run = Run(
        id=run_id,
        action="ship-update",
        action_version="1.0.0",
        manifest_digest="sha256:" + "a" * 64,
        arguments={"channel": "#engineering", "count": 3},
        state=RunState.RECEIVED,
        gated=True,
        effect_key=f"effect-{run_id}",
        received_at=NOON,
        changed_at=NOON,
        session_id="session-1",
    )
    return evolve(run, **changes)


def example_event(
    type_: str = "run.approved", run_id: str | None = None, payload: dict[str, JSON] | None = None, **more: Any
) -> Event:
    """Return an event with a unique id."""
    fields = {"at": NOON, "actor": DAEMON, **more}
    return Event(id=f"event-{next(_numbers):06}", type=type_, run_id=run_id, payload=payload or {}, **fields)


def example_transition(run: Run, end: RunState, type_: str = "test.moved", **more: Any) -> Transition:
    """Return a transition of C{run} from its state to C{end}, a second later, with one event.

    :param more: fields of L{Transition}, which replace the example's.
    """
    fields = {"at": run.changed_at + timedelta(seconds=1), "events": (example_event(type_, run.id),), **more}
    return Transition(run_id=run.id, start=run.state, end=end, **fields)


def example_ask(digest: str = "sha256:" + "d" * 64, **more: Any) -> Ask:
    """Return a request for approval.

    :param more: fields of L{Ask}, which replace the example's.
    """
    review = Review(arguments=(ReviewedArgument("channel", "channel", "#engineering"),))
    return Ask(**{"digest": digest, "review": review, "requested_at": NOON, **more})


def example_decision(approved: bool = True, approval: Approval | None = None, reason: str | None = None) -> Decision:
    """Return a decision on C{approval}, or on the example's request."""
    digest = example_ask().digest if approval is None else approval.digest
    return Decision(approved, digest, "operator-1", reason)


def example_session(session_id: str = "session-1", at: datetime = NOON) -> Session:
    """Return a new session."""
    return Session(session_id, "claude", "/home/user/project", at, at)


AGENT = Actor("agent", "session-1")
