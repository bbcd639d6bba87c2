"""Numbers that grow: what L{aileron.values.Traffic} is a picture of."""

from __future__ import annotations

from bisect import bisect_left

from aileron.values import Ending, Histogram, Traffic, Usage

ADDED_BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
WAIT_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

_CLASSES = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")


class Counts:
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
        """An answer came, after so long."""
        self._first_byte[bisect_left(WAIT_BOUNDS, first_byte_seconds)] += 1
        self._first_byte_seconds += first_byte_seconds
        self._added[bisect_left(ADDED_BOUNDS, added_seconds)] += 1
        self._added_seconds += added_seconds

    def tell(self, usage: Usage | None) -> None:
        """An answer told its tokens, or did not."""
        if usage is None:
            self._untold += 1
            return
        self._told += 1
        self._input += usage.input
        self._output += usage.output
        self._cached += usage.cached

    def traffic(self) -> Traffic:
        """As they are now."""
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
