"""Where agents' sessions are kept."""

from __future__ import annotations

from collections.abc import Sequence

from zope.interface import Interface

from aileron.values import Event, Page, Session, SessionEnding, SessionTally


class ISessions(Interface):
    """Sessions and the digests of their tokens and gateway keys, which themselves are kept nowhere.

    They survive restarts.
    """

    async def open(session: Session, token_digest: bytes, gateway_digest: bytes, events: Sequence[Event]) -> None:
        """Keep a new session and the events that record it, in one transaction.

        :param token_digest: SHA-256 of the agent token.
        :param gateway_digest: SHA-256 of the gateway key.
        Of very many the oldest that are at work no more are forgotten.

        :raises LimitExceeded: 64 sessions are live (one without a request for 10 minutes does not count), or 100 were
            opened within a minute.
        :raises StoreUnavailable: nothing was kept.
        """

    async def by_token(token_digest: bytes) -> Session | None:
        """The session of a token (live or ended), or L{None}.

        Answers from memory where it can; notes the time as C{seen_at}.
        """

    async def by_gateway_key(gateway_digest: bytes) -> Session | None:
        """The session of a gateway key (live or ended), or L{None}; the digest of a token is none.

        Answers from memory where it can; notes the time as C{seen_at}.
        """

    def known_gateway_key(gateway_digest: bytes) -> Session | None:
        """The live session that L{by_gateway_key} would answer, if that is in memory; L{None}: it must be asked.

        Costs microseconds.  Notes the time too, but the session that is returned may tell an earlier one.
        """

    async def end(
        session_id: str, exit_code: int | None, events: Sequence[Event], ending: SessionEnding | None = None
    ) -> Session:
        """End it.  Ending it again changes and records nothing and returns it as it ended.

        :param ending: why, where neither it nor the operator does.

        :raises NotFound: there is no such session.
        """

    async def get(session_id: str) -> Session | None:
        """One session, or L{None}."""

    async def tally(session_id: str) -> SessionTally:
        """What became of what it asked for; all nought of a session that asked for nothing, or that there is not."""

    async def list(live_only: bool, limit: int, cursor: str | None) -> Page[Session]:
        """Sessions, newest first.

        :raises InvalidRequest: a cursor that this list did not give.
        """
