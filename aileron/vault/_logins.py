"""Live logins: each ends after a time without use, and after a time whatever its use."""

from __future__ import annotations

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.values import OperatorSession, utc

from ._cipher import Randomness

IDLE_SECONDS = 30 * 60.0
ABSOLUTE_SECONDS = 12 * 60 * 60.0
_ID_BYTES = 12


@frozen
class Login:
    """One live login.

    :ivar secret: SHA-256 of its token or cookie.
    :ivar key: the public key of the browser that it belongs to; empty for a terminal's.
    :ivar until: when it ends whatever its use, in the clock's seconds.
    :ivar ends: when it ends unless it is used before.
    """

    session: OperatorSession
    secret: str = field(repr=False)
    key: bytes = field(repr=False)
    until: float
    ends: float


class Logins:
    """The table of them, by the hash of their secret."""

    def __init__(self, clock: IReactorTime, randomness: Randomness) -> None:
        self._clock = clock
        self._randomness = randomness
        self._by_secret: dict[str, Login] = {}

    def start(self, secret: str, key: bytes = b"", until: float | None = None) -> OperatorSession:
        """Begin one.

        :param secret: SHA-256 of its token or cookie.
        :param key: see L{Login}.
        :param until: its absolute end; L{None}: twelve hours from now.
        """
        now = self._clock.seconds()
        end = now + ABSOLUTE_SECONDS if until is None else until
        session_id = "ops_" + self._randomness(_ID_BYTES).hex()
        session = OperatorSession(session_id, utc(now), utc(now), utc(end), utc(end), browser=bool(key))
        return self.renewed(Login(session, secret, key, end, end)).session

    def of_terminal(self, secret: str) -> Login | None:
        """The live login of that token's hash, or L{None}."""
        login = self._live(secret)
        return None if login is None or login.key else login

    def of_browser(self, secret: str) -> Login | None:
        """The live login of that cookie's hash, or L{None}.  It is the browser's only if its key says so too."""
        login = self._live(secret)
        return login if login is not None and login.key else None

    def renewed(self, login: Login) -> Login:
        """The same, used now: its idle time starts again."""
        now = self._clock.seconds()
        ends = min(login.until, now + IDLE_SECONDS)
        kept = evolve(login, ends=ends, session=evolve(login.session, used_at=utc(now), expires_at=utc(ends)))
        self._by_secret[login.secret] = kept
        return kept

    def end(self, session_id: str) -> None:
        """End one.  Twice is safe."""
        self._by_secret = {key: each for key, each in self._by_secret.items() if each.session.id != session_id}

    def live(self) -> tuple[OperatorSession, ...]:
        """All, newest first."""
        self._drop_ended()
        return tuple(login.session for login in sorted(self._by_secret.values(), key=_age, reverse=True))

    def clear(self) -> None:
        """End all."""
        self._by_secret.clear()

    def _live(self, secret: str) -> Login | None:
        self._drop_ended()
        return self._by_secret.get(secret)  # its time tells at most something about a hash

    def _drop_ended(self) -> None:
        now = self._clock.seconds()
        for secret in [key for key, login in self._by_secret.items() if login.ends <= now]:
            del self._by_secret[secret]


def _age(login: Login) -> tuple[float, str]:
    return login.session.started_at.timestamp(), login.session.id
