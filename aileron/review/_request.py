"""Collects everything that a person must see of a request before the decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from attrs import frozen

from aileron.base.json import heavy
from aileron.model.actions import Offer
from aileron.model.interfaces.runner import IDecisions
from aileron.model.precedents import Precedents
from aileron.model.reviews import Card
from aileron.model.runs import Approval

from ._attention import InboxGroup, attention
from ._headline import find_title
from ._warnings import ReviewWarning, find_warnings, new_here


@frozen
class RequestReview:
    """One request with all the data for its warnings.

    :ivar before: the comparison with earlier calls of its action.
    :ivar offer: the action as it is offered now, or None if it is not offered.
    :ivar cards: the requests in a form that a person knows, such as a message.
    """

    approval: Approval
    before: Precedents
    offer: Offer | None = None
    cards: tuple[Card, ...] = ()

    @cached_property
    def warnings(self) -> tuple[ReviewWarning, ...]:
        """The warnings about the request, computed at the first use."""
        return find_warnings(self.approval, self.before, self.offer, self.cards)

    @property
    def title(self) -> str:
        """One line on the effect of the request, safe for display."""
        return find_title(self.approval.run.action, self.approval.review)

    @property
    def group(self) -> InboxGroup:
        """The group of the request in lists."""
        return attention(self.approval, self.warnings)

    @property
    def novel(self) -> dict[str, str]:
        """The notes on arguments that name a recipient with a new value, by the argument's name. See L{new_here}."""
        notes = {name: new_here(name, self.before) for name in self.approval.run.arguments}
        return {name: note for name, note in notes.items() if note}


async def review_requests(
    decisions: IDecisions, offers: Mapping[str, Offer], approvals: Sequence[Approval]
) -> tuple[RequestReview, ...]:
    """Compare requests with earlier calls, and return everything to be shown of each, in the same order.

    If there are several requests, large ones are reviewed without cards: each card needs a plan, which takes
    milliseconds, and a list may have a hundred requests.

    :param offers: the actions on offer, by name.
    """

    def omits(approval: Approval) -> bool:
        return len(approvals) > 1 and heavy(approval.run.arguments)

    compared = await decisions.precedents(approvals)
    return tuple(
        RequestReview(each, before, offers.get(each.run.action), () if omits(each) else decisions.cards(each))
        for each, before in zip(approvals, compared, strict=True)
    )
