"""Builds the line that says what a request would do, at which host, and by which account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from aileron.model.connectors import PRESENTATIONS
from aileron.model.reviews import Card, ReviewedStep
from aileron.model.runs import RunState

from ._cards import join_values
from ._warnings import host_of

_MOST_CHARACTERS = 60


@frozen
class Headline:
    """The parts of the first line of a review. All of them are foreign text.

    :ivar verb: such as C{wants to run}.
    :ivar hosts: the hosts of the requests.
    :ivar places: places on these hosts, and accounts, such as C{#general} and C{as me@example.org}.
    """

    verb: str
    action: str
    hosts: tuple[str, ...]
    places: tuple[str, ...]

    @classmethod
    def of(
        cls, action: str, state: RunState, own: bool, steps: Sequence[ReviewedStep], cards: Sequence[Card]
    ) -> Headline:
        """Build the parts for a run.

        :param own: whether the operator requested it, without an agent.
        """
        verb = ("want to run" if own else "wants to run") if state is RunState.PENDING else "requested"
        accounts = (step.binding.account for step in steps if step.binding and step.binding.account)
        places = dict.fromkeys((*find_places(cards), *(f"as {each}" for each in accounts)))
        return cls(verb, action, tuple(dict.fromkeys(filter(None, map(host_of, steps)))), tuple(places))


def find_places(cards: Sequence[Card]) -> Iterator[str]:
    """Yield the destination of each card, if it is short."""
    for card in cards:
        place = join_values(dict(card.parts).get(PRESENTATIONS[card.kind][0], ("",)))
        if isinstance(place, str) and place.strip() and len(place) <= _MOST_CHARACTERS and "\n" not in place:
            yield place
