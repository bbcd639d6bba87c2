"""Signals that come to the launcher while an agent runs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from attrs import frozen
from twisted.internet.interfaces import IReactorFromThreads

FORWARDED = (signal.SIGTERM, signal.SIGHUP)
FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""The terminal sends these to the whole foreground group, so the agent has them already."""

Deliver = Callable[[int], object]


class Signals(Protocol):
    """Where signals come from."""

    def caught(self, numbers: Sequence[int], deliver: Deliver) -> AbstractContextManager[None]:
        """While it lasts, these signals do nothing but call C{deliver}, in the reactor."""


@frozen
class OSSignals:
    """The process's own signals; to be used in its main thread."""

    _reactor: IReactorFromThreads

    @contextmanager
    def caught(self, numbers: Sequence[int], deliver: Deliver) -> Iterator[None]:
        """A handler, not SIG_IGN, which the agent would inherit."""
        before = {number: signal.getsignal(number) for number in numbers}
        for number in numbers:
            signal.signal(number, lambda got, _frame: self._reactor.callFromThread(deliver, got))
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
