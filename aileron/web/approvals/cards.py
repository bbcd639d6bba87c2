"""Draws what is sent as what a person knows it, such as a message, and finds what of a request that already shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from twisted.web.template import Flattenable, Tag, tags

from aileron.values import JSON, PRESENTATIONS, Approval, Card, ReviewedArgument, plain, strings_in, visible

from .reading import box, reading
from .requests import leaves

_MOST_IN_HEADLINE = 60


def draw_card(card: Card, new: Callable[[JSON], str]) -> dict[str, Flattenable]:
    """Draw one card, each part in full as text: nothing of it acts.

    :param new: says of a value that it was never used before.
    """
    parts = [_draw_part(f"card-{card.step}-{part}", part, values, new) for part, values in card.parts]
    return {"kind": card.kind.capitalize(), "parts": parts}


def _draw_part(name: str, part: str, values: Sequence[JSON], new: Callable[[JSON], str]) -> Tag:
    label, read = part.capitalize(), reading(_join(values), *map(new, values))
    return tags.div(
        tags.dt(label, " ", tags.small(read.size, **{"class": "quiet"})),
        tags.dd(box(read, visible(name), label)),
        tags.dd(read.notes, **{"class": "note"}),
    )


def _join(values: Sequence[JSON]) -> JSON:
    """Write several values as one, such as the owner and the name of a repository; one stays what it is."""
    if len(values) == 1:
        return values[0]
    return "/".join(each if isinstance(each, str) else json.dumps(plain(each), ensure_ascii=False) for each in values)


def _plainly_shown(card: Card) -> Iterator[JSON]:
    """Yield the values that a reader of a card can tell apart: none where a slash may belong to either of two."""
    for _, values in card.parts:
        if len(values) == 1 or not any("/" in text for text in strings_in(values)):
            yield from values


def find_in_cards(given: Sequence[ReviewedArgument], cards: Sequence[Card]) -> frozenset[str]:
    """Find the arguments whose whole value stands in a card, by name; those that share one are told apart by labels."""
    shown = {_key(value) for card in cards for value in _plainly_shown(card)}
    times = Counter(_key(each.value) for each in given)
    return frozenset(each.name for each in given if _key(each.value) in shown and times[_key(each.value)] == 1)


def find_open(approval: Approval, given: Sequence[ReviewedArgument], cards: Sequence[Card]) -> frozenset[str]:
    """Find every value that stands open on the page, as of L{leaves}.

    These are the arguments, the parts of cards, and what the preview shows uncut.
    """
    seen = [each.value for each in approval.review.shown_preview.fields if each.cut is None]
    joined = [_join(values) for card in cards for _, values in card.parts]
    return frozenset(leaves([*(each.value for each in given), *seen, *joined]))


def find_places(cards: Sequence[Card]) -> Iterator[str]:
    """Find where each card goes, in a few words for a headline."""
    for card in cards:
        place = _join(dict(card.parts).get(PRESENTATIONS[card.kind][0], ("",)))
        if isinstance(place, str) and place.strip() and len(place) <= _MOST_IN_HEADLINE and "\n" not in place:
            yield visible(place)


def _key(value: JSON) -> str:
    return json.dumps(plain(value), sort_keys=True, ensure_ascii=False)
