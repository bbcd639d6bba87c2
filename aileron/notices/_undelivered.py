"""Why a message did not get there."""

from __future__ import annotations

from attrs import frozen


@frozen
class Undelivered(Exception):
    """A channel could not be told.

    :ivar problem: for the operator and the log: a sentence of ours, so that no address and no secret is in it.
    :ivar again: whether another attempt is worth it.
    """

    problem: str
    again: bool = True
