"""Keys and tokens, of which only digests are stored, and the audit log's events of logins and refusals."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron.base.json import JSON, utc
from aileron.model.audit import DAEMON, Actor, Event
from aileron.model.failures import log_failure
from aileron.model.interfaces.store import IAudit
from aileron.model.sessions import OperatorSession

LAUNCH_KEY, LOCAL_KEY, AGENT_TOKEN, OPERATOR_TOKEN = "ail_l_", "ail_c_", "ail_a_", "ail_o_"


def mint(prefix: str, randomness: Callable[[int], bytes]) -> str:
    """Return a new key: C{prefix} and 32 random bytes as unpadded base64url.

    :param randomness: a function that returns a number of unpredictable bytes.
    """
    return prefix + base64.urlsafe_b64encode(randomness(32)).rstrip(b"=").decode("ascii")


def token_digest(token: str) -> bytes:
    """Return the SHA-256 of C{token}, which is stored. 32 random bytes need no salt and no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


_log = Logger()

REFUSALS_SECONDS = 10.0


class AccessLog:
    """A recorder of logins, logouts and refused logins in the audit log."""

    def __init__(self, audit: IAudit, clock: IReactorTime, ids: Callable[[], str]) -> None:
        self._audit = audit
        self._clock = clock
        self._ids = ids
        self._counting = False
        self._refused = 0

    async def record(self, kind: str, actor: Actor, payload: Mapping[str, JSON]) -> None:
        """Record one event durably. :raises StoreUnavailable: if the store failed."""
        await self._audit.append(Event(self._ids(), kind, utc(self._clock.seconds()), actor, payload))

    def report_lapse(self, session: OperatorSession) -> None:
        """Record that a browser's login can no longer decide. A failure to record it is logged."""
        told = Deferred.fromCoroutine(self.record("operator.login_lapsed", DAEMON, {"session": session.id}))
        told.addErrback(lambda failure: log_failure(_log, "recording a lapsed login", failure))

    async def refuse(self) -> None:
        """Record a refused login. The first is recorded at once, all refusals of the next ten seconds in one event.

        :raises StoreUnavailable: if the event could not be recorded.
        """
        self._refused += 1
        if not self._counting:
            await self._tell()

    async def _tell(self) -> None:
        count, self._refused, self._counting = self._refused, 0, True
        self._clock.callLater(REFUSALS_SECONDS, self._go_on)
        await self.record("operator.login_refused", DAEMON, {"count": count})

    def _go_on(self) -> None:
        self._counting = False
        if self._refused:
            told = Deferred.fromCoroutine(self._tell())
            told.addErrback(lambda failure: log_failure(_log, "recording refused logins", failure))
