"""Notices agents that run away: one request again and again, or too many requests within a minute."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

from attrs import define, field

from aileron.model.errors import LimitExceeded

from .values import Runaway

MOST_SESSIONS = 1024
_MINUTE = 60.0
_SAME = (
    "This session has sent the same request {n} times in a row, as often as gateway.runaway.same_requests allows. "
    "Nothing was sent. Another request is let through."
)
_MANY = (
    "This session has made {n} requests within a minute, as many as gateway.runaway.per_minute allows. Nothing was "
    "sent. Wait a minute."
)


@define
class _Requests:
    """The latest requests of a session, for the detection of a runaway agent.

    :ivar digest: the digest of the last one, and C{times} how often it came in a row.
    :ivar told: whether the operator was told since the session last behaved.
    """

    digest: bytes = b""
    times: int = 0
    moments: deque[float] = field(factory=deque)
    told: bool = False


class RunawayDetector:
    """Detects agents that run away: sessions that repeat one request again and again, or make too many in a minute."""

    def __init__(self, bounds: Runaway, seconds: Callable[[], float], tell: Callable[[str, str], None]) -> None:
        """Create a detector.

        :param bounds: the numbers of requests from which a session counts as running away.
        :param seconds: returns the time in seconds.
        :param tell: notifies the operator of a session. It gets the session's id and a sentence.
        """
        self.bounds = bounds
        self._seconds, self._tell = seconds, tell
        self._sessions: OrderedDict[str, _Requests] = OrderedDict()

    def check(self, session_id: str, digest: bytes | None) -> None:
        """Count a request that is about to be sent.

        :param digest: the digest of the request, or None if it was not read.
        :raises LimitExceeded: if the session runs away. The request does not count.
        """
        bounds = self.bounds
        if bounds.per_minute is None and bounds.same_requests is None:
            return
        requests = self._find(session_id)
        if bounds.same_requests is not None and digest is not None:
            self._check_same(requests, session_id, digest, bounds.same_requests)
        if bounds.per_minute is not None:
            self._check_rate(requests, session_id, bounds.per_minute)
        requests.told = False

    def _check_same(self, requests: _Requests, session_id: str, digest: bytes, most: int) -> None:
        if digest != requests.digest:
            requests.digest, requests.times = digest, 0
        # guard of spending: a request is not repeated endlessly -> test_runaway.RunawayTests.test_same
        if requests.times >= most:
            self._refuse(requests, session_id, _SAME.format(n=most))
        requests.times += 1

    def _check_rate(self, requests: _Requests, session_id: str, most: int) -> None:
        now, moments = self._seconds(), requests.moments
        if moments and now < moments[-1]:  # the clock was set back
            moments.clear()
        while moments and moments[0] <= now - _MINUTE:
            moments.popleft()
        # guard of spending: a session makes only so many requests a minute -> test_runaway.RunawayTests.test_rate
        if len(moments) >= most:
            self._refuse(requests, session_id, _MANY.format(n=most))
        moments.append(now)

    def _refuse(self, requests: _Requests, session_id: str, why: str) -> None:
        if not requests.told:
            requests.told = True
            self._tell(session_id, why)
        raise LimitExceeded(why)

    def _find(self, session_id: str) -> _Requests:
        found = self._sessions.get(session_id)
        if found is None:
            found = self._sessions[session_id] = _Requests()
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return found
