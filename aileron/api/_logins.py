"""The operator's logins, as far as the sites need them; the vault's room holds them."""

from __future__ import annotations

from typing import Protocol

from aileron.model.sessions import HandOver, HandOverState, OperatorSession, SignedRequest


class OperatorLogins(Protocol):
    """Logins of the operator: a mutual proof of the key that only the passphrase opens."""

    def challenge(self, nonce: str, address: str) -> tuple[str, str]:
        """Have the daemon prove first.

        :param nonce: the client's, 16 to 64 bytes as unpadded base64url.
        :param address: the operator URL the client believes to speak to.
        :return: the daemon's nonce, single use, 60 s; and its proof over both nonces, the daemon's instance and the
            address.
        :raises VaultLocked: the vault is not unlocked.
        :raises InvalidRequest: a malformed nonce.
        :raises Forbidden: the address is not ours.
        """

    def login(self, nonce: str, proof: str) -> tuple[str, OperatorSession]:
        """Check the client's proof for a daemon's nonce, which is spent whatever comes of it.

        :return: a fresh operator token, shown once, and its session.
        :raises Unauthorized: it does not prove it.
        """

    def delay_seconds(self) -> float:
        """Return for how long the refusal of the next login is to wait.

        0 at first, 5 s at most, by the failures of the last minute.
        """

    def by_token(self, token: str) -> OperatorSession | None:
        """Return the session of a token, or L{None}: unknown, expired, logged out."""

    def hand_over(self, token: str, typed: bool = False) -> str:
        """Make a code that one browser may redeem once within 60 s, or 120 s where a person carries it.

        What this login had handed over before, and nobody has confirmed, is void.

        :param typed: make it of few letters, in groups, for a person to type or copy.
        :raises Unauthorized: the token is no live session's.
        """

    def handed_over(self, token: str) -> HandOverState | None:
        """Tell how far the last hand-over of this login is, or L{None}: there was none."""

    def redeem(self, code: str) -> tuple[str, str, OperatorSession]:
        """Let a browser wait for its two words to be typed in the terminal, within 120 s; it is nobody until then.

        :param code: of a typed one neither case nor what separates its groups matters.
        :return: the cookie's value, the page key, and the session of the login that made the code.
        :raises Conflict: the code was redeemed before, which voids both; C{details} name the C{login} that made it.
        :raises Unauthorized: unknown, void or late.
        """

    def register(self, cookie: str, page_key: str, public_key: str) -> str:
        """Bind the key of the page that waits, to which both belong.  From then on its signature alone speaks for it.

        :param public_key: an uncompressed point of P-256, as unpadded base64url.
        :return: the daemon's instance, for which the page signs.
        :raises Unauthorized: nobody waits with these, or has told a key before.
        :raises InvalidRequest: the key is none; another may be told.
        """

    def entering(self, asked: SignedRequest) -> HandOver | None:
        """Tell how far the browser has come that signed this, with the words that it shows; L{None} the second time."""

    def confirm(self, token: str, words: str) -> OperatorSession:
        """Make the browser that waits a live session, if these are the words that it shows; there is one try.

        :param words: as the person typed them: neither case nor spacing matters.
        :return: the browser's session.
        :raises Unauthorized: the token is no live session's.
        :raises Conflict: no browser waits that could show any; C{details} say C{state}.
        :raises Forbidden: these are not the words; the browser that waited is nobody for good.
        """

    def knows_cookie(self, cookie: str) -> bool:
        """Tell whether a browser was given this cookie and is logged in or waits to be."""

    def by_browser(self, asked: SignedRequest, renew: bool = True) -> OperatorSession | None:
        """Find the browser session that asks for this, or L{None}. The cookie alone is never enough.

        :param asked: signed by the session's key, for this life of the daemon, now, and never seen before: the second
            time it is refused, whatever came of the first.
        :param renew: whether this is a use, which starts its idle time again; what a page does by itself is none.
        """

    def log_out(self, session_id: str) -> None:
        """End one session.  Twice is safe."""

    def list(self) -> tuple[OperatorSession, ...]:
        """Live sessions, newest first."""
