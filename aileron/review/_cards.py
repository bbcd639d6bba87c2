"""Finds the arguments that cards show whole. A card shows inputs of a step in a familiar form, such as a message."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from aileron.base.json import JSON, compact, plain
from aileron.model.reviews import Card, ReviewedArgument


def join_values(values: Sequence[JSON]) -> JSON:
    """Return one value unchanged, or several, such as owner and name of a repository, joined with slashes."""
    if len(values) == 1:
        return values[0]
    return "/".join(each if isinstance(each, str) else json.dumps(plain(each), ensure_ascii=False) for each in values)


def find_in_cards(given: Sequence[ReviewedArgument], cards: Sequence[Card]) -> frozenset[str]:
    """Return the names of the arguments whose whole value a card shows.

    Two arguments with one value are left out, because only their labels tell them apart.
    """
    shown = {compact(value) for card in cards for value in card.plainly_shown()}
    times = Counter(compact(each.value) for each in given)
    return frozenset(each.name for each in given if compact(each.value) in shown and times[compact(each.value)] == 1)
