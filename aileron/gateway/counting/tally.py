"""Counts what the relay does, beside it and never in its way; in memory, since the daemon's start."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

from zope.interface import implementer

from aileron.interfaces import IMeter, IMeters, ITotals
from aileron.values import Ending, GatewayTotals, Provider, Traffic, Usage

from .copies import PLAIN_BYTES, Allowance, Copy
from .counts import Counts

MOST_SESSIONS = 256
MOST_PACKED = 64
MOST_UNREAD = 256


@implementer(IMeters, ITotals)
class Tally:
    """The counts of the providers that were called and of the sessions that called of late."""

    def __init__(
        self, clock: Callable[[], float], later: Callable[[Callable[[], None]], object], reads: bool = True
    ) -> None:
        """Begin at nought.

        :param clock: seconds, never set back.
        :param later: calls what it is given, once, when nothing is in the way.
        :param reads: whether answers are read for the tokens that they cost.
        """
        self._clock = clock
        self._reads = reads
        self._providers: dict[str, Counts] = {}
        self._sessions: OrderedDict[str, Counts] = OrderedDict()
        self._reading = Reading(later)

    def begin(self, provider: Provider, session_id: str | None, inference: bool) -> IMeter:
        """See L{IMeters}."""
        counts = self._providers.get(provider.name)
        if counts is None:
            counts = self._providers[provider.name] = Counts()
        counts.begun += 1
        to = (counts,) if session_id is None else (counts, self._session(session_id))
        return _Meter(to, self._clock, self._reading if inference and self._reads else None)

    def _session(self, session_id: str) -> Counts:
        sessions = self._sessions
        counts = sessions.get(session_id)
        if counts is None:
            counts = sessions[session_id] = Counts()
            if len(sessions) > MOST_SESSIONS:
                sessions.popitem(last=False)
        else:
            sessions.move_to_end(session_id)
        counts.begun += 1
        return counts

    def snapshot(self) -> GatewayTotals:
        """See L{ITotals}."""
        return GatewayTotals({name: counts.traffic() for name, counts in sorted(self._providers.items())})

    def of_session(self, session_id: str) -> Traffic | None:
        """See L{ITotals}."""
        counts = self._sessions.get(session_id)
        return None if counts is None else counts.traffic()


class Reading:
    """Reads copies of answers for their tokens, one at a time, and lets each go.

    :ivar allowance: of long copies.
    """

    def __init__(self, later: Callable[[Callable[[], None]], object]) -> None:
        self.allowance = Allowance(MOST_PACKED)
        self._later = later
        self._queue: deque[tuple[Copy, tuple[Counts, ...]]] = deque()

    @property
    def busy(self) -> bool:
        """Whether so many wait that another one would not be read."""
        return len(self._queue) >= MOST_UNREAD

    def read(self, copy: Copy, to: tuple[Counts, ...]) -> None:
        """Read it later, and tell these; at once, and unread, if too many wait."""
        if self.busy:
            copy.let_go()
            _tell(None, to)
            return
        self._queue.append((copy, to))
        if len(self._queue) == 1:
            self._later(self._read_one)

    def _read_one(self) -> None:
        copy, to = self._queue.popleft()
        try:
            _tell(copy.usage(), to)
        finally:
            copy.let_go()
            if self._queue:
                self._later(self._read_one)


def _tell(usage: Usage | None, to: tuple[Counts, ...]) -> None:
    for counts in to:
        counts.tell(usage)


@implementer(IMeter)
class _Meter:
    """The meter of one exchange: notes moments and sizes, and counts them at its end."""

    __slots__ = (
        "_answered",
        "_arrived",
        "_begun",
        "_clock",
        "_code",
        "_copy",
        "_full_at",
        "_reading",
        "_received",
        "_room",
        "_sent",
        "_skipped",
        "_to",
    )

    def __init__(self, to: tuple[Counts, ...], clock: Callable[[], float], reading: Reading | None) -> None:
        self._to = to
        self._clock = clock
        self._reading = reading
        self._copy: Copy | None = None
        self._code = self._received = 0
        self._full_at = -1
        self._skipped = False
        self._sent = self._arrived = self._answered = 0.0
        self._begun = clock()

    def sent(self) -> None:
        """See L{IMeter}."""
        self._sent = self._clock()

    def arrived(self) -> None:
        """See L{IMeter}."""
        self._arrived = self._clock()

    def answered(self, code: int, head: bytes) -> None:
        """See L{IMeter}."""
        self._answered = self._clock()
        self._code = code
        if code != 200 or self._reading is None:
            return
        if self._reading.busy:
            self._skipped = True
        else:
            self._copy = copy = Copy(head, self._reading.allowance)
            self._room, self._full_at = copy.room, PLAIN_BYTES

    def passed(self, data: bytes) -> None:
        """See L{IMeter}."""
        self._received = received = self._received + len(data)
        if received <= self._full_at:
            self._room += data
        elif self._copy is not None:
            self._full_at = received + self._copy.more(data)

    def ended(self, ending: Ending, uploaded: int) -> None:
        """See L{IMeter}."""
        begun, answered, sent = self._begun, self._answered, self._sent
        seconds = self._clock() - begun
        for counts in self._to:
            counts.end(self._code, ending, seconds, uploaded, self._received)
            if answered and sent:
                back = answered - self._arrived if self._arrived else 0.0
                counts.wait(answered - begun, sent - begun + back)
        if self._copy is not None and self._reading is not None:
            self._reading.read(self._copy, self._to)
            self._copy = None
        elif self._skipped:
            _tell(None, self._to)
