"""The logins of the operator that have not ended, and their hand-over to browsers.

A login may decide until a time without use, or a maximum time, is over. A terminal's login then ends. A browser's login
may still read, until the daemon ends. A browser logs in with a code, then with two words that the person types in the
terminal.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from typing import Generic, TypeVar

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import utc
from aileron.model.people import AccountLogin
from aileron.model.sessions import HandOverState, OperatorSession

from ._cipher import Randomness

Value = TypeVar("Value")


class ReplayCache(Generic[Value]):
    """A table of at most C{limit} values. Each is removed after C{seconds}, or when it is taken.

    The oldest are evicted.
    """

    def __init__(self, clock: IReactorTime, seconds: float, limit: int) -> None:
        self._clock = clock
        self._seconds = seconds
        self._limit = limit
        self._kept: dict[str, tuple[float, Value]] = {}

    def put(self, key: str, value: Value) -> None:
        """Store a value. If the table is full, remove the oldest value."""
        while len(self._kept) >= self._limit:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (self._clock.seconds() + self._seconds, value)

    def take(self, key: str) -> Value | None:
        """Remove and return a value, or return None if it is unknown, taken already or expired."""
        until, value = self._kept.pop(key, (0.0, None))
        return value if self._clock.seconds() < until else None

    def has(self, key: str) -> bool:
        """Return whether a value is stored and has not expired."""
        return self._clock.seconds() < self._kept.get(key, (0.0, None))[0]

    def clear(self) -> None:
        """Remove all stored values."""
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
        """Count a failed login, so that later responses are delayed more."""
        self._failures = min(_MOST_COUNTED, self._count() + 1)
        self._failed_at = self._clock.seconds()

    def succeeded(self) -> None:
        """Note a successful login, so that responses are not delayed any more."""
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
    """A live login of the operator, in a terminal or a browser.

    :ivar secret: SHA-256 of its token or cookie.
    :ivar key: the public key of its browser, or empty for a terminal.
    :ivar until: the time after which it may not decide, in the clock's seconds.
    :ivar ends: the time after which it may not decide unless it is used before.
    :ivar reported: True once it was reported that the login may decide no more. It then may not, even if the clock is
        set back.
    :ivar signs_with: the public key with which a terminal signs decisions, or empty if it has none.
    """

    session: OperatorSession
    secret: str = field(repr=False)
    key: bytes = field(repr=False)
    until: float
    ends: float
    reported: bool = False
    signs_with: str = ""


class Logins:
    """The live logins of the operator, each found by the hash of its secret: a token or a cookie."""

    def __init__(self, clock: IReactorTime, randomness: Randomness) -> None:
        self._clock = clock
        self._randomness = randomness
        self._lapsed: Callable[[OperatorSession], object] = lambda _: None
        self._by_secret: dict[str, Login] = {}
        self._awaited: set[str] = set()

    def report_lapses(self, heard: Callable[[OperatorSession], object]) -> None:
        """Register C{heard}. It is called with the session of each browser's login that from then on may only read."""
        self._lapsed = heard

    def start(
        self,
        secret: str,
        key: bytes = b"",
        until: float | None = None,
        signs_with: str = "",
        passkey: str | None = None,
        account: AccountLogin | None = None,
    ) -> OperatorSession:
        """Start a login and return its session.

        :param secret: SHA-256 of its token or cookie.
        :param key: see L{Login}.
        :param until: the latest time at which it may decide, or None for twelve hours from now.
        :param signs_with: see L{Login}.
        :param passkey: the id of the passkey that opens it, or None.
        :param account: the account of the person who opens it, or None for the operator.
        """
        now = self._clock.seconds()
        end = now + ABSOLUTE_SECONDS if until is None else until
        session_id = ("ops_" if account is None else f"{account.name}.") + self._randomness(_ID_BYTES).hex()
        times = utc(now), utc(now), utc(end), utc(end)
        session = OperatorSession(session_id, *times, browser=bool(key), passkey=passkey, account=account)
        login = self.renewed(Login(session, secret, key, end, end, signs_with=signs_with))
        self._await_lapse(login)
        return login.session

    def raised(self, secret: str, until: float) -> OperatorSession | None:
        """Allow a browser's login that may only read to decide again, and return its session.

        Return None if the login has ended.

        :param secret: SHA-256 of the browser's cookie.
        :param until: the latest time at which the login may decide.
        """
        login = self.of_browser(secret)
        if login is None:
            return None
        proved = evolve(login.session, proved_at=utc(self._clock.seconds()))
        return self._raise(evolve(login, session=proved), until).session

    def raised_by_touch(self, login: Login) -> Login:
        """Allow a browser's login to decide for as long as a new login, after a passkey confirmed it. Return the login.

        C{proved_at} of its session stays: neither the passphrase nor the two words were typed.
        """
        return self._raise(login, self._clock.seconds() + ABSOLUTE_SECONDS)

    def _raise(self, login: Login, until: float) -> Login:
        session = evolve(login.session, ends_at=utc(until))
        raised = self.renewed(evolve(login, until=until, ends=until, reported=False, session=session))
        self._await_lapse(raised)
        return raised

    def of_terminal(self, secret: str) -> Login | None:
        """Return the live login of a terminal, or None if there is none.

        :param secret: SHA-256 of the terminal's token.
        """
        return self._live(secret, browser=False)

    def of_browser(self, secret: str) -> Login | None:
        """Return the live login of a browser, or None.

        The caller must also verify the key with which the browser signs its requests.
        C{session.decides} of the login is true if it may decide, not only read.
        A login at the public name is left out: see L{of_passkey}.

        :param secret: SHA-256 of the browser's cookie.
        """
        login = self._live(secret, browser=True)
        # guard of the phone: a phone's login opens nothing at the desk
        #    -> phone.test_door.LoginTests.test_at_the_desk, instead return login
        return None if login is None or login.session.is_public else login

    def of_passkey(self, secret: str) -> Login | None:
        """Return the live login of a browser at the public name, or None. Logins at the desk are left out.

        A passkey or a person's passphrase opened it.

        The caller must also verify the key with which the browser signs its requests. C{session.decides} of the login
        is true if it may decide, not only read.

        :param secret: SHA-256 of the browser's cookie.
        """
        login = self._live(secret, browser=True)
        # guard of the phone: a desk's login opens nothing at the public name
        #    -> phone.test_door.LoginTests.test_of_the_desk, instead return login
        return login if login is not None and login.session.is_public else None

    def of_session(self, session_id: str) -> Login | None:
        """Return the live login of a session, or None if there is none."""
        self._drop_ended()
        found = next((each for each in self._by_secret.values() if each.session.id == session_id), None)
        return None if found is None else self._with_decides(found)

    def renewed(self, login: Login) -> Login:
        """Restart the idle time of a login, and return the login. A login that may only read still may not decide."""
        now = self._clock.seconds()
        if login.reported or login.ends <= now:
            kept = evolve(login, session=evolve(login.session, used_at=utc(now)))
        else:
            ends = min(login.until, now + IDLE_SECONDS)
            kept = evolve(login, ends=ends, session=evolve(login.session, used_at=utc(now), expires_at=utc(ends)))
        self._by_secret[login.secret] = kept
        return self._with_decides(kept)

    def lock(self) -> None:
        """End terminals' logins, and restrict browsers' logins to reading. Call when the vault is locked.

        The end of each browser's permission to decide is reported.
        """
        now = self._clock.seconds()
        self._by_secret = {secret: login for secret, login in self._by_secret.items() if login.key}
        for login in list(self._by_secret.values()):
            self._restrict(login, now)

    def restrict(self, session_id: str) -> None:
        """Restrict a browser's login to reading, and report that it may not decide any more. Idempotent."""
        login = self.of_session(session_id)
        if login is not None and login.key:
            self._restrict(login, self._clock.seconds())

    def _restrict(self, login: Login, now: float) -> None:
        ends = min(login.ends, now)
        session = evolve(login.session, expires_at=utc(ends), ends_at=min(login.session.ends_at, utc(now)))
        self._by_secret[login.secret] = evolve(login, until=ends, ends=ends, session=session)
        self._report_lapse(login.secret)

    def end(self, session_id: str) -> None:
        """End the login of a session.  Idempotent."""
        self._by_secret = {key: each for key, each in self._by_secret.items() if each.session.id != session_id}

    def live(self) -> tuple[OperatorSession, ...]:
        """Return the operator's live login sessions, newest first."""
        self._drop_ended()
        live = sorted(self._by_secret.values(), key=_age, reverse=True)
        return tuple(self._with_decides(login).session for login in live)

    def _live(self, secret: str, *, browser: bool) -> Login | None:
        self._drop_ended()
        login = self._by_secret.get(secret)  # timing reveals at most a part of a hash
        return self._with_decides(login) if login is not None and bool(login.key) == browser else None

    def _drop_ended(self) -> None:
        now = self._clock.seconds()
        for secret in [key for key, login in self._by_secret.items() if login.ends <= now and not login.key]:
            del self._by_secret[secret]

    def _with_decides(self, login: Login) -> Login:
        """Return the login with C{session.decides} set to whether it may decide now."""
        decides = not login.reported and self._clock.seconds() < login.ends
        return evolve(login, session=evolve(login.session, decides=decides))

    def _await_lapse(self, login: Login) -> None:
        """Schedule the report that a browser's login may no longer decide. Each use of the login postpones it."""
        if login.key and login.secret not in self._awaited:
            self._awaited.add(login.secret)
            self._check_lapse(login.secret)

    def _check_lapse(self, secret: str) -> None:
        login = self._by_secret.get(secret)
        left = 0.0 if login is None else login.ends - self._clock.seconds()
        if left > 0:
            self._clock.callLater(left, self._check_lapse, secret)
            return
        self._awaited.discard(secret)
        self._report_lapse(secret)

    def _report_lapse(self, secret: str) -> None:
        """Report, once, that a browser's login may not decide any more."""
        login = self._by_secret.get(secret)
        if login is not None and not login.reported:
            self._by_secret[secret] = evolve(login, reported=True)
            self._lapsed(self._with_decides(login).session)


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
    """Return the normal form of a typed code: upper case without separators. Other texts are returned unchanged."""
    letters = _BETWEEN.sub("", code).upper()
    return letters if _typed(letters) else code


OPEN_SECONDS = 60.0
TYPE_SECONDS = 120.0
CONFIRM_SECONDS = 120.0
_REMEMBERED_SECONDS = 600.0
_WAITING = (HandOverState.MADE, HandOverState.OPENED)


@frozen
class BrowserHandOver:
    """The hand-over of a terminal's login to a browser, by a code.

    :ivar maker: SHA-256 of the token of the login that starts the hand-over.
    :ivar code: SHA-256 of the code.
    :ivar until: the time, in the clock's seconds, at which the hand-over expires in its present state.
    :ivar cookie: SHA-256 of the browser's cookie, or empty before a browser has opened the code.
    :ivar page_key: SHA-256 of the page's key, or empty before a browser has opened the code and after registration.
    :ivar key: the page's public key, or empty before registration.
    :ivar words: the words that the browser shows.
    :ivar session: the id of the session that a passkey let in, or empty.
    :ivar raises: SHA-256 of the cookie of the browser's present login, which is to decide again, or empty for a new
        login.
    :ivar adds_passkey: True if the page may make a passkey before its words are typed.
    """

    maker: str = field(repr=False)
    code: str = field(repr=False)
    until: float
    state: HandOverState = HandOverState.MADE
    cookie: str = field(default="", repr=False)
    page_key: str = field(default="", repr=False)
    key: bytes = field(default=b"", repr=False)
    words: str = field(default="", repr=False)
    raises: str = field(default="", repr=False)
    session: str = ""
    adds_passkey: bool = False


class HandOvers:
    """The hand-overs of logins to browsers: the newest one of each login."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._by_maker: dict[str, BrowserHandOver] = {}

    def begin(self, maker: str, code: str, seconds: float, *, adds_passkey: bool = False) -> None:
        """Start to hand a login over to a browser.

        It expires after C{seconds}, and replaces an earlier one of the login.

        :param maker: SHA-256 of the token of the login.
        :param code: SHA-256 of the code for the browser.
        :param adds_passkey: see L{BrowserHandOver}.
        """
        now = self._clock.seconds()
        remembered = now - _REMEMBERED_SECONDS
        self._by_maker = {key: each for key, each in self._by_maker.items() if each.until > remembered}
        self._by_maker[maker] = BrowserHandOver(maker, code, now + seconds, adds_passkey=adds_passkey)

    def open(self, hand_over: BrowserHandOver, cookie: str, page_key: str, words: str) -> None:
        """Record that a browser opened the code of a hand-over and waits until the person types its two words."""
        until = self._clock.seconds() + CONFIRM_SECONDS
        opened = evolve(
            hand_over, state=HandOverState.OPENED, cookie=cookie, page_key=page_key, words=words, until=until
        )
        self._by_maker[hand_over.maker] = opened

    def bind(self, hand_over: BrowserHandOver, key: bytes, raises: str = "") -> None:
        """Record the public key of the browser of a hand-over. Its page key is no longer valid then.

        :param raises: SHA-256 of the cookie of the login that is to decide again, or empty for a new login.
        """
        self._by_maker[hand_over.maker] = evolve(hand_over, page_key="", key=key, raises=raises)

    def end(self, hand_over: BrowserHandOver, state: HandOverState) -> None:
        """Set a final state of a hand-over, and delete its two words."""
        self._by_maker[hand_over.maker] = evolve(hand_over, state=state, words="")

    def of(self, maker: str) -> BrowserHandOver | None:
        """Return the hand-over that a login started, or None if there is none.

        :param maker: SHA-256 of the token of the login.
        """
        return self._now(self._by_maker.get(maker))

    def by_code(self, code: str) -> BrowserHandOver | None:
        """Return the hand-over that has this code, in its current state, or None if the code is unknown."""
        found = (each for each in self._by_maker.values() if hmac.compare_digest(each.code, code))
        return self._now(next(found, None))

    def by_browser(self, cookie: str) -> BrowserHandOver | None:
        """Return the hand-over to the browser that has this cookie, or None if there is none."""
        found = (each for each in self._by_maker.values() if hmac.compare_digest(each.cookie, cookie))
        return self._now(next(found, None))

    def clear(self) -> None:
        """Remove all hand-overs."""
        self._by_maker.clear()

    def _now(self, hand_over: BrowserHandOver | None) -> BrowserHandOver | None:
        if hand_over is None or hand_over.state not in _WAITING or self._clock.seconds() < hand_over.until:
            return hand_over
        return evolve(hand_over, state=HandOverState.LATE, words="")
