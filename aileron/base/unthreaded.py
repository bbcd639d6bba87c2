"""Thread pools without threads, and a reactor for them: database calls complete before they return."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool


class UnthreadedReactor(MemoryReactorClock):
    """A memory reactor for thread pools without threads: C{callFromThread} calls at once.

    C{callWhenRunning} only stores its hook, so a database pool never starts threads of its own.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def callFromThread(self, callable: Callable[..., object], *args: object, **kwargs: object) -> None:  # noqa: A002 - Twisted's name
        """Call the function at once, in this thread."""
        callable(*args, **kwargs)

    def removeSystemEventTrigger(self, triggerID: object) -> None:
        """Do nothing: the memory reactor lacks this method."""


class UnthreadedPool(ThreadPool):
    """A pool without threads that runs work before the call returns, or, while held, in L{step}.

    Work added during a callback runs after it, one piece at a time, as with threads.

    :ivar todo: the queued work, oldest first.
    """

    def __init__(self, least: int = 0, most: int = 0) -> None:
        super().__init__(0, 0)
        self.todo: deque[Callable[[], None]] = deque()
        self._held = self._working = False

    def start(self) -> None:
        """Mark the pool as started."""
        self.started = True

    def hold(self) -> None:
        """Queue all further work until L{step} or L{release}."""
        self._held = True

    def release(self) -> None:
        """Run all queued work, and run further work at once."""
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
        """Run the oldest piece of work.

        :raises IndexError: if the queue is empty.
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
        """Do nothing: there is no thread to stop."""


def _outcome(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, Any]:
    try:
        return True, function(*args, **kwargs)
    except BaseException:  # noqa: BLE001 - like a thread pool, pass every exception to the callback
        return False, Failure()
