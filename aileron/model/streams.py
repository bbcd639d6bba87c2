"""Answers to reads that are passed on while they arrive."""

from __future__ import annotations

from typing import Protocol

from attrs import field, frozen
from twisted.internet.interfaces import IConsumer

from .connectors import Outcome


class AnswerCut(Exception):
    """The error for the rest of a body that is not passed on: the connection broke, or the body holds a secret.

    :ivar echoed: the kind of the form in which the secret was found, or empty.
    """

    def __init__(self, echoed: str = "") -> None:
        super().__init__(echoed)
        self.echoed = echoed


class AnswerBody(Protocol):
    """The body of an answer. It is passed on once, or closed."""

    async def pass_on(self, consumer: IConsumer) -> None:
        """Write the body to a consumer, with this body as its push producer, and return when it is complete.

        Cancelling closes the connection to the service.

        :raises AnswerCut: if the rest cannot be passed on. What was written before holds no part of the secret.
        """

    def close(self) -> None:
        """Close the connection to the service. Idempotent."""


@frozen
class StreamedAnswer:
    """An answer to a read, of which only the beginning has arrived.

    :ivar outcome: the outcome. Its output is that of a whole answer, with an empty body.
    :ivar length: the number of bytes of the body, or None if it is not known.
    """

    outcome: Outcome
    length: int | None
    body: AnswerBody = field(repr=False)
