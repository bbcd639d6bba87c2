"""The operator's logins: a mutual proof in a terminal, and from there one browser by one code."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.errors import Forbidden, Unauthorized
from aileron.interfaces import IOperators
from aileron.values import OperatorSession

from ._cipher import Randomness
from ._logins import Login, Logins
from ._proofs import NONCE_BYTES, Exchange, base64url, check_nonce, client_proof, daemon_proof, same
from ._spent_once import SpentOnce

TOKEN_PREFIX = "ail_o_"
_TOKEN_BYTES = 32
_ONCE_SECONDS = 60.0
_MAX_OPEN = 256


class HoldsOperatorKey(Protocol):
    """What of a vault the logins hang on."""

    def operator_key(self) -> bytes:
        """The key, or L{aileron.errors.VaultLocked}."""

    def locked(self) -> Deferred[None]:
        """Fires when it is locked."""


@implementer(IOperators)
class Operators:
    """All logins of one life of the daemon, in memory; they end with it and when the vault is locked.

    Tokens, codes, cookies and page keys are kept as SHA-256 only.

    :param instance: of this life of the daemon; a proof holds for no other.
    :param addresses: the operator URLs that we listen on, as clients write them.
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
        self._challenges: SpentOnce[Exchange] = SpentOnce(clock, _ONCE_SECONDS, _MAX_OPEN)
        self._codes: SpentOnce[str] = SpentOnce(clock, _ONCE_SECONDS, _MAX_OPEN)
        vault.locked().addCallback(self._end_all)

    def __repr__(self) -> str:
        return f"<Operators {len(self._logins.live())}>"

    def challenge(self, nonce: str, address: str) -> tuple[str, str]:
        """See L{IOperators}."""
        key = self._vault.operator_key()
        check_nonce(nonce)
        if address not in self._addresses():
            raise Forbidden("That is no address of this daemon's operator site.")
        exchange = Exchange(nonce, base64url(self._randomness(NONCE_BYTES)), self._instance, address)
        self._challenges.put(exchange.daemon_nonce, exchange)
        return exchange.daemon_nonce, daemon_proof(key, exchange)

    def login(self, nonce: str, proof: str) -> tuple[str, OperatorSession]:
        """See L{IOperators}."""
        exchange = self._challenges.take(nonce)
        if exchange is None or not same(client_proof(self._vault.operator_key(), exchange), proof):
            raise Unauthorized("The login does not hold: ask for a new challenge.")
        token = TOKEN_PREFIX + self._fresh()
        return token, self._logins.start(_hashed(token))

    def by_token(self, token: str) -> OperatorSession | None:
        """See L{IOperators}."""
        login = self._cli_login(token)
        return None if login is None else login.session

    def hand_over(self, token: str) -> str:
        """See L{IOperators}."""
        if self._cli_login(token) is None:
            raise Unauthorized("Only a live login can open a browser.")
        code = self._fresh()
        self._codes.put(_hashed(code), _hashed(token))
        return code

    def redeem(self, code: str) -> tuple[str, str, OperatorSession]:
        """See L{IOperators}.  The browser is not logged in beyond the twelve hours of the login that made the code."""
        maker = self._codes.take(_hashed(code))
        parent = None if maker is None else self._logins.use(maker)
        if parent is None:
            raise Unauthorized("This code is unknown, spent or late: run `aileron open` again.")
        cookie, page_key = self._fresh(), self._fresh()
        session = self._logins.start(_hashed(cookie), page_key=_hashed(page_key), until=parent.until)
        return cookie, page_key, session

    def by_browser(self, cookie: str, page_key: str) -> OperatorSession | None:
        """See L{IOperators}."""
        login = self._logins.use(_hashed(cookie), page_key=_hashed(page_key))
        return None if login is None else login.session

    def log_out(self, session_id: str) -> None:
        """See L{IOperators}."""
        self._logins.end(session_id)

    def list(self) -> tuple[OperatorSession, ...]:
        """See L{IOperators}."""
        return self._logins.live()

    def _cli_login(self, token: str) -> Login | None:
        return self._logins.use(_hashed(token)) if token.startswith(TOKEN_PREFIX) else None

    def _fresh(self) -> str:
        return base64url(self._randomness(_TOKEN_BYTES))

    def _end_all(self, _result: None) -> None:
        self._challenges.clear()
        self._codes.clear()
        self._logins.clear()


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
