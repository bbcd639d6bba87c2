"""The agent's process, which shares the launcher's terminal, and the signals that the launcher forwards to it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IProcessTransport, IReactorFromThreads, IReactorProcess
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from .plan import LaunchPlan

FORWARDED = (signal.SIGTERM, signal.SIGHUP)
FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""Signals that the terminal sends to the whole foreground group, so that the agent gets them without forwarding."""

Deliver = Callable[[int], object]

_SHELLS_OFFSET = 128


CatchSignals = Callable[[Any, Sequence[int], Deliver], AbstractContextManager[None]]
"""A context manager that makes signals call C{deliver} in the reactor given as first argument, and nothing else."""


@contextmanager
def catch_signals(reactor: IReactorFromThreads, numbers: Sequence[int], deliver: Deliver) -> Iterator[None]:
    """Call C{deliver} in the reactor's thread for each of these signals, until the context ends.

    Enter the context in the main thread. The signals cannot simply be ignored, because the agent would inherit that.
    """
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, lambda got, _frame: reactor.callFromThread(deliver, got))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


class AgentProcess(ProcessProtocol):
    """The process of one agent.

    :ivar ended: fires with the exit code, or 128 + n if signal n ended the agent.
    :ivar stopped_by: the first signal that arrived before the agent was started, or None.
    """

    def __init__(self) -> None:
        self.ended: Deferred[int] = Deferred()
        self.stopped_by: int | None = None
        self._running: IProcessTransport | None = None
        self._forwarded: set[int] = set()

    def start(self, reactor: IReactorProcess, plan: LaunchPlan) -> None:
        """Start the agent.

        :raises OSError: if the agent cannot be started.
        """
        environment = {os.fsencode(name): os.fsencode(value) for name, value in plan.environment.items()}
        inherited = {0: 0, 1: 1, 2: 2, **plan.descriptors}
        self._running = reactor.spawnProcess(self, plan.argv[0], plan.argv, environment, None, childFDs=inherited)

    def signal(self, number: int) -> None:
        """Forward a signal to the agent, each kind once, except signals that the terminal sends to the agent anyway.

        Before the agent is started, record the signal in C{stopped_by} instead.
        """
        if self._running is None:
            self.stopped_by = self.stopped_by or number
        elif number in FORWARDED and number not in self._forwarded:
            self._forwarded.add(number)
            with contextlib.suppress(ProcessExitedAlready):
                self._running.signalProcess(number)

    def processEnded(self, reason: Failure) -> None:
        """Fire C{ended} with the agent's exit code."""
        number, code = getattr(reason.value, "signal", None), getattr(reason.value, "exitCode", None)
        self.ended.callback(exit_status(number) if number is not None else code or 0)


class Foreground:
    """The foreground of a launch: an agent that runs, or the wait for an outcome with which it is resumed."""

    def __init__(self) -> None:
        self._child = AgentProcess()
        self._is_used = False
        self._waiting: Deferred[None] | None = None

    def begin(self) -> AgentProcess:
        """Return a new object for the process of the agent that is started next. Signals are forwarded to it."""
        if self._is_used:
            self._child = AgentProcess()
        self._is_used = True
        return self._child

    def signal(self, number: int) -> None:
        """Forward a signal to the agent, or end the wait for an outcome if no agent runs."""
        if self._waiting is not None and self._child.ended.called:
            self._waiting.cancel()
        else:
            self._child.signal(number)

    async def until_signal(self, waiting: Deferred[None]) -> None:
        """Wait for C{waiting}, in which agents may run, or for a signal while none runs."""
        self._waiting = waiting
        try:
            await waiting
        except CancelledError:
            return
        finally:
            self._waiting = None


def exit_status(number: int) -> int:
    """Return the exit status with which a shell reports a process ended by a signal: 128 + number."""
    return _SHELLS_OFFSET + number
