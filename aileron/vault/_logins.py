"""Live logins, and logins being handed over to a browser.

A login ends after a time without use, and after a maximum time.  A browser logs in with a code, then with two words
that the person types in the terminal.
"""

from __future__ import annotations

import hmac
import re
from typing import Generic, TypeVar

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import utc
from aileron.model.sessions import HandOverState, OperatorSession

from ._cipher import Randomness

Value = TypeVar("Value")


class ReplayCache(Generic[Value]):
    """A table of at most C{limit} values that each live for C{seconds} or until taken.  The oldest are evicted."""

    def __init__(self, clock: IReactorTime, seconds: float, limit: int) -> None:
        self._clock = clock
        self._seconds = seconds
        self._limit = limit
        self._kept: dict[str, tuple[float, Value]] = {}

    def put(self, key: str, value: Value) -> None:
        """Store a value, evicting the oldest if the table is full."""
        while len(self._kept) >= self._limit:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (self._clock.seconds() + self._seconds, value)

    def take(self, key: str) -> Value | None:
        """Remove and return a value, or return None if it is unknown, taken already or expired."""
        until, value = self._kept.pop(key, (0.0, None))
        return value if self._clock.seconds() < until else None

    def clear(self) -> None:
        """Remove all values."""
        self._kept.clear()


MOST_SECONDS = 5.0
_FREE = 3
_FIRST_SECONDS = 0.25
_FORGOTTEN_SECONDS = 60.0
_MOST_COUNTED = 32


class Throttle:
    """The delay of responses to failed logins, which grows with each failure and ends with a success."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._failures = 0
        self._failed_at = 0.0

    def failed(self) -> None:
        """Count a failure."""
        self._failures = min(_MOST_COUNTED, self._count() + 1)
        self._failed_at = self._clock.seconds()

    def succeeded(self) -> None:
        """Reset the failures."""
        self._failures = 0

    def seconds(self) -> float:
        """Return the current delay: 0 for the first failures, then 0.25 s, doubled with each failure, up to 5 s."""
        beyond = self._count() - _FREE
        return 0.0 if beyond < 0 else min(MOST_SECONDS, _FIRST_SECONDS * 2.0**beyond)

    def _count(self) -> int:
        return self._failures if self._clock.seconds() < self._failed_at + _FORGOTTEN_SECONDS else 0


IDLE_SECONDS = 30 * 60.0
ABSOLUTE_SECONDS = 12 * 60 * 60.0
_ID_BYTES = 12


@frozen
class Login:
    """A live login.

    :ivar secret: SHA-256 of its token or cookie.
    :ivar key: the public key of its browser, or empty for a terminal.
    :ivar until: the absolute end, in the clock's seconds.
    :ivar ends: the end unless the login is used before.
    """

    session: OperatorSession
    secret: str = field(repr=False)
    key: bytes = field(repr=False)
    until: float
    ends: float


class Logins:
    """The live logins by the hash of their secret."""

    def __init__(self, clock: IReactorTime, randomness: Randomness) -> None:
        self._clock = clock
        self._randomness = randomness
        self._by_secret: dict[str, Login] = {}

    def start(self, secret: str, key: bytes = b"", until: float | None = None) -> OperatorSession:
        """Start a login and return its session.

        :param secret: SHA-256 of its token or cookie.
        :param key: see L{Login}.
        :param until: the absolute end, or None for twelve hours from now.
        """
        now = self._clock.seconds()
        end = now + ABSOLUTE_SECONDS if until is None else until
        session_id = "ops_" + self._randomness(_ID_BYTES).hex()
        session = OperatorSession(session_id, utc(now), utc(now), utc(end), utc(end), browser=bool(key))
        return self.renewed(Login(session, secret, key, end, end)).session

    def of_terminal(self, secret: str) -> Login | None:
        """Return the live login with that token's hash, or None if there is none."""
        return self._live(secret, browser=False)

    def of_browser(self, secret: str) -> Login | None:
        """Return the live login with that cookie's hash, or None.  The caller must verify the browser's key too."""
        return self._live(secret, browser=True)

    def renewed(self, login: Login) -> Login:
        """Return the login with its idle time restarted."""
        now = self._clock.seconds()
        ends = min(login.until, now + IDLE_SECONDS)
        kept = evolve(login, ends=ends, session=evolve(login.session, used_at=utc(now), expires_at=utc(ends)))
        self._by_secret[login.secret] = kept
        return kept

    def end(self, session_id: str) -> None:
        """End the login of a session.  Idempotent."""
        self._by_secret = {key: each for key, each in self._by_secret.items() if each.session.id != session_id}

    def live(self) -> tuple[OperatorSession, ...]:
        """Return the live sessions, newest first."""
        self._drop_ended()
        return tuple(login.session for login in sorted(self._by_secret.values(), key=_age, reverse=True))

    def clear(self) -> None:
        """End all logins."""
        self._by_secret.clear()

    def _live(self, secret: str, *, browser: bool) -> Login | None:
        self._drop_ended()
        login = self._by_secret.get(secret)  # timing reveals at most a part of a hash
        return login if login is not None and bool(login.key) == browser else None

    def _drop_ended(self) -> None:
        now = self._clock.seconds()
        for secret in [key for key, login in self._by_secret.items() if login.ends <= now]:
            del self._by_secret[secret]


def _age(login: Login) -> tuple[float, str]:
    return login.session.started_at.timestamp(), login.session.id


# The letters that RFC 8628 proposes for typed codes (6.1): no vowels, no digits and no lookalikes.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_GROUPS, _GROUP_LETTERS = 5, 4
_TYPED_BYTES = 32
_typed = re.compile(rf"[{_LETTERS}]{{{_GROUPS * _GROUP_LETTERS}}}").fullmatch
_BETWEEN = re.compile(r"[\s\u2010-\u2015-]")


def generate_typed_code(randomness: Randomness) -> str:
    """Return a code that a person can type: five groups of four letters, 86 bits."""
    letters = generate_letters(_GROUPS * _GROUP_LETTERS, randomness)
    return "-".join(letters[at : at + _GROUP_LETTERS] for at in range(0, len(letters), _GROUP_LETTERS))


def generate_letters(number: int, randomness: Randomness) -> str:
    """Return C{number} random letters from the alphabet of typed codes, at most 20."""
    left, letters = int.from_bytes(randomness(_TYPED_BYTES), "big"), ""
    for _ in range(number):
        left, choice = divmod(left, len(_LETTERS))
        letters += _LETTERS[choice]
    return letters


def read_code(code: str) -> str:
    """Return the normal form of a typed code.  Other texts are returned unchanged."""
    letters = _BETWEEN.sub("", code).upper()
    return letters if _typed(letters) else code


OPEN_SECONDS = 60.0
TYPE_SECONDS = 120.0
CONFIRM_SECONDS = 120.0
_REMEMBERED_SECONDS = 600.0
_WAITING = (HandOverState.MADE, HandOverState.OPENED)


@frozen
class BrowserHandOver:
    """A login that is being handed over to a browser.

    :ivar maker: SHA-256 of the token of the login that starts the hand-over.
    :ivar code: SHA-256 of the code.
    :ivar until: the time, in the clock's seconds, at which the hand-over expires in its present state.
    :ivar cookie: SHA-256 of the browser's cookie, or empty before a browser has opened the code.
    :ivar page_key: SHA-256 of the page's key, or empty before a browser has opened the code and after registration.
    :ivar key: the page's public key, or empty before registration.
    :ivar words: the words that the browser shows.
    """

    maker: str = field(repr=False)
    code: str = field(repr=False)
    until: float
    state: HandOverState = HandOverState.MADE
    cookie: str = field(default="", repr=False)
    page_key: str = field(default="", repr=False)
    key: bytes = field(default=b"", repr=False)
    words: str = field(default="", repr=False)


class HandOvers:
    """The table of hand-overs: the newest one of each login."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._by_maker: dict[str, BrowserHandOver] = {}

    def begin(self, maker: str, code: str, seconds: float) -> None:
        """Start a hand-over that expires after C{seconds}, replacing any earlier one of the login."""
        now = self._clock.seconds()
        remembered = now - _REMEMBERED_SECONDS
        self._by_maker = {key: each for key, each in self._by_maker.items() if each.until > remembered}
        self._by_maker[maker] = BrowserHandOver(maker, code, now + seconds)

    def open(self, hand_over: BrowserHandOver, cookie: str, page_key: str, words: str) -> None:
        """Record that a browser opened the code and waits for the person."""
        until = self._clock.seconds() + CONFIRM_SECONDS
        opened = evolve(
            hand_over, state=HandOverState.OPENED, cookie=cookie, page_key=page_key, words=words, until=until
        )
        self._by_maker[hand_over.maker] = opened

    def bind(self, hand_over: BrowserHandOver, key: bytes) -> None:
        """Bind the hand-over to the browser's public key and invalidate the page key."""
        self._by_maker[hand_over.maker] = evolve(hand_over, page_key="", key=key)

    def end(self, hand_over: BrowserHandOver, state: HandOverState) -> None:
        """Set a final state."""
        self._by_maker[hand_over.maker] = evolve(hand_over, state=state, words="")

    def of(self, maker: str) -> BrowserHandOver | None:
        """Return the hand-over of a login, or None if there is none."""
        return self._now(self._by_maker.get(maker))

    def by_code(self, code: str) -> BrowserHandOver | None:
        """Return the hand-over of a code in its current state, or None if the code is unknown."""
        found = (each for each in self._by_maker.values() if hmac.compare_digest(each.code, code))
        return self._now(next(found, None))

    def by_browser(self, cookie: str) -> BrowserHandOver | None:
        """Return the hand-over of the browser with this cookie, or None if there is none."""
        found = (each for each in self._by_maker.values() if hmac.compare_digest(each.cookie, cookie))
        return self._now(next(found, None))

    def clear(self) -> None:
        """Remove all hand-overs."""
        self._by_maker.clear()

    def _now(self, hand_over: BrowserHandOver | None) -> BrowserHandOver | None:
        if hand_over is None or hand_over.state not in _WAITING or self._clock.seconds() < hand_over.until:
            return hand_over
        return evolve(hand_over, state=HandOverState.LATE, words="")
