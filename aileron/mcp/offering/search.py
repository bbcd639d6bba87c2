"""Finds actions by words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from aileron.mcp._cards import Card

_WORD = re.compile(r"[^\W_]+")
_NAME, _TITLE, _TEXT = 6, 4, 1  # how much a word counts that stands there
_PART = 2  # one that only begins so counts that much less


def search(cards: Sequence[Card], query: str) -> list[Card]:
    """Those of C{cards} that any word of C{query} is found in, best first; equals by name.

    A word counts more in a name than in a title, and there more than in a description; and whole more than as the
    beginning of another.
    """
    wanted = _words(query)
    scored = [(_score(card, wanted), card) for card in cards]
    return [card for score, card in sorted(scored, key=lambda pair: (-pair[0], pair[1].name)) if score > 0]


def _score(card: Card, wanted: Iterable[str]) -> float:
    places = ((_NAME, _words(card.name)), (_TITLE, _words(card.title)), (_TEXT, _words(card.description)))
    return sum(max(weight * _found(word, words) for weight, words in places) for word in wanted)


def _found(word: str, words: frozenset[str]) -> float:
    if word in words:
        return 1.0
    return 1 / _PART if any(other.startswith(word) for other in words) else 0.0


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
