"""The operator's logins."""

from __future__ import annotations

from zope.interface import Interface

from aileron.values import HandOver, HandOverState, OperatorSession


class IOperators(Interface):
    """Logins of the operator: a mutual proof of the key that only the passphrase opens."""

    def challenge(nonce: str, address: str) -> tuple[str, str]:
        """The daemon proves first.

        :param nonce: the client's, 16 to 64 bytes as unpadded base64url.
        :param address: the operator URL the client believes to speak to.
        :return: the daemon's nonce, single use, 60 s; and its proof over both nonces, the daemon's instance and the
            address.
        :raises VaultLocked: the vault is not unlocked.
        :raises InvalidRequest: a malformed nonce.
        :raises Forbidden: the address is not ours.
        """

    def login(nonce: str, proof: str) -> tuple[str, OperatorSession]:
        """Check the client's proof for a daemon's nonce, which is spent whatever comes of it.

        :return: a fresh operator token, shown once, and its session.
        :raises Unauthorized: it does not prove it.
        """

    def delay_seconds() -> float:
        """How long the next login should be let wait: 0 at first, 5 s at most, by the failures of the last minute."""

    def by_token(token: str) -> OperatorSession | None:
        """The session of a token, or L{None}: unknown, expired, logged out."""

    def hand_over(token: str) -> str:
        """A code that one browser may redeem once within 60 s.

        What this login had handed over before, and nobody has confirmed, is void.

        :raises Unauthorized: the token is no live session's.
        """

    def handed_over(token: str) -> HandOverState | None:
        """How far the last hand-over of this login is, or L{None}: there was none."""

    def redeem(code: str) -> tuple[str, str, OperatorSession]:
        """Let a browser wait for its two words to be typed in the terminal, within 120 s; it is nobody until then.

        :return: the cookie's value, the page key, and the session of the login that made the code.
        :raises Conflict: the code was redeemed before, which voids both; C{details} name the C{login} that made it.
        :raises Unauthorized: unknown, void or late.
        """

    def entering(cookie: str, page_key: str) -> HandOver | None:
        """How far the browser that both belong to has come, with the words that it shows; or L{None}."""

    def confirm(token: str, words: str) -> OperatorSession:
        """Make the browser that waits a live session, if these are the words that it shows; there is one try.

        :param words: as the person typed them: neither case nor spacing matters.
        :return: the browser's session.
        :raises Unauthorized: the token is no live session's.
        :raises Conflict: no browser waits; C{details} say C{state}.
        :raises Forbidden: these are not the words; the browser that waited is nobody for good.
        """

    def by_browser(cookie: str, page_key: str, renew: bool = True) -> OperatorSession | None:
        """The browser session that both belong to, or L{None}.  The cookie alone is never enough.

        :param renew: whether this is a use, which starts its idle time again; what a page does by itself is none.
        """

    def log_out(session_id: str) -> None:
        """End one session.  Twice is safe."""

    def list() -> tuple[OperatorSession, ...]:
        """Live sessions, newest first."""
