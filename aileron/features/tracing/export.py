"""The queue of spans on their way to the collector."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

from attrs import define, field
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron.base.posting import PostAnswer

from .otlp import count_rejected, encode_spans
from .spans import TraceSpan

MOST_WAITING = 4096
"""The most spans that wait. Further ones are dropped."""

MOST_AT_ONCE = 512
_AGAIN = frozenset((429, 502, 503, 504))
"""The statuses after which OTLP allows to send a batch again. After any other error it must not be."""

_FIRST_PAUSE, _LONGEST_PAUSE, _MOST_ASKED = 2.0, 60.0, 3600.0
_log = Logger()


@define(eq=False)
class SpanExporter:
    """Sends spans in batches. A collector that is slow, wrong or away costs spans, and has no other effect.

    :param post: posts a body, and returns the answer.
    :param resource: the attributes of this process.
    """

    _post: Callable[[bytes], Awaitable[PostAnswer]]
    _resource: Mapping[str, str]
    _clock: IReactorTime
    sent: int = field(default=0, init=False)
    dropped: int = field(default=0, init=False)
    _waiting: deque[TraceSpan] = field(factory=deque, init=False)
    _is_sending: bool = field(default=False, init=False)
    _is_away: bool = field(default=False, init=False)
    _pause: float = field(default=_FIRST_PAUSE, init=False)
    _not_before: float = field(default=0.0, init=False)

    def add(self, spans: Iterable[TraceSpan]) -> None:
        """Queue spans. If too many wait, drop them and count that."""
        for each in spans:
            if len(self._waiting) < MOST_WAITING:
                self._waiting.append(each)
            else:
                self.dropped += 1

    async def flush(self) -> None:
        """Send what waits, until nothing waits or the collector does not take it.

        If it is being sent, or the collector is to be left alone for now, do nothing.
        """
        if self._is_sending or self._clock.seconds() < self._not_before:
            return
        self._is_sending = True
        try:
            while self._waiting and await self._send(tuple(self._waiting)[:MOST_AT_ONCE]):
                pass
        finally:
            self._is_sending = False

    async def _send(self, batch: Sequence[TraceSpan]) -> bool:
        """Send a batch, which is then no longer in the queue unless it may be sent again later.

        :return: whether to go on with the next batch.
        """
        try:
            answer = await self._post(encode_spans(batch, self._resource))
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever happens on the network: traces are no part of a run
            self._wait(type(error).__name__, None)
            return False
        if answer.status in _AGAIN:
            self._wait(f"status {answer.status}", answer.retry_after)
            return False
        self._pause = _FIRST_PAUSE
        for _ in batch:
            self._waiting.popleft()
        if not 200 <= answer.status < 300:
            self.dropped += len(batch)
            self._note_away(f"status {answer.status}")
            return False
        rejected = min(count_rejected(answer.body), len(batch))
        self.sent, self.dropped = self.sent + len(batch) - rejected, self.dropped + rejected
        if rejected:
            self._note_away("it rejected some of a batch")
        else:
            self._is_away = False
        return True

    def _wait(self, why: str, asked: float | None) -> None:
        """Send nothing for the time that the collector asked for, or else twice as long as after the last failure."""
        self._note_away(why)
        seconds = self._pause if asked is None else min(asked, _MOST_ASKED)
        self._not_before = self._clock.seconds() + seconds
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _note_away(self, why: str) -> None:
        if not self._is_away:
            _log.warn("the collector of traces does not take spans: {why}", why=why)
        self._is_away = True

    def metrics(self) -> Iterator[Metric]:
        """Return the counts of spans."""
        spans = CounterMetricFamily("aileron_tracing_spans", "Spans that were sent or dropped.", labels=["outcome"])
        spans.add_metric(["sent"], self.sent)
        spans.add_metric(["dropped"], self.dropped)
        yield spans
        yield GaugeMetricFamily("aileron_tracing_waiting", "Spans that wait to be sent.", len(self._waiting))
