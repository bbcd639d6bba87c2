"""Thread pools without threads, and their reactor: a database on them answers before the call returns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool


class UnthreadedReactor(MemoryReactorClock):
    """A memory reactor for thread pools without threads: what they send back arrives at once.

    C{callWhenRunning} only keeps its hook, so a database pool never starts threads of its own.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def callFromThread(self, callable: Callable[..., object], *args: object, **kwargs: object) -> None:  # noqa: A002 - Twisted's name
        """Call at once, in this thread."""
        callable(*args, **kwargs)

    def removeSystemEventTrigger(self, triggerID: object) -> None:
        """Do nothing: the memory reactor lacks it."""


class UnthreadedPool(ThreadPool):
    """A pool without threads: what is handed over is done before the call returns, or, while held, when stepped.

    What is handed over while something is being told is done after that, as threads would: one piece at a time.

    :ivar todo: the work that waits, oldest first.
    """

    def __init__(self, least: int = 0, most: int = 0) -> None:
        super().__init__(0, 0)
        self.todo: deque[Callable[[], None]] = deque()
        self._held = self._working = False

    def start(self) -> None:
        """There is nothing to start."""
        self.started = True

    def hold(self) -> None:
        """Run nothing from now on before L{step}."""
        self._held = True

    def release(self) -> None:
        """Do all that waits, and from now on everything at once."""
        self._held = False
        self._work()

    def _work(self) -> None:
        if self._working:
            return
        self._working = True
        try:
            while self.todo and not self._held:
                self.step()
        finally:
            self._working = False

    def step(self) -> None:
        """Do the oldest piece of work.

        :raises IndexError: there is none.
        """
        self.todo.popleft()()

    def callInThreadWithCallback(
        self, onResult: Callable[[bool, Any], object] | None, func: Callable[..., Any], *args: Any, **kw: Any
    ) -> None:
        def work() -> None:
            succeeded, result = _outcome(func, args, kw)
            if onResult is not None:
                onResult(succeeded, result)

        self.todo.append(work)
        self._work()

    def stop(self) -> None:
        """There is nothing to stop."""


def _outcome(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, Any]:
    try:
        return True, function(*args, **kwargs)
    except BaseException:  # noqa: BLE001 - as a thread pool does: whatever it is goes to the callback
        return False, Failure()
