"""Restricts which actions an agent's session may use, by filters that features add."""

from __future__ import annotations

from typing import Protocol

from attrs import define, evolve, field

from aileron.model.actions import Offer, Offering
from aileron.model.errors import Forbidden, InvalidRequest
from aileron.model.sessions import Session


class SessionFilter(Protocol):
    """A rule by which a feature restricts the actions that sessions may use."""

    def open(self, session: Session) -> Session:
        """Return the session with the data that the rule adds to it. Called before the session is stored.

        :raises InvalidRequest: if the session asks for a restriction that the rule does not know.
        """

    def allows(self, session: Session, offer: Offer) -> bool:
        """Return whether the session may use the action."""


@define(eq=False)
class SessionFilters:
    """The filters of all features. A session may use an action if every filter allows it.

    Without any filter, a session that is restricted may use no action, because nothing can apply the restriction.
    """

    _filters: list[SessionFilter] = field(factory=list, init=False)

    def add(self, rule: SessionFilter) -> None:
        """Add a filter. Call before the sites listen."""
        self._filters.append(rule)

    def open(self, session: Session) -> Session:
        """Return the session with the profile that restricts its actions, if one applies.

        Call before the session is stored.

        :raises InvalidRequest: if the session names an unknown profile, or nothing can apply its restriction.
        """
        # guard of promise 2: a restriction that nothing applies opens no session -> ProfileTests.test_off_open
        if session.restricted and not self._filters:
            raise InvalidRequest.listing("Profiles are off on this daemon.", ("/profile", "cannot be used"))
        for rule in self._filters:
            session = rule.open(session)
        return session

    def narrow(self, session: Session | None, offering: Offering) -> Offering:
        """Return C{offering} with only the actions that the session may call.

        If C{session} is None, return it unchanged.
        """
        if session is None:
            return offering
        kept = {
            name: offer
            for name, offer in offering.offers.items()
            if self._allows(session, offer)
            # guard against attack: agents are not offered the actions of their tools
            #    -> test_own_tools_calls.ActionTests.test_mcp
            and not offer.tools_only
        }
        return evolve(offering, offers=kept)

    def check(self, session: Session | None, offer: Offer) -> None:
        """Check that the session may use the action in C{offer}. If C{session} is None, do nothing.

        :raises Forbidden: if the session may not use the action.
        """
        # guard of promise 2: an action outside of the session's profile is refused -> ProfileTests.test_hidden
        if session is not None and not self._allows(session, offer):
            name, profile = offer.action.name, session.profile
            by = f"the profile {profile} of this session" if profile else "what this session may use"
            raise Forbidden(f"The action {name} is not in {by}.", {"action": name, "profile": profile})

    def _allows(self, session: Session, offer: Offer) -> bool:
        # guard of promise 2: a restriction that nothing applies allows nothing -> ProfileTests.test_off_call
        if not self._filters:
            return not session.restricted
        return all(rule.allows(session, offer) for rule in self._filters)
