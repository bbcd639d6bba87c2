"""The agent's process, on the launcher's own terminal, and the signals that come to the launcher while it runs."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IProcessTransport, IReactorFromThreads, IReactorProcess
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from .plan import LaunchPlan

FORWARDED = (signal.SIGTERM, signal.SIGHUP)
FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""The terminal sends these to the whole foreground group, so the agent has them already."""

Deliver = Callable[[int], object]

_SHELLS_OFFSET = 128


CatchSignals = Callable[[Any, Sequence[int], Deliver], AbstractContextManager[None]]
"""Has some signals do nothing but call C{deliver}, in the reactor that is its first argument, while it lasts."""


@contextmanager
def catch_signals(reactor: IReactorFromThreads, numbers: Sequence[int], deliver: Deliver) -> Iterator[None]:
    """Catch signals of this process, each by a handler: the agent would inherit SIG_IGN. Call in the main thread."""
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, lambda got, _frame: reactor.callFromThread(deliver, got))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


class AgentProcess(ProcessProtocol):
    """One agent, before, while and after it runs.

    :ivar ended: fires with the exit code, 128 + n where signal n ended it.
    :ivar stopped_by: a signal that came before it was started.
    """

    def __init__(self) -> None:
        self.ended: Deferred[int] = Deferred()
        self.stopped_by: int | None = None
        self._running: IProcessTransport | None = None
        self._forwarded: set[int] = set()

    def start(self, reactor: IReactorProcess, plan: LaunchPlan) -> None:
        """Start the agent.

        :raises OSError: the agent could not be started.
        """
        environment = {os.fsencode(name): os.fsencode(value) for name, value in plan.environment.items()}
        inherited = {0: 0, 1: 1, 2: 2, **plan.descriptors}
        self._running = reactor.spawnProcess(self, plan.argv[0], plan.argv, environment, None, childFDs=inherited)

    def signal(self, number: int) -> None:
        """Forward a signal to the agent: each kind once, and none that the terminal sends to the agent itself."""
        if self._running is None:
            self.stopped_by = self.stopped_by or number
        elif number in FORWARDED and number not in self._forwarded:
            self._forwarded.add(number)
            with contextlib.suppress(ProcessExitedAlready):
                self._running.signalProcess(number)

    def processEnded(self, reason: Failure) -> None:
        """Record that the agent has ended."""
        number, code = getattr(reason.value, "signal", None), getattr(reason.value, "exitCode", None)
        self.ended.callback(exit_status(number) if number is not None else code or 0)


def exit_status(number: int) -> int:
    """Return the exit status by which a shell reports that a signal ended a process."""
    return _SHELLS_OFFSET + number
