"""How far a call came that its client makes several times: it has no handshake, and brings back what it was given."""

from __future__ import annotations

import json
from collections.abc import Callable

from attrs import frozen

from aileron.mcp._forms import Answers


@frozen
class Round:
    """What is known when it comes again.

    :ivar key: the call's idempotency key.
    :ivar answers: what a person said so far; L{None}: nobody was asked yet.
    :ivar shown: whether the client was to show the review page: then the run has begun, and nothing is asked any more.
    :ivar forms: how often the person was to be asked.
    """

    key: str
    answers: Answers | None = None
    shown: bool = False
    forms: int = 0

    def as_state(self) -> str:
        """What the client is given; it travels sealed."""
        return json.dumps([self.key, self.answers, self.shown, self.forms])

    @classmethod
    def of(cls, state: str | None, new_key: Callable[[], str]) -> Round:
        """The same, or a first one where nothing is brought back.

        :param state: unsealed, so that it is what we gave.
        """
        if state is None:
            return cls(new_key())
        return cls(*json.loads(state))
