"""The service: it answers when it is told to, and knows what happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred

from aileron.model.connectors import Finding, Outcome, Sought
from aileron.model.errors import ExternalApiError, NetworkError
from aileron.model.interfaces.vault import ICredential
from aileron.testing import ScriptedConnector
from aileron.testing._connectors import Sending

from .record import Begun

OPERATIONS = ("post", "put", "send")
_SILENT = Outcome(fault=ExternalApiError("Reset.").fault(), sent=True, classified=False)
ANSWERS = {
    "done": (True, Outcome({"done": True})),
    "refused": (False, Outcome(fault=ExternalApiError("No.").fault(), sent=True, classified=True)),
    "silent": (True, _SILENT),
    "silent, and nothing happened": (False, _SILENT),
    "unreached": (False, Outcome(fault=NetworkError("Nobody there.").fault(), sent=False, classified=False)),
}
"""What becomes of a request: whether it happens, and the answer."""


@define(eq=False)
class Arrival:
    """A request.

    :ivar by: the run that the record says had begun by then; L{None}: none.
    :ivar kind: what became of it; empty: nothing yet.
    """

    sending: Sending
    by: Begun | None
    answer: Deferred[Outcome]
    kind: str = ""
    happened: bool | None = None
    lost: bool = False

    @property
    def step(self) -> str:
        """The step's id."""
        return self.sending.effect_key.partition(".")[2]

    @property
    def open(self) -> bool:
        """Whether somebody still listens for its answer."""
        return not self.lost and not self.answer.called


@define(eq=False)
class World:
    """All requests.

    :param began_it: by an effect key, which run the record says has begun.
    :ivar heard: told of each when it arrives.
    """

    _began_it: Callable[[str], Begun | None]
    arrivals: list[Arrival] = field(factory=list)
    heard: Callable[[Arrival], None] = lambda _: None

    def arrive(self, sending: Sending) -> Deferred[Outcome]:
        """The answer to a request, which waits until somebody calls L{answer}."""
        by = self._began_it(sending.effect_key.partition(".")[0])
        self.arrivals.append(Arrival(sending, by, Deferred()))
        self.heard(self.arrivals[-1])
        return self.arrivals[-1].answer

    def waiting(self) -> list[Arrival]:
        """Those that are not answered and can be."""
        return [each for each in self.arrivals if each.open]

    def answer(self, arrival: Arrival, kind: str) -> None:
        """Let one be answered."""
        arrival.kind = kind
        arrival.happened, outcome = ANSWERS[kind]
        arrival.answer.callback(outcome)

    def hang_up(self) -> None:
        """Whoever listened is gone: what was not answered happened now and then."""
        for each in self.waiting():
            each.lost = True

    def happened(self, arrival: Arrival) -> bool:
        """Whether it did, which nothing changes from now on; no one may listen for it any more."""
        if arrival.happened is None:
            arrival.happened = self.arrivals.index(arrival) % 2 == 0
        return arrival.happened

    def find(self, effect_key: str) -> Finding:
        """What a look for an effect finds: of what is on its way, nothing yet."""
        mine = [each for each in self.arrivals if each.sending.effect_key == effect_key]
        done = any(each.happened if each.open else self.happened(each) for each in mine)
        return Finding(done, {"found": True} if done else None)


@define(kw_only=True, eq=False)
class Service(ScriptedConnector):
    """The connector to it."""

    world: World

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """As it is."""
        self.looks.append(sought)
        return self.world.find(sought.effect_key)


def described(arrival: Arrival) -> dict[str, Any]:
    """What is told of one that should not have been."""
    return {"run": arrival.by, "step": arrival.step, "body": arrival.sending.request.body}
