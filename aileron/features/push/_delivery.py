"""Records the last message to each browser, and computes when the next message may be sent."""

from __future__ import annotations

from attrs import define

from aileron.base.json import JSON

from .values import PushMessage

PAUSES_SECONDS = (15.0, 30.0, 60.0, 120.0, 300.0)
"""The pauses after the first messages in a row; the last pause is used from then on."""

QUIET_SECONDS = 600.0
"""The time without a message after which the next message counts as the first in a row."""

RETRY_SECONDS = (30.0, 120.0, 600.0, 3600.0)
"""The pauses after attempts that failed in a row; the last pause is used from then on."""


@define
class BrowserDelivery:
    """The last message that a browser's push service accepted, and the attempts since then.

    :ivar newest: the ID of the newest request that the browser knows of.
    :ivar count: the number of pending requests that the browser was sent.
    :ivar sent_at: when the push service accepted the last message, in seconds, or None if it never has.
    :ivar problem: why the last attempt failed, or None if it succeeded.
    """

    newest: str = ""
    count: int = 0
    sent_at: float | None = None
    problem: str | None = None
    _in_a_row: int = 0
    _failures: int = 0
    _blocked_until: float = 0.0

    @property
    def written(self) -> JSON:
        """The values that are stored across restarts: newest request, count, and time of the last message."""
        return [self.newest, self.count, self.sent_at]

    def is_due(self, now: float, *, is_new: bool) -> bool:
        """Return whether the next message may be sent now. If the clock was set back, return True.

        :param is_new: whether there is a new request. If not, and fewer are pending, only the shortest pause applies.
        """
        if not 0 <= self._blocked_until - now <= RETRY_SECONDS[-1]:
            self._blocked_until = 0.0
        place = min(self._in_a_row, len(PAUSES_SECONDS)) - 1 if is_new else 0
        rests = self.sent_at is not None and self._in_a_row and 0 <= now - self.sent_at < PAUSES_SECONDS[place]
        return not rests and not self._blocked_until

    def succeed(self, message: PushMessage, now: float, *, is_test: bool) -> None:
        """Record that the push service accepted a message.

        :param is_test: whether it was a test. A test does not change which requests the browser counts as knowing.
        """
        quiet = self.sent_at is None or abs(now - self.sent_at) > QUIET_SECONDS
        self.problem, self._failures, self._blocked_until = None, 0, 0.0
        if not is_test:
            self._in_a_row = 1 if quiet else self._in_a_row + 1
            self.newest, self.count = max(self.newest, message.id), message.count
        self.sent_at = now

    def fail(self, problem: str, retry_seconds: float, now: float) -> None:
        """Record that an attempt failed.

        :param retry_seconds: the time that the push service asks to wait, or 0.
        """
        pause = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
        self.problem, self._failures = problem, self._failures + 1
        self._blocked_until = now + max(pause, retry_seconds)
