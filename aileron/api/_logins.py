"""The interface of the operator's logins as the sites use it. The vault's room implements it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from aileron.model.sessions import HandOver, HandOverState, OperatorSession, SignedRequest


class OperatorLogins(Protocol):
    """Logins of the operator, by a mutual proof of the key that only the passphrase opens."""

    def challenge(self, nonce: str, address: str) -> tuple[str, str]:
        """Start a login: the daemon proves its identity first.

        :param nonce: the client's nonce, 16 to 64 bytes as unpadded base64url.
        :param address: the operator URL that the client believes it is connected to.
        :return: the daemon's nonce (single use, valid for 60 s), and its proof over both nonces, the daemon's instance
            and the address.
        :raises VaultLocked: the vault is not unlocked.
        :raises InvalidRequest: the nonce is malformed.
        :raises Forbidden: the address is not an address of this daemon.
        """

    def login(self, nonce: str, proof: str) -> tuple[str, OperatorSession]:
        """Verify the client's proof for a daemon's nonce. The nonce is spent in any case.

        :return: a new operator token, shown once, and its session.
        :raises Unauthorized: the proof is wrong.
        """

    def delay_seconds(self) -> float:
        """Return the delay of the answer to the next failed login, in seconds.

        It grows from 0 to 5 s with the failures of the last minute.
        """

    def by_token(self, token: str) -> OperatorSession | None:
        """Return the session of a token, or None if the token is unknown, expired or logged out."""

    def hand_over(self, token: str, typed: bool = False) -> str:
        """Return a code that one browser can redeem once within 60 s, or within 120 s if a person types it.

        An earlier code of this login that is not confirmed yet becomes invalid.

        :param typed: True for a short code in groups of letters, for a person to type or copy.
        :raises Unauthorized: the token belongs to no live session.
        """

    def handed_over(self, token: str) -> HandOverState | None:
        """Return the progress of the last hand-over of this login, or None if there was none."""

    def redeem(self, code: str) -> tuple[str, str, OperatorSession]:
        """Redeem a code for a browser. The browser has no rights until its two words are typed in the terminal.

        The words can be typed within 120 s.

        :param code: the code. In a typed code, case and separators of groups are ignored.
        :return: the cookie's value, the page key, and the session of the login that created the code.
        :raises Conflict: the code was redeemed before and waits for its two words. Both uses become invalid.
            C{details} have the ID of the session that created the code, as C{login}.
        :raises Unauthorized: the code is unknown or expired, the login that created the code has ended, or the
            hand-over has ended: confirmed, refused or redeemed twice.
        """

    def register(self, cookie: str, page_key: str, public_key: str) -> str:
        """Register the public key of the waiting page with this cookie and page key.

        From then on only its signature counts.

        :param public_key: an uncompressed P-256 point, as unpadded base64url.
        :return: the daemon's instance, which the page's signatures include.
        :raises Unauthorized: no page waits with these, or it has already registered a key.
        :raises InvalidRequest: the key is invalid. The page may register another one.
        """

    def register_again(self, cookie: str, page_key: str, asked: SignedRequest) -> str:
        """Register the key of the browser's present login for the waiting page. The confirmed login decides again.

        :param asked: the page's request, with the cookie and the signature of the present login.
        :return: the daemon's instance.
        :raises Unauthorized: no page waits with these, it has already registered a key, or no login has signed the
            request. In the last case the page may still register a key of its own.
        """

    def entering(self, asked: SignedRequest) -> HandOver | None:
        """Return the hand-over of the browser that signed this, or None if this request was sent before."""

    def confirm(self, token: str, words: str) -> OperatorSession:
        """Allow the waiting browser to decide if C{words} are those that it shows. A wrong answer rejects the browser.

        :param words: the words as typed. Case and spacing are ignored.
        :return: the browser's session: a new one, or the one for which the page has registered its key again.
        :raises Unauthorized: the token belongs to no live session.
        :raises Conflict: no browser waits for words. C{details} contain the C{state}.
        :raises Forbidden: the words are wrong. The waiting browser is rejected for good.
        """

    def knows_cookie(self, cookie: str) -> bool:
        """Return whether this cookie belongs to a browser that is logged in, to decide or only to read."""

    def expects_cookie(self, cookie: str) -> bool:
        """Return whether this cookie belongs to a page that waits for its words, or has waited lately."""

    def by_browser(self, asked: SignedRequest, renew: bool = True) -> OperatorSession | None:
        """Return the browser session that signed this request, or None. The cookie alone is never enough.

        The caller must check whether the session decides.

        :param asked: a request signed by the session's key, for this process of the daemon and this time. A repeated
            request is refused.
        :param renew: True if the request restarts the session's idle time. Requests that a page sends by itself do not.
        """

    def report_lapses(self, heard: Callable[[OperatorSession], object]) -> None:
        """Register C{heard}, which is called with each browser session when its permission to decide ends."""

    def log_out(self, session_id: str) -> None:
        """End one session. Idempotent."""

    def list(self) -> tuple[OperatorSession, ...]:
        """Return the live sessions, newest first."""
