"""Stands behind a session for as long as whoever opened it lives, through restarts of the daemon."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from ._agent import Daemon
from ._faults import DaemonError, DaemonFault

PAUSE_SECONDS = 1.0
_NO_SESSION = 404


@frozen
class Lease:
    """A session's lease: a request that stays open.

    :param daemon: the agent site with the launch key, as they are now, since a daemon that starts makes a new key;
        L{None}: none runs.
    """

    _daemon: Callable[[], Daemon | None]
    _clock: IReactorTime

    async def hold(self, session_id: str) -> None:
        """Hold it until this is cancelled, or the session has ended; what cuts it off has it asked for again."""
        while True:
            daemon = self._daemon()
            try:
                if daemon is not None:
                    await daemon.hold_lease(session_id)
            except DaemonFault as fault:
                if fault.status == _NO_SESSION:
                    return
            except DaemonError:
                """It is asked again."""
            await deferLater(self._clock, PAUSE_SECONDS)
