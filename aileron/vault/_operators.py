"""The operator's logins: mutual authentication in a terminal, and from there one browser per code."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection
from typing import Protocol

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from aileron.model.errors import Conflict, Forbidden, Unauthorized
from aileron.model.sessions import HandOver, HandOverState, OperatorSession, SignedRequest

from ._cipher import Randomness
from ._logins import (
    OPEN_SECONDS,
    TYPE_SECONDS,
    BrowserHandOver,
    HandOvers,
    Login,
    Logins,
    ReplayCache,
    Throttle,
    generate_typed_code,
    read_code,
)
from ._passphrase import are_same_words, generate_two_words
from ._proofs import NONCE_BYTES, LoginExchange, base64url, check_nonce, client_proof, daemon_proof, same
from ._signatures import Signatures, read_public_key

TOKEN_PREFIX = "ail_o_"
_TOKEN_BYTES = 32
_ONCE_SECONDS = 60.0
_MAX_OPEN = 8192
_AGAIN = "Run `aileron open` again."
_WHY_NOT = {
    HandOverState.MADE: "No browser has opened it yet.",
    HandOverState.OPENED: "The page that opened it shows no words yet: it has not told its key.",
    HandOverState.CONFIRMED: "The browser is logged in already.",
    HandOverState.TWICE: f"Somebody else opened it: its code was used twice, so nobody was let in. {_AGAIN}",
    HandOverState.WRONG: f"Other words were typed before, so nobody was let in. {_AGAIN}",
    HandOverState.LATE: f"It is too late: nobody was let in. {_AGAIN}",
}


class HoldsOperatorKey(Protocol):
    """The part of a vault that the logins depend on."""

    def operator_key(self) -> bytes:
        """Return the key of the operator's logins.

        :raises VaultLocked: the vault is not unlocked.
        """

    def locked(self) -> Deferred[None]:
        """Return a Deferred that fires when the vault is locked."""


class Operators:
    """All logins of one run of the daemon, in memory only.  They end with the daemon.

    Locking the vault ends those of terminals, and lets those of browsers only read.

    Tokens, codes, cookies and page keys are stored as SHA-256 only, and words only while a page shows them.

    :param instance: the id of this run of the daemon. Proofs are valid for it alone.
    :param addresses: returns the operator URLs that the daemon serves, as clients write them.
    """

    def __init__(
        self,
        vault: HoldsOperatorKey,
        instance: str,
        addresses: Callable[[], Collection[str]],
        clock: IReactorTime,
        randomness: Randomness = secrets.token_bytes,
    ) -> None:
        self._vault = vault
        self._instance = instance
        self._addresses = addresses
        self._randomness = randomness
        self._logins = Logins(clock, randomness)
        self._challenges: ReplayCache[LoginExchange] = ReplayCache(clock, _ONCE_SECONDS, _MAX_OPEN)
        self._hand_overs = HandOvers(clock)
        self._throttle = Throttle(clock)
        self._signatures = Signatures(instance, clock)
        vault.locked().addCallback(self._end_all)

    def __repr__(self) -> str:
        return f"<Operators {len(self._logins.live())}>"

    def challenge(self, nonce: str, address: str) -> tuple[str, str]:
        key = self._vault.operator_key()
        check_nonce(nonce)
        if address not in self._addresses():
            raise Forbidden("That is no address of this daemon's operator site.")
        exchange = LoginExchange(nonce, base64url(self._randomness(NONCE_BYTES)), self._instance, address)
        self._challenges.put(exchange.daemon_nonce, exchange)
        return exchange.daemon_nonce, daemon_proof(key, exchange)

    def login(self, nonce: str, proof: str) -> tuple[str, OperatorSession]:
        exchange = self._challenges.take(nonce)
        if exchange is None or not same(client_proof(self._vault.operator_key(), exchange), proof):
            self._throttle.failed()
            raise Unauthorized("The login does not hold: ask for a new challenge.")
        self._throttle.succeeded()
        token = TOKEN_PREFIX + self._make_fresh()
        return token, self._logins.start(_hash(token))

    def report_lapses(self, heard: Callable[[OperatorSession], object]) -> None:
        self._logins.report_lapses(heard)

    def delay_seconds(self) -> float:
        return self._throttle.seconds()

    def by_token(self, token: str) -> OperatorSession | None:
        login = self._cli_login(token)
        return None if login is None else login.session

    def hand_over(self, token: str, typed: bool = False) -> str:
        login = self._certain(token)
        code = generate_typed_code(self._randomness) if typed else self._make_fresh()
        self._hand_overs.begin(login.secret, _hash(read_code(code)), TYPE_SECONDS if typed else OPEN_SECONDS)
        return code

    def handed_over(self, token: str) -> HandOverState | None:
        hand_over = self._hand_overs.of(_hash(token))
        return None if hand_over is None else hand_over.state

    def redeem(self, code: str) -> tuple[str, str, OperatorSession]:
        hand_over = self._hand_overs.by_code(_hash(read_code(code)))
        maker = None if hand_over is None else self._logins.of_terminal(hand_over.maker)
        if hand_over is None or maker is None or hand_over.state not in (HandOverState.MADE, HandOverState.OPENED):
            raise Unauthorized(f"This code is unknown, spent or late. {_AGAIN}")
        if hand_over.state is HandOverState.OPENED:
            # guard against attack: a code that is used twice lets nobody in -> test_operator_door.CodeTests.test_known
            self._hand_overs.end(hand_over, HandOverState.TWICE)
            raise Conflict(_WHY_NOT[HandOverState.TWICE], {"login": maker.session.id})
        cookie, page_key = self._make_fresh(), self._make_fresh()
        self._hand_overs.open(hand_over, _hash(cookie), _hash(page_key), generate_two_words(self._randomness))
        return cookie, page_key, maker.session

    def register(self, cookie: str, page_key: str, public_key: str) -> str:
        hand_over = self._page_of(cookie, page_key)
        self._hand_overs.bind(hand_over, read_public_key(public_key))
        return self._instance

    def register_again(self, cookie: str, page_key: str, asked: SignedRequest) -> str:
        hand_over = self._page_of(cookie, page_key)
        login = self._logins.of_browser(_hash(asked.cookie))
        # guard against attack: only the holder of a login's key has it decide again
        #    -> test_watching.WatchingTests.test_stolen_cookie
        if login is None or not self._signatures.hold(login.key, asked):
            raise Unauthorized("This browser has no login that could decide again.")
        self._hand_overs.bind(hand_over, login.key, login.secret)
        return self._instance

    def _page_of(self, cookie: str, page_key: str) -> BrowserHandOver:
        """Return the hand-over whose page waits with these, or raise L{Unauthorized}."""
        hand_over = self._hand_overs.by_browser(_hash(cookie))
        waits = hand_over is not None and hand_over.state is HandOverState.OPENED
        if hand_over is None or not waits or not same(hand_over.page_key, _hash(page_key)):
            raise Unauthorized(f"This page is not waiting for a login. {_AGAIN}")
        return hand_over

    def entering(self, asked: SignedRequest) -> HandOver | None:
        hand_over = self._hand_overs.by_browser(_hash(asked.cookie))
        if hand_over is None or not hand_over.key or not self._signatures.hold(hand_over.key, asked):
            return None
        is_new = hand_over.state is HandOverState.CONFIRMED and not hand_over.raises
        return HandOver(hand_over.state, hand_over.words, asked.cookie if is_new else "")

    def confirm(self, token: str, words: str) -> OperatorSession:
        """Confirm the hand-over.  The browser may decide at the latest until the end of the terminal's login."""
        login = self._certain(token)
        hand_over = self._hand_overs.of(login.secret)
        if hand_over is None or hand_over.state is not HandOverState.OPENED or not hand_over.key:
            state = HandOverState.MADE if hand_over is None else hand_over.state
            raise Conflict(_WHY_NOT[state], {"state": state.value})
        if not are_same_words(hand_over.words, words):
            self._hand_overs.end(hand_over, HandOverState.WRONG)
            raise Forbidden(f"These are not the words that the page shows, so nobody was let in. {_AGAIN}")
        raised = self._logins.raised(hand_over.raises, login.until) if hand_over.raises else None
        if raised is None:
            hand_over = evolve(hand_over, raises="")
        self._hand_overs.end(hand_over, HandOverState.CONFIRMED)
        return raised or self._logins.start(hand_over.cookie, hand_over.key, login.until)

    def knows_cookie(self, cookie: str) -> bool:
        return self._logins.of_browser(_hash(cookie)) is not None

    def expects_cookie(self, cookie: str) -> bool:
        return self._hand_overs.by_browser(_hash(cookie)) is not None

    def by_browser(self, asked: SignedRequest, renew: bool = True) -> OperatorSession | None:
        login = self._logins.of_browser(_hash(asked.cookie))
        if login is None or not self._signatures.hold(login.key, asked):
            return None
        return self._logins.renewed(login).session if renew else login.session

    def log_out(self, session_id: str) -> None:
        self._logins.end(session_id)

    def list(self) -> tuple[OperatorSession, ...]:
        return self._logins.live()

    def _cli_login(self, token: str) -> Login | None:
        login = self._logins.of_terminal(_hash(token)) if token.startswith(TOKEN_PREFIX) else None
        return None if login is None else self._logins.renewed(login)

    def _certain(self, token: str) -> Login:
        login = self._cli_login(token)
        if login is None:
            raise Unauthorized("Only a live login can open a browser.")
        return login

    def _make_fresh(self) -> str:
        return base64url(self._randomness(_TOKEN_BYTES))

    def _end_all(self, _result: None) -> None:
        """End all that may decide.  The nonces stay, because keys of browsers stay valid for reading."""
        self._challenges.clear()
        self._hand_overs.clear()
        self._logins.lock()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
