"""Builds the line that says what a request would do, and the parts of the line below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from aileron.base.text import visible
from aileron.model.connectors import PRESENTATIONS
from aileron.model.reviews import Card, Review
from aileron.model.runs import RunState
from aileron.model.titles import cut_title

from ._cards import join_values
from ._warnings import host_of

_MOST_CHARACTERS = 60


def find_title(action: str, review: Review) -> str:
    """Return the title of a review, or C{Run …} with the action's name if the review has none.

    The title is safe for display: one short line, with invisible characters made visible.
    """
    return cut_title(review.title) if review.title.strip() else f"Run {visible(action)}"


@frozen
class Headline:
    """The parts of the first lines of a review. Title and verb are safe for display. The others are foreign text.

    :ivar title: the effect in one line, safe for display, such as C{Delete branch old in acme/infra}.
    :ivar verb: the words between the requester and the action, such as C{wants to run}.
    :ivar hosts: the hosts of the requests.
    :ivar places: places on these hosts, and accounts, such as C{#general} and C{as me@example.org}.
    """

    title: str
    verb: str
    action: str
    hosts: tuple[str, ...]
    places: tuple[str, ...]

    @classmethod
    def of(cls, action: str, state: RunState, own: bool, review: Review, cards: Sequence[Card]) -> Headline:
        """Build the parts for a run.

        :param own: whether the operator, not an agent, requested the run.
        """
        verb = ("want to run" if own else "wants to run") if state is RunState.PENDING else "requested"
        accounts = (step.binding.account for step in review.steps if step.binding and step.binding.account)
        places = dict.fromkeys((*find_places(cards), *(f"as {each}" for each in accounts)))
        hosts = dict.fromkeys(filter(None, map(host_of, review.steps)))
        return cls(find_title(action, review), verb, action, tuple(hosts), tuple(places))


def find_places(cards: Sequence[Card]) -> Iterator[str]:
    """Yield the destination of each card, such as a channel or a repository, if it is a short text of one line."""
    for card in cards:
        place = join_values(dict(card.parts).get(PRESENTATIONS[card.kind][0], ("",)))
        if isinstance(place, str) and place.strip() and len(place) <= _MOST_CHARACTERS and "\n" not in place:
            yield place
