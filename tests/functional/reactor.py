"""What the kit asks of the running reactor, and the one way to wait for something with a deadline."""

from collections.abc import Callable

from twisted.internet.interfaces import IReactorFDSet, IReactorFromThreads, IReactorProcess, IReactorTCP, IReactorTime
from twisted.internet.task import deferLater

_MOST_AT_ONCE = 0.25
_MOST_ADDED = 30.0
_SHORTEST, _LONGEST = 0.01, 0.1
"""Between two looks: short at first, then a tenth of what was waited already; each look costs processor time."""


class IKitReactor(IReactorFDSet, IReactorProcess, IReactorTCP, IReactorTime, IReactorFromThreads):
    """A reactor that spawns processes, listens on TCP, tells the time and is called from threads."""


class DeadlinePassedError(AssertionError):
    """Something that a test waited for did not happen in time."""


class Patience:
    """So many seconds to wait, of which a machine that stands still for a while uses up little: half a minute is added.

    A reactor that was held up calls what is due before it reads what has come meanwhile.
    """

    def __init__(self, reactor: IReactorTime, seconds: float) -> None:
        self._reactor = reactor
        self._left, self._looked_at = seconds, reactor.seconds()
        self._latest = self._looked_at + seconds + _MOST_ADDED

    @property
    def is_over(self) -> bool:
        """Whether they have passed; to be asked again and again."""
        now = self._reactor.seconds()
        self._left -= min(now - self._looked_at, _MOST_AT_ONCE)
        self._looked_at = now
        return self._left <= 0 or now >= self._latest


async def until(reactor: IReactorTime, happened: Callable[[], bool], seconds: float, what: str) -> None:
    """Return as soon as ``happened()`` is true.

    :param seconds: how long to wait at most.
    :param what: names the awaited thing in the failure.
    :raises DeadlinePassedError: when the time is up.
    """
    patience, began = Patience(reactor, seconds), reactor.seconds()
    while not happened():
        if patience.is_over:
            raise DeadlinePassedError(f"not within {seconds:g} s: {what}")
        await deferLater(reactor, min(max(_SHORTEST, (reactor.seconds() - began) / 10), _LONGEST))
