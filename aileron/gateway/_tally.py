"""Counts what the relay does, beside it and never in its way; in memory, since the daemon's start."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Callable

from zope.interface import implementer

from aileron.interfaces import IMeter, IMeters, ITotals
from aileron.values import Ending, GatewayTotals, Histogram, Provider, Traffic, Usage

from ._body_sample import PLAIN_BYTES, Allowance, BodySample

ADDED_BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
WAIT_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

_CLASSES = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")


class TrafficCounts:
    """The numbers of one provider, or of one session."""

    # Flat, and not an object for each histogram: each of these calls is made for each request.
    __slots__ = (
        "_added",
        "_added_seconds",
        "_answers",
        "_cached",
        "_endings",
        "_first_byte",
        "_first_byte_seconds",
        "_input",
        "_output",
        "_received_bytes",
        "_sent_bytes",
        "_told",
        "_untold",
        "_whole",
        "_whole_seconds",
        "begun",
    )

    def __init__(self) -> None:
        self.begun = self._sent_bytes = self._received_bytes = 0
        self._input = self._output = self._cached = self._told = self._untold = 0
        self._answers = [0] * len(_CLASSES)
        self._endings = dict.fromkeys(Ending, 0)
        self._first_byte, self._whole = [0] * (len(WAIT_BOUNDS) + 1), [0] * (len(WAIT_BOUNDS) + 1)
        self._added = [0] * (len(ADDED_BOUNDS) + 1)
        self._first_byte_seconds = self._added_seconds = self._whole_seconds = 0.0

    def end(self, code: int, ending: Ending, seconds: float, sent_bytes: int, received_bytes: int) -> None:
        """One exchange is over, after so long; so much of bodies went there and came back.

        :param code: of its answer; 0: there was none.
        """
        self._answers[code // 100 if code < 600 else 0] += 1
        self._endings[ending] += 1
        self._whole[bisect_left(WAIT_BOUNDS, seconds)] += 1
        self._whole_seconds += seconds
        self._sent_bytes += sent_bytes
        self._received_bytes += received_bytes

    def wait(self, first_byte_seconds: float, added_seconds: float) -> None:
        """Count an answer that came after so long."""
        self._first_byte[bisect_left(WAIT_BOUNDS, first_byte_seconds)] += 1
        self._first_byte_seconds += first_byte_seconds
        self._added[bisect_left(ADDED_BOUNDS, added_seconds)] += 1
        self._added_seconds += added_seconds

    def tell(self, usage: Usage | None) -> None:
        """Count the tokens that an answer told, or that it told none."""
        if usage is None:
            self._untold += 1
            return
        self._told += 1
        self._input += usage.input
        self._output += usage.output
        self._cached += usage.cached

    def traffic(self) -> Traffic:
        """Return the counts as they are now."""
        return Traffic(
            begun=self.begun,
            answers=dict(zip(_CLASSES, self._answers, strict=True)),
            endings=dict(self._endings),
            sent_bytes=self._sent_bytes,
            received_bytes=self._received_bytes,
            usage=Usage(self._input, self._output, self._cached),
            told=self._told,
            untold=self._untold,
            first_byte=Histogram(WAIT_BOUNDS, tuple(self._first_byte), self._first_byte_seconds),
            added=Histogram(ADDED_BOUNDS, tuple(self._added), self._added_seconds),
            whole=Histogram(WAIT_BOUNDS, tuple(self._whole), self._whole_seconds),
        )


@implementer(IMeter)
class Uncounted:
    """A meter of what nobody counts."""

    def sent(self) -> None:
        """Count nothing."""

    def arrived(self) -> None:
        """Count nothing."""

    def answered(self, code: int, head: bytes) -> None:
        """Count nothing."""

    def passed(self, data: bytes) -> None:
        """Count nothing."""

    def ended(self, ending: Ending, uploaded: int) -> None:
        """Count nothing."""


UNCOUNTED = Uncounted()


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
        self._providers: dict[str, TrafficCounts] = {}
        self._sessions: OrderedDict[str, TrafficCounts] = OrderedDict()
        self._reading = UsageReading(later)

    def begin(self, provider: Provider, session_id: str | None, inference: bool) -> IMeter:
        counts = self._providers.get(provider.name)
        if counts is None:
            counts = self._providers[provider.name] = TrafficCounts()
        counts.begun += 1
        to = (counts,) if session_id is None else (counts, self._session(session_id))
        return _Meter(to, self._clock, self._reading if inference and self._reads else None)

    def _session(self, session_id: str) -> TrafficCounts:
        sessions = self._sessions
        counts = sessions.get(session_id)
        if counts is None:
            counts = sessions[session_id] = TrafficCounts()
            if len(sessions) > MOST_SESSIONS:
                sessions.popitem(last=False)
        else:
            sessions.move_to_end(session_id)
        counts.begun += 1
        return counts

    def snapshot(self) -> GatewayTotals:
        return GatewayTotals({name: counts.traffic() for name, counts in sorted(self._providers.items())})

    def of_session(self, session_id: str) -> Traffic | None:
        counts = self._sessions.get(session_id)
        return None if counts is None else counts.traffic()


class UsageReading:
    """Reads copies of answers for their tokens, one at a time, and lets each go.

    :ivar allowance: of long copies.
    """

    def __init__(self, later: Callable[[Callable[[], None]], object]) -> None:
        self.allowance = Allowance(MOST_PACKED)
        self._later = later
        self._queue: deque[tuple[BodySample, tuple[TrafficCounts, ...]]] = deque()

    @property
    def busy(self) -> bool:
        """True where so many wait that another one would not be read."""
        return len(self._queue) >= MOST_UNREAD

    def read(self, copy: BodySample, to: tuple[TrafficCounts, ...]) -> None:
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


def _tell(usage: Usage | None, to: tuple[TrafficCounts, ...]) -> None:
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

    def __init__(self, to: tuple[TrafficCounts, ...], clock: Callable[[], float], reading: UsageReading | None) -> None:
        self._to = to
        self._clock = clock
        self._reading = reading
        self._copy: BodySample | None = None
        self._code = self._received = 0
        self._full_at = -1
        self._skipped = False
        self._sent = self._arrived = self._answered = 0.0
        self._begun = clock()

    def sent(self) -> None:
        self._sent = self._clock()

    def arrived(self) -> None:
        self._arrived = self._clock()

    def answered(self, code: int, head: bytes) -> None:
        self._answered = self._clock()
        self._code = code
        if code != 200 or self._reading is None:
            return
        if self._reading.busy:
            self._skipped = True
        else:
            self._copy = copy = BodySample(head, self._reading.allowance)
            self._room, self._full_at = copy.room, PLAIN_BYTES

    def passed(self, data: bytes) -> None:
        self._received = received = self._received + len(data)
        if received <= self._full_at:
            self._room += data
        elif self._copy is not None:
            self._full_at = received + self._copy.more(data)

    def ended(self, ending: Ending, uploaded: int) -> None:
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
