"""Logins on their way to a browser: a code for the browser, then two words that the person carries to the terminal."""

from __future__ import annotations

import hmac

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.values import HandOverState

OPEN_SECONDS = 60.0
CONFIRM_SECONDS = 120.0
_REMEMBERED_SECONDS = 600.0
_WAITING = (HandOverState.MADE, HandOverState.OPENED)


@frozen
class Passing:
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
        self._by_maker: dict[str, Passing] = {}

    def begin(self, maker: str, code: str) -> None:
        """Wait for a browser; whatever this login had begun before is void."""
        now = self._clock.seconds()
        remembered = now - _REMEMBERED_SECONDS
        self._by_maker = {key: each for key, each in self._by_maker.items() if each.until > remembered}
        self._by_maker[maker] = Passing(maker, code, now + OPEN_SECONDS)

    def open(self, passing: Passing, cookie: str, page_key: str, words: str) -> None:
        """Let a browser wait for the person."""
        until = self._clock.seconds() + CONFIRM_SECONDS
        opened = evolve(passing, state=HandOverState.OPENED, cookie=cookie, page_key=page_key, words=words, until=until)
        self._by_maker[passing.maker] = opened

    def bind(self, passing: Passing, key: bytes) -> None:
        """Let only the holder of this key be who waits; the page key is spent."""
        self._by_maker[passing.maker] = evolve(passing, page_key="", key=key)

    def end(self, passing: Passing, state: HandOverState) -> None:
        """It goes no further."""
        self._by_maker[passing.maker] = evolve(passing, state=state, words="")

    def of(self, maker: str) -> Passing | None:
        """That of a login."""
        found = self._by_maker.get(maker)
        return None if found is None else self._now(found)

    def by_code(self, code: str) -> Passing | None:
        """That of a code, whatever became of it since."""
        return next((self._now(each) for each in self._by_maker.values() if hmac.compare_digest(each.code, code)), None)

    def by_browser(self, cookie: str) -> Passing | None:
        """That of the browser that got this cookie."""
        found = (each for each in self._by_maker.values() if hmac.compare_digest(each.cookie, cookie))
        return next((self._now(each) for each in found), None)

    def clear(self) -> None:
        """Forget all."""
        self._by_maker.clear()

    def _now(self, passing: Passing) -> Passing:
        late = passing.state in _WAITING and self._clock.seconds() >= passing.until
        return evolve(passing, state=HandOverState.LATE, words="") if late else passing
