"""Counts of equal calls, and the sessions and actions that are stopped because of them."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen

from .audit import Event

COUNTED_SECONDS = 60.0
"""The time in which equal calls count."""

STOPPED_SECONDS = 600.0
"""How long the calls of a session or an action are refused."""


class Stopped(StrEnum):
    """The kind of what is stopped."""

    SESSION = "session"
    ACTION = "action"


@frozen
class CountLimit:
    """The most equal calls within a time.

    :ivar stops: what is stopped if there are more. For a session, only calls of that session count.
    :ivar name: the session's id or the action's name.
    :ivar event: recorded if it is stopped now. Its payload has the sentence that says why.
    """

    stops: Stopped
    name: str
    most: int
    event: Event

    @property
    def why(self) -> str:
        """The sentence that says why."""
        return str(self.event.payload["why"])


@frozen
class CallStop:
    """A session or action whose calls are refused for a while.

    :ivar why: a sentence.
    :ivar seconds_left: how long they are still refused.
    """

    stopped: Stopped
    why: str
    seconds_left: float
