"""The word itself: approve, later or with more like it, or deny, and the end of a session that asks too much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twisted.web.iweb import IRequest
from twisted.web.template import Element, Tag, renderer

from aileron.values import Offer, Predicate, Run
from aileron.web._parts import template

from .flood import deny_all
from .grant_form import GrantForm

_REASONS = (
    "Not now: ask me again later",
    "The wrong recipient",
    "Not in these words",
    "I have done it myself",
    "Never",
)


class DecisionForm(Element):
    """What stands beneath a request that waits.

    :param offer: the run's action as it is offered now; L{None}: it is not.
    :param suggested: what could be granted with it.
    :param waiting: how many requests of the run's session wait.
    """

    loader = template("approval_decide.xml")

    def __init__(self, run: Run, offer: Offer | None, suggested: Sequence[Predicate], waiting: int) -> None:
        super().__init__()
        self._run = run
        self._offer = offer
        self._suggested = suggested
        self._waiting = waiting

    @renderer
    def reasons(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """Some that one click fills in."""
        for reason in _REASONS:
            yield tag.clone()(**{"data-reason": reason}).fillSlots(reason=reason)

    @renderer
    def undo(self, request: IRequest | None, tag: Tag) -> str:
        """How long it can be taken back."""
        seconds = 0.0 if self._offer is None else self._offer.action.approval.undo_seconds
        if not seconds:
            return "Approved, it begins at once."
        return f"Approved, it begins after {seconds:g} s; until then it can be taken back."

    @renderer
    def flood(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """A button that ends the session, where there is one."""
        return "" if self._run.session_id is None else deny_all(self._run.session_id, self._waiting)

    @renderer
    def grant(self, request: IRequest | None, tag: Tag) -> Element:
        """The form for more calls like it."""
        return GrantForm(self._run, self._suggested)
