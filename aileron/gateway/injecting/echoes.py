"""Puts on record that a provider sent the key back that was put in, and flags its binding."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.interfaces import IBindingFlags
from aileron.values import Actor, BindingFlag, Event, utc

from .injection import Echo

_log = Logger()


@frozen
class Echoes:
    """Keeps what it is told of, and does not make its teller wait.  What is under way the store's close drains.

    :ivar ids: fresh ULIDs.
    """

    _flags: IBindingFlags
    _clock: IReactorTime
    _ids: Callable[[], str]

    def tell(self, echo: Echo) -> None:
        """Keep it, as soon as may be; where that fails, the log says so."""
        Deferred.fromCoroutine(self._keep(echo)).addErrback(_note_lost)

    async def _keep(self, echo: Echo) -> None:
        now, name, fqn = utc(self._clock.seconds()), echo.binding.name, echo.provider.fqn
        event = Event(
            self._ids(),
            "secret.echoed",
            now,
            Actor("agent", echo.session.id),
            {"binding": name, "forms": [echo.kind]},
            session_id=echo.session.id,
            connector=fqn,
        )
        reason = f"An answer of {fqn} held this credential."
        await self._flags.put(BindingFlag(name, echo.binding.revision, now, reason), (event,))


def _note_lost(failure: Failure) -> None:
    _log.failure("recording that a provider sent its key back", failure)
