"""Builds changes of a run's state, of which one table says which are legal, and the events that record them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from aileron.values import DAEMON, JSON, Actor, Approval, Event, Fault, Run, RunState, Transition, utc

_R = RunState

Verify = Callable[[Run, Approval | None], None]
"""A check inside the transaction that changes a run: it raises where the change must not be."""

LEGAL: frozenset[tuple[RunState, RunState]] = frozenset(
    {
        (_R.RECEIVED, _R.APPROVED),  # ungated
        (_R.RECEIVED, _R.PENDING),
        (_R.PENDING, _R.PENDING),  # stale: asked anew
        (_R.PENDING, _R.APPROVED),
        (_R.PENDING, _R.DENIED),
        (_R.PENDING, _R.CANCELLED),
        (_R.PENDING, _R.EXPIRED),
        (_R.APPROVED, _R.PENDING),  # stale, too old or no decision: asked anew
        (_R.APPROVED, _R.AWAITING_VAULT),
        (_R.APPROVED, _R.CANCELLED),
        (_R.APPROVED, _R.EXECUTING),
        (_R.AWAITING_VAULT, _R.APPROVED),
        (_R.AWAITING_VAULT, _R.CANCELLED),
        (_R.AWAITING_VAULT, _R.PENDING),  # the record or the vault was put back: asked anew
        (_R.EXECUTING, _R.COMPLETED),
        (_R.EXECUTING, _R.FAILED),
        (_R.EXECUTING, _R.UNKNOWN),
        (_R.UNKNOWN, _R.COMPLETED),
        (_R.UNKNOWN, _R.FAILED),
        (_R.UNKNOWN, _R.UNKNOWN),  # something was found out, and not all
    }
)
"""Whatever is not here never happens."""


def transition(run: Run, end: RunState, at: datetime, *events: Event, **changes: Any) -> Transition:
    """Build a change of C{run} to C{end}, recorded by C{events}; the last is the C{audit_id} of an end that it reaches.

    The reason that somebody gave stays until another is given or it is asked anew.

    :param changes: further fields of L{Transition}.
    :raises ValueError: the table does not know this step.
    """
    if (run.state, end) not in LEGAL:
        raise ValueError(f"a run never goes from {run.state.value} to {end.value}")
    if end.settled and end is not run.state:
        changes["audit_id"] = events[-1].id
    changes.setdefault("audit_id", run.audit_id if end is run.state else None)
    changes.setdefault("reason", None if "ask" in changes else run.reason)
    return Transition(run_id=run.id, start=run.state, end=end, at=at, events=events, **changes)


@frozen
class EventFactory:
    """Makes the events that the runner puts on record.

    :param ids: a fresh ULID at each call.
    """

    _clock: IReactorTime
    _ids: Callable[[], str]

    def now(self) -> datetime:
        """This moment."""
        return utc(self._clock.seconds())

    def fresh_id(self) -> str:
        """A ULID."""
        return self._ids()

    def of_run(
        self,
        type_: str,
        run: Run,
        actor: Actor = DAEMON,
        fault: Fault | None = None,
        connector: str | None = None,
        **payload: JSON,
    ) -> Event:
        """An event of C{run}.  C{payload} holds no secret; a C{fault} is recorded whole."""
        if fault is not None:
            payload["failure"] = fault.as_json()
        return Event(
            id=self._ids(),
            type=type_,
            at=self.now(),
            actor=actor,
            payload={"effect_key": run.effect_key, **payload},
            run_id=run.id,
            session_id=run.session_id,
            action=run.action,
            connector=connector,
            failure_class=None if fault is None else fault.kind,
        )

    def of_home(self, type_: str, actor: Actor = DAEMON, **payload: JSON) -> Event:
        """An event that concerns no run.  C{payload} holds no secret."""
        return Event(id=self._ids(), type=type_, at=self.now(), actor=actor, payload=payload)

    def of_action(self, type_: str, action: str, actor: Actor) -> Event:
        """An event that concerns an action but no run."""
        return Event(id=self._ids(), type=type_, at=self.now(), actor=actor, action=action)
