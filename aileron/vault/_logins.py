"""Live logins, and those on their way to a browser.

A login ends after a time without use, and after a time whatever its use.  A browser gets one by a code, then by two
words that the person carries to the terminal.
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
    """A table of at most C{limit} values; each lives C{seconds} or until it is taken; the oldest give way."""

    def __init__(self, clock: IReactorTime, seconds: float, limit: int) -> None:
        self._clock = clock
        self._seconds = seconds
        self._limit = limit
        self._kept: dict[str, tuple[float, Value]] = {}

    def put(self, key: str, value: Value) -> None:
        """Keep a value."""
        while len(self._kept) >= self._limit:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (self._clock.seconds() + self._seconds, value)

    def take(self, key: str) -> Value | None:
        """Take the value, which is gone whatever its age; L{None}: unknown, taken before, or late."""
        until, value = self._kept.pop(key, (0.0, None))
        return value if self._clock.seconds() < until else None

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()


MOST_SECONDS = 5.0
_FREE = 3
_FIRST_SECONDS = 0.25
_FORGOTTEN_SECONDS = 60.0
_MOST_COUNTED = 32


class Throttle:
    """Tells how late a refused login is answered: later with each failure, and at once after a success."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._failures = 0
        self._failed_at = 0.0

    def failed(self) -> None:
        """Count a failure."""
        self._failures = min(_MOST_COUNTED, self._count() + 1)
        self._failed_at = self._clock.seconds()

    def succeeded(self) -> None:
        """Forget the failures before."""
        self._failures = 0

    def seconds(self) -> float:
        """0 for the first tries, then 0.25 s, twice that with each failure, 5 s at most."""
        beyond = self._count() - _FREE
        return 0.0 if beyond < 0 else min(MOST_SECONDS, _FIRST_SECONDS * 2.0**beyond)

    def _count(self) -> int:
        return self._failures if self._clock.seconds() < self._failed_at + _FORGOTTEN_SECONDS else 0


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
        """Return the live login of that token's hash, or L{None}."""
        return self._live(secret, browser=False)

    def of_browser(self, secret: str) -> Login | None:
        """Return the live login of that cookie's hash, or L{None}. It is the browser's only if its key says so too."""
        return self._live(secret, browser=True)

    def renewed(self, login: Login) -> Login:
        """Return the same, used now: its idle time starts again."""
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

    def _live(self, secret: str, *, browser: bool) -> Login | None:
        self._drop_ended()
        login = self._by_secret.get(secret)  # its time tells at most something about a hash
        return login if login is not None and bool(login.key) == browser else None

    def _drop_ended(self) -> None:
        now = self._clock.seconds()
        for secret in [key for key, login in self._by_secret.items() if login.ends <= now]:
            del self._by_secret[secret]


def _age(login: Login) -> tuple[float, str]:
    return login.session.started_at.timestamp(), login.session.id


# The letters that RFC 8628 proposes for codes that are typed (6.1): no vowels, no digits, none that looks like another.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_GROUPS, _GROUP_LETTERS = 5, 4
_TYPED_BYTES = 32
_typed = re.compile(rf"[{_LETTERS}]{{{_GROUPS * _GROUP_LETTERS}}}").fullmatch
_BETWEEN = re.compile(r"[\s\u2010-\u2015-]")


def generate_typed_code(randomness: Randomness) -> str:
    """Make a code that a person can type: five groups of four letters, 86 bits."""
    letters = generate_letters(_GROUPS * _GROUP_LETTERS, randomness)
    return "-".join(letters[at : at + _GROUP_LETTERS] for at in range(0, len(letters), _GROUP_LETTERS))


def generate_letters(number: int, randomness: Randomness) -> str:
    """Return so many random letters of those in typed codes, 20 at most."""
    left, letters = int.from_bytes(randomness(_TYPED_BYTES), "big"), ""
    for _ in range(number):
        left, choice = divmod(left, len(_LETTERS))
        letters += _LETTERS[choice]
    return letters


def read_code(code: str) -> str:
    """Return one form for all in which a person may type a code; what cannot be a typed one stays as it is."""
    letters = _BETWEEN.sub("", code).upper()
    return letters if _typed(letters) else code


OPEN_SECONDS = 60.0
TYPE_SECONDS = 120.0
CONFIRM_SECONDS = 120.0
_REMEMBERED_SECONDS = 600.0
_WAITING = (HandOverState.MADE, HandOverState.OPENED)


@frozen
class BrowserHandOver:
    """One hand-over.

    :ivar maker: SHA-256 of the token of the login that is handed over.
    :ivar code: SHA-256 of the code.
    :ivar until: when it ends if it goes no further, in the clock's seconds.
    :ivar cookie: SHA-256 of what the browser got; empty before one came.
    :ivar page_key: SHA-256 of what its page got; empty before one came, and once that page has told its key.
    :ivar key: the page's public key; empty before it told.
    :ivar words: what the browser shows.
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
    """The table of them: one for each login at most, the newest."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._by_maker: dict[str, BrowserHandOver] = {}

    def begin(self, maker: str, code: str, seconds: float) -> None:
        """Wait so long for a browser; whatever this login had begun before is void."""
        now = self._clock.seconds()
        remembered = now - _REMEMBERED_SECONDS
        self._by_maker = {key: each for key, each in self._by_maker.items() if each.until > remembered}
        self._by_maker[maker] = BrowserHandOver(maker, code, now + seconds)

    def open(self, hand_over: BrowserHandOver, cookie: str, page_key: str, words: str) -> None:
        """Let a browser wait for the person."""
        until = self._clock.seconds() + CONFIRM_SECONDS
        opened = evolve(
            hand_over, state=HandOverState.OPENED, cookie=cookie, page_key=page_key, words=words, until=until
        )
        self._by_maker[hand_over.maker] = opened

    def bind(self, hand_over: BrowserHandOver, key: bytes) -> None:
        """Let only the holder of this key be who waits; the page key is spent."""
        self._by_maker[hand_over.maker] = evolve(hand_over, page_key="", key=key)

    def end(self, hand_over: BrowserHandOver, state: HandOverState) -> None:
        """Note that it goes no further."""
        self._by_maker[hand_over.maker] = evolve(hand_over, state=state, words="")

    def of(self, maker: str) -> BrowserHandOver | None:
        """Return that of a login."""
        return self._now(self._by_maker.get(maker))

    def by_code(self, code: str) -> BrowserHandOver | None:
        """Return that of a code, whatever became of it since."""
        found = (each for each in self._by_maker.values() if hmac.compare_digest(each.code, code))
        return self._now(next(found, None))

    def by_browser(self, cookie: str) -> BrowserHandOver | None:
        """Return that of the browser that got this cookie."""
        found = (each for each in self._by_maker.values() if hmac.compare_digest(each.cookie, cookie))
        return self._now(next(found, None))

    def clear(self) -> None:
        """Forget all."""
        self._by_maker.clear()

    def _now(self, hand_over: BrowserHandOver | None) -> BrowserHandOver | None:
        if hand_over is None or hand_over.state not in _WAITING or self._clock.seconds() < hand_over.until:
            return hand_over
        return evolve(hand_over, state=HandOverState.LATE, words="")
