"""Which of many actions are listed by name, so that they do not fill the model's context."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from attrs import define

from aileron.client import DaemonError, IDaemon
from aileron.mcp._cards import Card

MOST_FAVOURITES = 12

_log = logging.getLogger(__name__)


@define
class Shortlist:
    """The actions that are listed: all, or where they are more than C{limit}, those that are used most.

    Which these are is asked once, and one action more does not take away the others: a list that changes with use
    would spoil what clients and models keep of it.

    :ivar limit: how many may be listed; where all were, twice as many.
    """

    _daemon: IDaemon
    limit: int
    _favourites: frozenset[str] | None = None
    _all_were: bool = False

    async def of(self, cards: Sequence[Card]) -> tuple[Card, ...]:
        """Those of C{cards} that are listed, in their order."""
        if len(cards) <= self.limit * (2 if self._all_were else 1):
            self._all_were = self._all_were or bool(cards)
            return tuple(cards)
        names = await self._names()
        return tuple(card for card in cards if card.action in names)

    async def _names(self) -> frozenset[str]:
        if self._favourites is None:
            try:
                names = await self._daemon.most_used(min(self.limit, MOST_FAVOURITES)) if self.limit else ()
            except DaemonError as error:
                # Nothing hangs on it: whatever is not listed can be searched for.
                _log.info("which actions are used most could not be learned: %s", error)
                return frozenset()
            self._favourites = frozenset(names)
        return self._favourites
