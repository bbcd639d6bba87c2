"""Counts the relay's exchanges in memory since the daemon's start, without delaying them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from attrs import define, field
from zope.interface import implementer

from aileron.features.gateway.interfaces import IMeter, IMeters, ITotals
from aileron.model.usage import Usage

from ._body_sample import PLAIN_BYTES, Allowance, BodySample
from ._completions import CompletionRecorder
from .values import Ending, GatewayTotals, Histogram, Provider, Traffic

ADDED_BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
WAIT_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

_CLASSES = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")


@define(eq=False)
class TrafficCounts:
    """The counts of one provider."""

    # Flat, not one object per histogram: each method is called for each request.
    name: str
    begun: int = field(default=0, init=False)
    _sent_bytes: int = field(default=0, init=False)
    _received_bytes: int = field(default=0, init=False)
    _told: int = field(default=0, init=False)
    _untold: int = field(default=0, init=False)
    _usage: Usage = field(factory=Usage, init=False)
    _answers: list[int] = field(factory=lambda: [0] * len(_CLASSES), init=False)
    _endings: dict[Ending, int] = field(factory=lambda: dict.fromkeys(Ending, 0), init=False)
    _first_byte: list[int] = field(factory=lambda: [0] * (len(WAIT_BOUNDS) + 1), init=False)
    _whole: list[int] = field(factory=lambda: [0] * (len(WAIT_BOUNDS) + 1), init=False)
    _added: list[int] = field(factory=lambda: [0] * (len(ADDED_BOUNDS) + 1), init=False)
    _first_byte_seconds: float = field(default=0.0, init=False)
    _added_seconds: float = field(default=0.0, init=False)
    _whole_seconds: float = field(default=0.0, init=False)

    def end(self, code: int, ending: Ending, seconds: float, sent_bytes: int, received_bytes: int) -> None:
        """Count an exchange that ended.

        :param code: the status of its response, or 0 if there was none.
        """
        self._answers[code // 100 if code < 600 else 0] += 1
        self._endings[ending] += 1
        self._whole[bisect_left(WAIT_BOUNDS, seconds)] += 1
        self._whole_seconds += seconds
        self._sent_bytes += sent_bytes
        self._received_bytes += received_bytes

    def wait(self, first_byte_seconds: float, added_seconds: float) -> None:
        """Count the time to the first byte of a response, and the part that the gateway added."""
        self._first_byte[bisect_left(WAIT_BOUNDS, first_byte_seconds)] += 1
        self._first_byte_seconds += first_byte_seconds
        self._added[bisect_left(ADDED_BOUNDS, added_seconds)] += 1
        self._added_seconds += added_seconds

    def tell(self, usage: Usage | None) -> None:
        """Count the tokens of a response, or the response as one without token counts if C{usage} is None."""
        if usage is None:
            self._untold += 1
            return
        self._told += 1
        self._usage += usage

    def traffic(self) -> Traffic:
        """Return the counts as they are now."""
        return Traffic(
            begun=self.begun,
            answers=dict(zip(_CLASSES, self._answers, strict=True)),
            endings=dict(self._endings),
            sent_bytes=self._sent_bytes,
            received_bytes=self._received_bytes,
            usage=self._usage,
            told=self._told,
            untold=self._untold,
            first_byte=Histogram(WAIT_BOUNDS, tuple(self._first_byte), self._first_byte_seconds),
            added=Histogram(ADDED_BOUNDS, tuple(self._added), self._added_seconds),
            whole=Histogram(WAIT_BOUNDS, tuple(self._whole), self._whole_seconds),
        )


@implementer(IMeter)
class Uncounted:
    """A meter that counts nothing."""

    completion = ""

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


Later: TypeAlias = Callable[[Callable[[], None]], object]
Note: TypeAlias = Callable[[str, str | None, Usage | None], object]
Account: TypeAlias = tuple[TrafficCounts, str | None]
"""The provider of an exchange, and its session or None."""

MOST_PACKED = 64
MOST_UNREAD = 256


@implementer(IMeters, ITotals)
class Tally:
    """The counts of the providers that were called. The usage of each call is noted for its session and day.

    :ivar reading: reads copies of responses for their tokens.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        later: Later,
        note: Note,
        *,
        reads: bool = True,
        completions: CompletionRecorder | None = None,
    ) -> None:
        """Start all counts at zero.

        :param clock: seconds, never set back.
        :param later: calls its argument once, after a pause.
        :param note: called with each call of a session that ended, and the usage of other calls. It must not block.
        :param reads: whether responses are read for their token counts.
        :param completions: records the shape of each completion, or None if none is recorded.
        """
        self._clock = clock
        self._reads = reads
        self._completions = completions
        self._providers: dict[str, TrafficCounts] = {}
        self.reading = UsageReading(later, note)

    def begin(self, provider: Provider, session_id: str | None, inference: bool, path: bytes) -> IMeter:
        counts = self._providers.get(provider.name)
        if counts is None:
            counts = self._providers[provider.name] = TrafficCounts(provider.name)
        counts.begun += 1
        meter = _Meter((counts, session_id), self._clock, self.reading, reads=inference and self._reads)
        if self._completions is None or not inference:
            return meter
        return self._completions.watch(meter, path, provider.name, session_id)

    def snapshot(self) -> GatewayTotals:
        providers = {name: counts.traffic() for name, counts in sorted(self._providers.items())}
        return GatewayTotals(providers)


class UsageReading:
    """The queue of response copies, read for their token counts one at a time and then discarded.

    :ivar allowance: of long copies.
    :ivar note: see L{Tally}.
    """

    def __init__(self, later: Later, note: Note) -> None:
        self.allowance = Allowance(MOST_PACKED)
        self.note = note
        self._later = later
        self._queue: deque[tuple[BodySample, Account]] = deque()

    @property
    def busy(self) -> bool:
        """True if the queue is full, so that another copy would not be read."""
        return len(self._queue) >= MOST_UNREAD

    def read(self, copy: BodySample, to: Account) -> None:
        """Queue a copy for reading. If the queue is full, discard the copy and count the response as unread."""
        waiting = len(self._queue)
        if waiting >= MOST_UNREAD:
            copy.let_go()
            self.tell(None, to)
            return
        self._queue.append((copy, to))
        if not waiting:
            self._later(self._read_one)

    def read_rest(self) -> None:
        """Read all queued copies at once, because the relay has stopped."""
        while self._queue:
            self._read_one()

    def tell(self, usage: Usage | None, to: Account) -> None:
        """Count the usage of a response for its provider, and pass the usage to L{note}."""
        counts, session_id = to
        counts.tell(usage)
        if usage is not None or session_id is not None:
            self.note(counts.name, session_id, usage)

    def _read_one(self) -> None:
        if not self._queue:
            return  # the rest was read at once
        copy, to = self._queue.popleft()
        try:
            self.tell(copy.usage(), to)
        finally:
            copy.let_go()
            if self._queue:
                self._later(self._read_one)


@implementer(IMeter)
class _Meter:
    """The meter of one exchange: measures times and sizes, and counts them when the exchange ends."""

    completion = ""
    _copy: BodySample | None = None
    _room: bytearray
    _code = 0
    _received = 0
    _full_at = -1
    _skipped = False
    _sent = 0.0
    _arrived = 0.0
    _answered = 0.0

    def __init__(self, to: Account, clock: Callable[[], float], reading: UsageReading, *, reads: bool) -> None:
        self._to, self._clock, self._reading, self._reads = to, clock, reading, reads
        self._begun = clock()

    def sent(self) -> None:
        self._sent = self._clock()

    def arrived(self) -> None:
        self._arrived = self._clock()

    def answered(self, code: int, head: bytes) -> None:
        self._answered = self._clock()
        self._code = code
        if code != 200 or not self._reads:
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
        counts, session_id = self._to
        counts.end(self._code, ending, seconds, uploaded, self._received)
        if answered and sent:
            back = answered - self._arrived if self._arrived else 0.0
            counts.wait(answered - begun, sent - begun + back)
        copy = self._copy
        if copy is not None:
            self._copy = None
            self._reading.read(copy, self._to)
        elif self._skipped:
            self._reading.tell(None, self._to)
        elif session_id is not None:
            self._reading.note(counts.name, session_id, None)
