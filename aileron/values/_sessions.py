"""Sessions of agents, and who speaks to the daemon."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen


@frozen
class Session:
    """One run of one agent.

    :ivar agent: a claim of whoever opened it.
    :ivar working_dir: a claim as well.
    :ivar seen_at: its last request, kept in memory and written now and then.
    """

    id: str
    agent: str
    working_dir: str
    started_at: datetime
    seen_at: datetime
    ended_at: datetime | None = None
    exit_code: int | None = None

    @property
    def live(self) -> bool:
        """Whether it has not ended."""
        return self.ended_at is None


@frozen
class OperatorSession:
    """One login of the operator; it dies with the daemon.

    :ivar id: public, for the record; never the token.
    """

    id: str
    started_at: datetime
    expires_at: datetime
    browser: bool = False
