"""The interface of the operator's logins that the sites use. L{aileron.vault} implements it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

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
from aileron.model.signing import EnrolledKey


class OperatorLogins(Protocol):
    """The operator's logins. In a login, the daemon and the client prove to each other that they have the same key.

    This key can be derived only with the passphrase of the vault.
    """

    def challenge(self, nonce: str, address: str) -> tuple[str, str]:
        """Start a login: the daemon proves its identity first.

        :param nonce: the client's nonce, 16 to 64 bytes as unpadded base64url.
        :param address: the operator URL that the client believes it is connected to.
        :return: the daemon's nonce (single use, valid for 60 s), and its proof over both nonces, the daemon's instance
            and the address.
        :raises VaultLocked: if the vault is not unlocked.
        :raises InvalidRequest: if the nonce is malformed.
        :raises Forbidden: if the address is not an address of this daemon.
        """

    def login(self, nonce: str, proof: str, public_key: str = "") -> tuple[str, OperatorSession]:
        """Verify the client's proof for a daemon's nonce. The nonce is spent in any case.

        :param public_key: the key with which the client will sign decisions, or empty if it signs none.
        :return: a new operator token, shown once, and its session.
        :raises Unauthorized: if the proof is wrong.
        :raises InvalidRequest: if the public key is malformed.
        """

    def delay_seconds(self) -> float:
        """Return the delay of the answer to the next failed login.

        :return: 0 to 5 seconds. It grows with the failures of the last minute.
        """

    def by_token(self, token: str) -> OperatorSession | None:
        """Return the session of a token, or None if the token is unknown, expired or logged out.

        This does not renew the session.
        """

    def hand_over(self, token: str, typed: bool = False, adds_passkey: bool = False) -> str:
        """Return a code that one browser can redeem once within 60 s, or within 120 s if a person types it.

        An earlier code of this login that is not confirmed yet becomes invalid.

        :param typed: True for a short code in groups of letters, for a person to type or copy.
        :param adds_passkey: True to let the page make a passkey before its two words are typed.
        :raises Unauthorized: if the token belongs to no live session.
        """

    def handed_over(self, token: str) -> HandOverState | None:
        """Return the state of this login's last hand-over to a browser by a code, or None if there was none.

        L{hand_over} makes the code.
        """

    def redeem(self, code: str) -> tuple[str, str, OperatorSession]:
        """Redeem a code for a browser. The browser has no rights until its two words are typed in the terminal.

        The words can be typed within 120 s.

        :param code: the code. In a typed code, case and separators of groups are ignored.
        :return: the cookie's value, the page key, and the session of the login that created the code.
        :raises Conflict: if the code was redeemed before and waits for its two words. Both uses become invalid.
            C{details} have the ID of the session that created the code, as C{login}.
        :raises Unauthorized: if the code is unknown or expired, the login that created the code has ended, or the
            hand-over has ended: confirmed, refused or redeemed twice.
        """

    def register(self, cookie: str, page_key: str, public_key: str) -> str:
        """Register the public key of the waiting page with this cookie and page key.

        From then on only its signature counts.

        :param public_key: an uncompressed P-256 point, as unpadded base64url.
        :return: the daemon's instance, which the page's signatures include.
        :raises Unauthorized: if no page waits with these, or it has already registered a key.
        :raises InvalidRequest: if the key is invalid. The page may register another one.
        """

    def register_again(self, cookie: str, page_key: str, asked: SignedRequest) -> str:
        """Register for the waiting page the key of the login that its browser already has.

        Once the page is confirmed, this earlier login may decide again, and no new login is created.

        :param asked: the page's request, with the cookie and the signature of the earlier login.
        :return: the daemon's instance.
        :raises Unauthorized: if no page waits with these, it has already registered a key, or no login has signed the
            request. In the last case the page may still register a key of its own.
        """

    def entering(self, asked: SignedRequest) -> HandOver | None:
        """Return the hand-over (the code and its state) by which the browser that signed this request is logging in.

        Return None if no such browser signed the request, or the request was sent before.
        """

    def confirm(self, token: str, words: str) -> OperatorSession:
        """Confirm the waiting browser if C{words} are those that it shows. A confirmed browser may approve and deny.

        A wrong answer rejects the browser.

        :param words: the words as typed. Case and spacing are ignored.
        :return: the browser's session: a new one, or the one for which the page has registered its key again.
        :raises Unauthorized: if the token belongs to no live session.
        :raises Conflict: if no browser waits for words. C{details} contain the C{state}.
        :raises Forbidden: if the words are wrong. The waiting browser is rejected for good.
        """

    def signing_in(self, asked: SignedRequest) -> SignIn:
        """Return the waiting browser that signed this request, for a passkey to let it in.

        :raises Unauthorized: if no waiting browser has signed the request, the request was sent before, or the
            terminal's login has ended.
        """

    def adding_passkey(self, asked: SignedRequest) -> NewPasskeyPage:
        """Return the waiting page that signed this request and may make a passkey.

        :raises Unauthorized: if no waiting browser has signed the request, the request was sent before, the
            terminal's login has ended, or its hand-over adds no passkey.
        """

    def confirm_touched(self, sign_in: SignIn) -> OperatorSession:
        """Log the waiting browser in without words, because a passkey signed C{sign_in}.

        A second use of its code within ten minutes ends the login again.

        :return: the browser's session: a new one, or the one for which the page has registered its key again.
        :raises Unauthorized: if the browser does not wait any more, or the terminal's login has ended.
        """

    def find_lapsed(self, session_id: str) -> LapsedLogin:
        """Return the browser's login of a session, for a passkey to let it decide again.

        :raises VaultLocked: if the vault is not unlocked. Only C{aileron open} lets a browser decide after that.
        :raises Conflict: if the session has ended, may decide already, or is not a browser's at this address.
        """

    def raise_touched(self, lapsed: LapsedLogin) -> OperatorSession:
        """Allow a lapsed login to decide again, after a passkey signed C{lapsed}.

        Its key, its cookie and the time at which the passphrase was proved stay.

        :return: the session, which may decide as long as after a new login.
        :raises VaultLocked: if the vault is not unlocked.
        :raises Conflict: if the session has ended, may decide already, or is not a browser's at this address.
        """

    def restrict(self, session_id: str) -> None:
        """Restrict a browser's login to reading. Idempotent."""

    def knows_cookie(self, cookie: str) -> bool:
        """Return whether this cookie belongs to a browser that is logged in, to decide or only to read."""

    def expects_cookie(self, cookie: str) -> bool:
        """Return whether this cookie belongs to a page that still waits for its words, or waited lately.

        The words are the two that the page shows, which the person types in a terminal.
        """

    def by_browser(self, asked: SignedRequest, renew: bool = True) -> OperatorSession | None:
        """Return the browser session that signed this request, or None if none did or the request was sent before.

        The cookie alone is never enough. The caller must check whether the session decides.

        :param asked: a request signed by the session's key, for this process of the daemon and this time. A repeated
            request is refused.
        :param renew: True if the request restarts the session's idle time. Requests that a page sends by itself do not.
        """

    def admit_passkey(self, public_key: str, passkey: str, before: str = "") -> tuple[str, OperatorSession]:
        """Start the login of a browser at the public name, whose passkey has signed this key.

        :param public_key: an uncompressed P-256 point, as unpadded base64url.
        :param passkey: the id of the passkey.
        :param before: the cookie of the browser's present login, which ends, or empty.
        :return: the cookie's value, and the session.
        :raises InvalidRequest: if the key is invalid.
        """

    def admit_account(self, public_key: str, account: AccountLogin, before: str = "") -> tuple[str, OperatorSession]:
        """Start the login of a person's browser at the public name. The caller has verified the passphrase.

        :param public_key: an uncompressed P-256 point, as unpadded base64url.
        :param before: the cookie of the browser's present login, which ends, or empty.
        :return: the cookie's value, and the session.
        :raises InvalidRequest: if the key is invalid.
        """

    def knows_passkey_cookie(self, cookie: str) -> bool:
        """Return whether this cookie belongs to a login at the public name, by a passkey or by an account."""

    def by_passkey(self, asked: SignedRequest, renew: bool = True) -> OperatorSession | None:
        """Return the session at the public name that signed this request, by a passkey or by an account.

        Return None if none did or the request was sent before. The caller must check that the passkey or the account is
        still valid.

        :param asked: a signed request, as in L{by_browser}.
        :param renew: True if the request restarts the session's idle time.
        """

    def report_lapses(self, heard: Callable[[OperatorSession], object]) -> None:
        """Register C{heard}. It is called with each browser session that may from now on only read, not decide."""

    def key_of(self, session_id: str) -> EnrolledKey | None:
        """Return the key with which a login signs decisions, or None if it may not decide or has no key."""

    def log_out(self, session_id: str) -> None:
        """End one login session of the operator. Idempotent."""

    def list(self) -> tuple[OperatorSession, ...]:
        """Return the operator's live login sessions, newest first."""
