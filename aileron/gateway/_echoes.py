"""Puts on record that a provider sent the key back that was put in, and flags its binding."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.interfaces import IBindingFlags
from aileron.values import Actor, BindingFlag, Event, utc

from ._injection import Echo

_log = Logger()


@define(eq=False)
class Echoes:
    """Keeps what it is told of, and does not make its teller wait.

    :ivar ids: fresh ULIDs.
    """

    _flags: IBindingFlags
    _clock: IReactorTime
    _ids: Callable[[], str]
    _under_way: set[Deferred[None]] = field(factory=set, init=False)

    def tell(self, echo: Echo) -> None:
        """Keep it, as soon as may be; where that fails, the log says so."""
        kept: Deferred[None] = Deferred.fromCoroutine(self._keep(echo))
        self._under_way.add(kept)
        kept.addErrback(_note_lost)
        kept.addBoth(lambda _: self._under_way.discard(kept))

    async def settled(self) -> None:
        """Return when all that was told of is kept."""
        await DeferredList(list(self._under_way))

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
