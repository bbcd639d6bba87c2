"""The operator's logins."""

from __future__ import annotations

from zope.interface import Interface

from aileron.values import OperatorSession


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

    def by_token(token: str) -> OperatorSession | None:
        """The session of a token, or L{None}: unknown, expired, logged out."""

    def hand_over(token: str) -> str:
        """A code that one browser may redeem once within 60 s.

        :raises Unauthorized: the token is no live session's.
        """

    def redeem(code: str) -> tuple[str, str, OperatorSession]:
        """A browser session for a code, which is spent whatever comes of it.

        :return: the cookie's value, the page key, the session.
        :raises Unauthorized: unknown, spent or late.
        """

    def by_browser(cookie: str, page_key: str) -> OperatorSession | None:
        """The browser session that both belong to, or L{None}.  The cookie alone is never enough."""

    def log_out(session_id: str) -> None:
        """End one session.  Twice is safe."""

    def list() -> tuple[OperatorSession, ...]:
        """Live sessions, newest first."""
