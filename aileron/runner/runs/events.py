"""Writes events: a fresh id, the moment, and what the run says of itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from aileron.values import DAEMON, JSON, Actor, Event, Fault, Run, utc


@frozen
class EventFactory:
    """What every record of the runner is written with.

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
