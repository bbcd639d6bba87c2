"""Counts the relay's exchanges since the daemon's start, in memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from attrs import define, field
from twisted.logger import Logger
from zope.interface import implementer

from aileron.features.gateway.interfaces import IMeter, IMeters, ITotals, RequestCharge
from aileron.model.usage import Usage

from ._body_sample import PLAIN_BYTES, Allowance, BodySample
from ._completions import CompletionRecorder
from .values import Ending, GatewayTotals, Histogram, Provider, Traffic

_log = Logger()

ADDED_BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
WAIT_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

_CLASSES = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")


@define(eq=False)
class TrafficCounts:
    """The counts of one provider's exchanges, while they are being counted."""

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
        """Add the time to a response's first byte, and the part of this time that the gateway caused, to the counts."""
        self._first_byte[bisect_left(WAIT_BOUNDS, first_byte_seconds)] += 1
        self._first_byte_seconds += first_byte_seconds
        self._added[bisect_left(ADDED_BOUNDS, added_seconds)] += 1
        self._added_seconds += added_seconds

    def count_usage(self, usage: Usage | None) -> None:
        """Count the tokens of a response. If C{usage} is None, count it as a response without token counts."""
        if usage is None:
            self._untold += 1
            return
        self._told += 1
        self._usage += usage

    def traffic(self) -> Traffic:
        """Return the counts of the provider's exchanges so far."""
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
    charge: RequestCharge | None = None

    def sent(self) -> None:
        """Do nothing: nothing is counted."""

    def arrived(self) -> None:
        """Count nothing."""

    def answered(self, code: int, head: bytes) -> None:
        """Count nothing."""

    def passed(self, data: bytes) -> None:
        """Count nothing."""

    def ended(self, ending: Ending, uploaded: int) -> None:
        """Do nothing: nothing is counted."""


UNCOUNTED = Uncounted()


Later: TypeAlias = Callable[[Callable[[], None]], object]
Note: TypeAlias = Callable[[str, str | None, Usage | None], object]
Account: TypeAlias = tuple[TrafficCounts, str | None]
"""The counts of an exchange's provider, and the id of its session or None."""
ReadAnswer: TypeAlias = Callable[[str, bytes, bool], None]
"""Called with a session's id, the end of a response to it, and whether the response is a stream of events."""
Settle: TypeAlias = Callable[[Usage | None, str], None]
"""Called with the usage of a response, or None, and the model that it names, or an empty text."""

MOST_PACKED = 64
MOST_UNREAD = 256


@implementer(IMeters, ITotals)
class Tally:
    """The counts of the providers that were called. It also reports the token counts of each call.

    :ivar reading: reads the token counts in copies of responses.
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

        :param clock: returns monotonic seconds.
        :param later: calls its argument once, after a short pause.
        :param note: called at the end of each exchange with the provider's name, the session's id and the usage, unless
            both of the latter are None. It must not block.
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

    def read_all(self) -> None:
        """Read all further responses for their token counts, even if the settings say not to."""
        self._reads = True

    def read_of(self, session_id: str | None, most: int) -> int:
        """Read token counts now from queued copies of responses, as L{UsageReading.read_of} describes."""
        return self.reading.read_of(session_id, most)

    def snapshot(self) -> GatewayTotals:
        providers = {name: counts.traffic() for name, counts in sorted(self._providers.items())}
        return GatewayTotals(providers)


class UsageReading:
    """The queue of response copies. Token counts are read from one copy at a time, which is then discarded.

    :ivar allowance: limits the number of long copies.
    :ivar note: see L{Tally}.
    :ivar read_answer: called with each response to a session that is read, or None.
    """

    read_answer: ReadAnswer | None = None

    def __init__(self, later: Later, note: Note) -> None:
        self.allowance = Allowance(MOST_PACKED)
        self.note = note
        self._later = later
        self._queue: deque[tuple[BodySample, Account, Settle | None]] = deque()
        self._scheduled = False

    @property
    def busy(self) -> bool:
        """True if the queue is full, so that another copy would not be read."""
        return len(self._queue) >= MOST_UNREAD

    def read(self, copy: BodySample, to: Account, settle: Settle | None = None) -> None:
        """Queue a copy for reading. If the queue is full, discard it and count a response without token counts.

        :param settle: called with what was read.
        """
        if self.busy:
            copy.discard()
            self.count_usage(None, to)
            if settle is not None:
                settle(None, "")
            return
        self._queue.append((copy, to, settle))
        self._schedule()

    def read_rest(self) -> None:
        """Read all queued copies now. Called when the relay has stopped."""
        while self._queue:
            self._read_one()

    def read_of(self, session_id: str | None, most: int) -> int:
        """Read token counts now from queued copies of responses, instead of when it is their turn.

        :param session_id: the session whose copies are read, or None for those of requests without a session.
        :param most: the most copies to read.
        :return: how many were read.
        """
        found = [each for each in self._queue if each[1][1] == session_id][:most]
        for each in found:
            self._queue.remove(each)
            self._read(*each)
        return len(found)

    def count_usage(self, usage: Usage | None, to: Account) -> None:
        """Count the usage of a response for its provider, and pass the usage to L{note}."""
        counts, session_id = to
        counts.count_usage(usage)
        if usage is not None or session_id is not None:
            self.note(counts.name, session_id, usage)

    def _pass_answer(self, read_answer: ReadAnswer, copy: BodySample, session_id: str) -> None:
        try:
            end = copy.end()
            if end is not None:
                read_answer(session_id, *end)
        except Exception:  # noqa: BLE001 - another feature's reading must not disturb the counting
            _log.failure("an answer could not be read")

    def _schedule(self) -> None:
        if self._queue and not self._scheduled:
            self._scheduled = True
            self._later(self._read_one)

    def _read_one(self) -> None:
        self._scheduled = False
        if not self._queue:
            return  # the rest was read at once
        try:
            self._read(*self._queue.popleft())
        finally:
            self._schedule()

    def _read(self, copy: BodySample, to: Account, settle: Settle | None) -> None:
        usage, model = None, ""
        try:
            usage, model = copy.usage(), "" if settle is None else copy.model()
            if self.read_answer is not None and to[1] is not None:
                self._pass_answer(self.read_answer, copy, to[1])
        finally:
            copy.discard()
            if settle is not None:
                settle(usage, model)
        self.count_usage(usage, to)


@implementer(IMeter)
class _Meter:
    """The meter of one exchange: measures times and sizes, and counts them when the exchange ends."""

    completion = ""
    charge: RequestCharge | None = None
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
        copy, charge = self._copy, self.charge
        if copy is not None:
            self._copy = None
            self._reading.read(copy, self._to, None if charge is None else self._settle_later(charge, uploaded))
            return
        if self._skipped:
            self._reading.count_usage(None, self._to)
        elif session_id is not None:
            self._reading.note(counts.name, session_id, None)
        if charge is None:
            return
        if sent:
            charge.settle(None, "", self._code, uploaded, self._received)
        else:
            charge.release()

    def _settle_later(self, charge: RequestCharge, uploaded: int) -> Settle:
        """Return a function that charges the exchange to C{charge}, once the token counts of the response were read."""
        code, received = self._code, self._received
        return lambda usage, model: charge.settle(usage, model, code, uploaded, received)
