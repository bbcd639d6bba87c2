"""The operator's logins: in a terminal, where both sides prove that they have the vault's key, and in a browser.

A browser logs in by a code that a terminal's login makes.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection
from typing import Protocol

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from aileron.base.signatures import check_public_key, write_base64url, write_point
from aileron.model.errors import Conflict, Forbidden, InvalidRequest, LoginLapsed, Unauthorized
from aileron.model.people import AccountLogin
from aileron.model.sessions import (
    HandOver,
    HandOverState,
    LapsedLogin,
    NewPasskeyPage,
    OperatorSession,
    SignedRequest,
    SignIn,
)
from aileron.model.signing import EnrolledKey, KeyKind

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
from ._proofs import NONCE_BYTES, LoginExchange, check_nonce, client_proof, daemon_proof, same
from ._signatures import Signatures, read_public_key

TOKEN_PREFIX = "ail_o_"
_TOKEN_BYTES = 32
_ONCE_SECONDS = 60.0
_MAX_OPEN = 8192
_AGAIN = "Run `aileron open` again."
_NOT_LAPSED = "This browser has no login that your passkey could let decide again. Run `aileron open`."
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

        :raises VaultLocked: if the vault is not unlocked.
        """

    def locked(self) -> Deferred[None]:
        """Return a Deferred that fires with None when the vault is locked."""


class Operators:
    """The logins of one daemon process, in memory only. They end with the daemon.

    Locking the vault ends the logins of terminals, and restricts the logins of browsers to reading.

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
        vault.locked().addCallback(self._restrict_logins)

    def __repr__(self) -> str:
        return f"<Operators {len(self._logins.live())}>"

    def challenge(self, nonce: str, address: str) -> tuple[str, str]:
        key = self._vault.operator_key()
        check_nonce(nonce)
        if address not in self._addresses():
            raise Forbidden("That is no address of this daemon's operator site.")
        exchange = LoginExchange(nonce, write_base64url(self._randomness(NONCE_BYTES)), self._instance, address)
        self._challenges.put(exchange.daemon_nonce, exchange)
        return exchange.daemon_nonce, daemon_proof(key, exchange)

    def login(self, nonce: str, proof: str, public_key: str = "") -> tuple[str, OperatorSession]:
        exchange = self._challenges.take(nonce)
        _check_key(public_key)
        if exchange is not None:
            exchange = evolve(exchange, public_key=public_key)
        if exchange is None or not same(client_proof(self._vault.operator_key(), exchange), proof):
            self._throttle.failed()
            raise Unauthorized("The login does not hold: ask for a new challenge.")
        self._throttle.succeeded()
        token = TOKEN_PREFIX + self._make_fresh()
        return token, self._logins.start(_hash(token), signs_with=public_key)

    def report_lapses(self, heard: Callable[[OperatorSession], object]) -> None:
        self._logins.report_lapses(heard)

    def delay_seconds(self) -> float:
        return self._throttle.seconds()

    def by_token(self, token: str) -> OperatorSession | None:
        login = self._cli_login(token)
        return None if login is None else login.session

    def hand_over(self, token: str, typed: bool = False, adds_passkey: bool = False) -> str:
        login = self._certain(token)
        code = generate_typed_code(self._randomness) if typed else self._make_fresh()
        seconds = TYPE_SECONDS if typed else OPEN_SECONDS
        self._hand_overs.begin(login.secret, _hash(read_code(code)), seconds, adds_passkey=adds_passkey)
        return code

    def handed_over(self, token: str) -> HandOverState | None:
        hand_over = self._hand_overs.of(_hash(token))
        return None if hand_over is None else hand_over.state

    def redeem(self, code: str) -> tuple[str, str, OperatorSession]:
        hand_over = self._hand_overs.by_code(_hash(read_code(code)))
        maker = None if hand_over is None else self._logins.of_terminal(hand_over.maker)
        if hand_over is not None and hand_over.session and hand_over.state is HandOverState.CONFIRMED:
            # guard of signing: a code that is used twice ends what a passkey let in
            #    -> vault.test_sign_in.SignInTests.test_twice
            self._end_twice(hand_over)
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
        """Return the hand-over to the browser whose page waits with this cookie and page key.

        :raises Unauthorized: if there is none, or its page does not wait any more.
        """
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
        cookie = asked.cookie if is_new else ""
        return HandOver(hand_over.state, hand_over.words, cookie, hand_over.adds_passkey)

    def confirm(self, token: str, words: str) -> OperatorSession:
        """Confirm the hand-over that the terminal's login started, and return the session of the browser's login.

        The browser's login may decide until the end of the terminal's login at the latest.

        :raises Unauthorized: if C{token} is not that of a live login.
        :raises Conflict: if no page of this hand-over waits. C{details["state"]} is the hand-over's state.
        :raises Forbidden: if C{words} are wrong, which ends the hand-over.
        """
        login = self._certain(token)
        hand_over = self._hand_overs.of(login.secret)
        if hand_over is None or hand_over.state is not HandOverState.OPENED or not hand_over.key:
            state = HandOverState.MADE if hand_over is None else hand_over.state
            raise Conflict(_WHY_NOT[state], {"state": state.value})
        if not are_same_words(hand_over.words, words):
            self._hand_overs.end(hand_over, HandOverState.WRONG)
            raise Forbidden(f"These are not the words that the page shows, so nobody was let in. {_AGAIN}")
        return self._let_in(hand_over, login)

    def _let_in(self, hand_over: BrowserHandOver, login: Login, *, touched: bool = False) -> OperatorSession:
        """Complete a hand-over: its browser may decide, at the latest until the end of the terminal's login.

        If the browser's present login has ended, start a new one.

        :param touched: whether a passkey let the browser in, instead of the two words.
        :return: the session of the browser's login.
        """
        raised = self._logins.raised(hand_over.raises, login.until) if hand_over.raises else None
        if raised is None:
            hand_over = evolve(hand_over, raises="")
        session = raised or self._logins.start(hand_over.cookie, hand_over.key, login.until)
        let_in = evolve(hand_over, session=session.id) if touched else hand_over
        self._hand_overs.end(let_in, HandOverState.CONFIRMED)
        return session

    def _end_twice(self, hand_over: BrowserHandOver) -> None:
        """End the login that a passkey confirmed, because a second browser has used the same code.

        :raises Conflict: always.
        """
        self._logins.end(hand_over.session)
        self._hand_overs.end(hand_over, HandOverState.TWICE)
        maker = self._logins.of_terminal(hand_over.maker)
        login = "" if maker is None else maker.session.id
        raise Conflict(_WHY_NOT[HandOverState.TWICE], {"login": login})

    def signing_in(self, asked: SignedRequest) -> SignIn:
        hand_over, maker = self._waiting(asked)
        return SignIn(maker.session.id, hand_over.code, write_point(hand_over.key))

    def adding_passkey(self, asked: SignedRequest) -> NewPasskeyPage:
        hand_over, maker = self._waiting(asked)
        # guard of signing: a page that only logs in adds no passkey -> vault.test_sign_in.NewPasskeyTests.test_plain
        if not hand_over.adds_passkey:
            raise Unauthorized("This page adds no passkey. Run `aileron passkey add`.")
        return NewPasskeyPage(maker.session.id, hand_over.words)

    def _waiting(self, asked: SignedRequest) -> tuple[BrowserHandOver, Login]:
        """Return the hand-over whose waiting page signed this request, and the login that started the hand-over.

        :raises Unauthorized: if there is none, or that login has ended.
        """
        hand_over = self._hand_overs.by_browser(_hash(asked.cookie))
        waits = hand_over is not None and hand_over.state is HandOverState.OPENED
        if hand_over is None or not waits or not hand_over.key or not self._signatures.hold(hand_over.key, asked):
            raise Unauthorized(f"This page is not waiting for a login. {_AGAIN}")
        maker = self._logins.of_terminal(hand_over.maker)
        if maker is None:
            raise Unauthorized(f"The login that opened this page has ended. {_AGAIN}")
        return hand_over, maker

    def confirm_touched(self, sign_in: SignIn) -> OperatorSession:
        hand_over = self._hand_overs.by_code(sign_in.code)
        login = None if hand_over is None else self._logins.of_terminal(hand_over.maker)
        waits = hand_over is not None and hand_over.state is HandOverState.OPENED
        if hand_over is None or login is None or not waits or write_point(hand_over.key) != sign_in.public_key:
            raise Unauthorized(f"This page is not waiting for a login. {_AGAIN}")
        return self._let_in(hand_over, login, touched=True)

    def find_lapsed(self, session_id: str) -> LapsedLogin:
        login = self._lapsed(session_id)
        return LapsedLogin(login.session.id, write_point(login.key))

    def raise_touched(self, lapsed: LapsedLogin) -> OperatorSession:
        login = self._lapsed(lapsed.login)
        # guard of signing: a touch for one page's key raises no other -> vault.test_raise.RaiseTests.test_other_key
        if write_point(login.key) != lapsed.public_key:
            raise Conflict(_NOT_LAPSED)
        return self._logins.raised_by_touch(login).session

    def _lapsed(self, session_id: str) -> Login:
        """Return the login of a browser that may only read. Logins at the phone's pages are left out.

        :raises VaultLocked: if the vault is not unlocked.
        :raises Conflict: if there is no such login.
        """
        # guard of signing: no touch raises a login while the vault is locked -> vault.test_raise.RaiseTests.test_locked
        self._vault.operator_key()
        login = self._logins.of_session(session_id)
        if login is None or not login.key or login.session.decides:
            raise Conflict(_NOT_LAPSED)
        # guard of signing: a phone's login is raised nowhere but there -> vault.test_raise.RaiseTests.test_of_a_phone
        if login.session.is_public:
            raise Conflict(_NOT_LAPSED)
        return login

    def restrict(self, session_id: str) -> None:
        self._logins.restrict(session_id)

    def knows_cookie(self, cookie: str) -> bool:
        return self._logins.of_browser(_hash(cookie)) is not None

    def expects_cookie(self, cookie: str) -> bool:
        return self._hand_overs.by_browser(_hash(cookie)) is not None

    def by_browser(self, asked: SignedRequest, renew: bool = True) -> OperatorSession | None:
        login = self._logins.of_browser(_hash(asked.cookie))
        if login is None or not self._signatures.hold(login.key, asked):
            return None
        return self._logins.renewed(login).session if renew else login.session

    def admit_passkey(self, public_key: str, passkey: str, before: str = "") -> tuple[str, OperatorSession]:
        return self._admit(public_key, before, passkey=passkey)

    def admit_account(self, public_key: str, account: AccountLogin, before: str = "") -> tuple[str, OperatorSession]:
        return self._admit(public_key, before, account=account)

    def _admit(
        self, public_key: str, before: str, passkey: str | None = None, account: AccountLogin | None = None
    ) -> tuple[str, OperatorSession]:
        """Start the login of a browser at the public name, in the place of its present one.

        :raises InvalidRequest: if the key is invalid.
        """
        point, cookie = read_public_key(public_key), self._make_fresh()
        replaced = self._logins.of_passkey(_hash(before))
        if replaced is not None:
            self._logins.end(replaced.session.id)
        return cookie, self._logins.start(_hash(cookie), point, passkey=passkey, account=account)

    def knows_passkey_cookie(self, cookie: str) -> bool:
        return self._logins.of_passkey(_hash(cookie)) is not None

    def by_passkey(self, asked: SignedRequest, renew: bool = True) -> OperatorSession | None:
        login = self._logins.of_passkey(_hash(asked.cookie))
        if login is None or not self._signatures.hold(login.key, asked):
            return None
        return self._logins.renewed(login).session if renew else login.session

    def key_of(self, session_id: str) -> EnrolledKey | None:
        login = self._logins.of_session(session_id)
        if login is None or not login.session.decides:
            return None
        if login.key:
            return EnrolledKey(KeyKind.BROWSER, write_point(login.key))
        return EnrolledKey(KeyKind.TERMINAL, login.signs_with) if login.signs_with else None

    def require_key(self, session_id: str) -> EnrolledKey | None:
        """Return the key with which a login signs decisions, or None if it has no key.

        The login may have ended since its request was admitted, because the request waits for the database.

        :raises Unauthorized: if the login has ended.
        :raises LoginLapsed: if it may only read.
        """
        login = self._logins.of_session(session_id)
        if login is None:
            raise Unauthorized("Your login has ended, so nothing was decided. Log in again.")
        if not login.session.decides:
            raise LoginLapsed("Your login may only read by now, so nothing was decided. To decide, run `aileron open`.")
        return self.key_of(session_id)

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
        return write_base64url(self._randomness(_TOKEN_BYTES))

    def _restrict_logins(self, _result: None) -> None:
        """End hand-overs and terminals' logins, and restrict browsers' logins to reading.

        The used signatures of browsers stay stored, because their keys stay valid for reading.
        """
        self._challenges.clear()
        self._hand_overs.clear()
        self._logins.lock()


def _check_key(public_key: str) -> None:
    """Raise L{InvalidRequest} unless the text is empty or a public key."""
    try:
        if public_key:
            check_public_key(public_key)
    except ValueError:
        raise InvalidRequest("The public key is no SubjectPublicKeyInfo as unpadded base64url.") from None


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
