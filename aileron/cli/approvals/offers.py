"""The offers that C{aileron watch} shows beside the pending approvals, such as raising a spending limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field

from aileron.model.features import WatchOffer

if TYPE_CHECKING:
    from aileron.client import Operator

KEY = "+"
"""The key that asks about the first offer, and then about the next one."""


@define
class OfferList:
    """The offers that C{aileron watch} shows, as the daemon's features last made them.

    :ivar items: the offers.
    """

    _operator: Operator
    _finders: Sequence[Callable[..., Any]]
    items: Sequence[WatchOffer] = field(default=(), init=False)

    async def fetch(self) -> bool:
        """Fetch the offers, and return whether there is one that was not there before.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        before = {each.id for each in self.items}
        self.items = [offer for find in self._finders for offer in await find(self._operator)]
        return not before.issuperset(each.id for each in self.items)

    def find_next(self, offer: WatchOffer | None) -> WatchOffer | None:
        """Return the offer after this one, the first one after the last or after None, or None if there are none."""
        if not self.items:
            return None
        ids = [each.id for each in self.items]
        place = ids.index(offer.id) + 1 if offer is not None and offer.id in ids else 0
        return self.items[place % len(ids)]

    def describe(self) -> str:
        """Return the text of the first offer, and the number of the others, or an empty text if there are no offers."""
        if not self.items:
            return ""
        others = f" {len(self.items) - 1} more." if len(self.items) > 1 else ""
        return f"{self.items[0].text}{others}"

    async def accept(self, offer: WatchOffer) -> str:
        """Send the request of an offer, and return the sentence to show.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        await self._operator.post(*offer.path, body=offer.body)
        return offer.done
