"""The outcomes that wake agents: by which way an agent learned one, and which of its requests waits for the next."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen


class WakeHow(StrEnum):
    """The way by which an agent learned an outcome."""

    FETCHED = "fetched"
    WOKEN = "woken"
    RESUMED = "resumed"


class WakeClaim(StrEnum):
    """The result of claiming an outcome.

    C{GIVEN}: the outcome is this request's. C{TOLD}: the agent knows it already. C{SUPERSEDED}: a later request of the
    session waits. C{NO_MORE}: the agent was resumed as often as it may be.
    """

    GIVEN = "given"
    TOLD = "told"
    SUPERSEDED = "superseded"
    NO_MORE = "no_more"


@frozen
class WakeWaiter:
    """A session's newest request that waits for an outcome.

    :ivar number: the number of the request, by which a later one is known.
    :ivar conversation: the agent's own ID of its conversation; empty if unknown.
    :ivar resumes: how often the agent was resumed in this session.
    """

    number: int
    conversation: str
    resumes: int
