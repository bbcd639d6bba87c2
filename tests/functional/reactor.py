"""What the kit asks of the running reactor, and the one way to wait for something with a deadline."""

from collections.abc import Callable

from twisted.internet.interfaces import IReactorProcess, IReactorTCP, IReactorTime
from twisted.internet.task import deferLater


class IKitReactor(IReactorProcess, IReactorTCP, IReactorTime):
    """A reactor that spawns processes, listens on TCP and tells the time."""


class DeadlinePassedError(AssertionError):
    """Something that a test waited for did not happen in time."""


async def until(reactor: IReactorTime, happened: Callable[[], bool], seconds: float, what: str) -> None:
    """Return as soon as ``happened()`` is true.

    :param seconds: how long to wait at most.
    :param what: names the awaited thing in the failure.
    :raises DeadlinePassedError: when the time is up.
    """
    deadline = reactor.seconds() + seconds
    while not happened():
        if reactor.seconds() >= deadline:
            raise DeadlinePassedError(f"not within {seconds:g} s: {what}")
        await deferLater(reactor, 0.01)
