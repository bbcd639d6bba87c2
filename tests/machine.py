"""A machine on which time and processes pass by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from twisted.internet.error import ProcessDone, ProcessExitedAlready, ProcessTerminated
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure


class Machine(Clock):
    """One process at a time.

    :ivar spawned: for each process its executable, arguments, environment and descriptors.
    :ivar signalled: what was sent to the process.
    :ivar broken: why the next one cannot be started.
    """

    def __init__(self) -> None:
        super().__init__()
        self.spawned: list[tuple[str, Sequence[Any], Mapping[Any, Any], Any]] = []
        self.signalled: list[int | str] = []
        self.broken: OSError | None = None
        self._protocol: ProcessProtocol | None = None

    def spawnProcess(
        self,
        processProtocol: ProcessProtocol,
        executable: str,
        args: Sequence[Any],
        env: Mapping[Any, Any],
        path: object = None,
        *,
        childFDs: object = None,
    ) -> Machine:
        """Note it."""
        if self.broken is not None:
            raise self.broken
        self._protocol = processProtocol
        processProtocol.transport = cast("Any", self)
        self.spawned.append((executable, args, env, childFDs))
        return self

    def signalProcess(self, number: int | str) -> None:
        """Note it, if the process is there."""
        if self._protocol is None:
            raise ProcessExitedAlready
        self.signalled.append(number)

    def exit(self, code: int | None = None, signal: int | None = None) -> None:
        """End the process."""
        protocol, self._protocol = self._protocol, None
        reason = ProcessDone(0) if code == 0 else ProcessTerminated(code, signal, None)
        cast("ProcessProtocol", protocol).processEnded(Failure(reason))
