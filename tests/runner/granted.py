"""What the tests of grants share: a call that was approved with a grant."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from attrs import evolve

from aileron.values import (
    JSON,
    Approval,
    Grant,
    NewGrant,
    Predicate,
    PredicateKind,
    Run,
    StandingGrant,
    utc,
)

from .kit import OPERATOR, RunnerCase

ANY_TEXT = Predicate("text", PredicateKind.ANY)


class GrantedCase(RunnerCase):
    """A gated action with the arguments C{text} and C{times}."""

    def wish(self, *predicates: Predicate, **changes: Any) -> NewGrant:
        """What the operator might want: three more, for an hour, of this session."""
        until = utc(self.clock.seconds()) + timedelta(hours=1)
        return evolve(NewGrant(predicates, 3, until), **changes)

    def grant(self, *predicates: Predicate, arguments: Mapping[str, JSON] | None = None, **changes: Any) -> Grant:
        """Approve a call, and grant more like it."""
        return self.approve_and_grant(self.submit(arguments=arguments), self.wish(*predicates, **changes))[1]

    def approve_and_grant(self, run: Run, wish: NewGrant) -> tuple[Approval, Grant]:
        """Approve a run for what is shown of it now, with a grant."""
        return self.sync(self.runner.decisions.approve_and_grant(run.id, self.yes(run), wish))

    def standing(self, grant: Grant) -> StandingGrant:
        """A grant as it is shown now."""
        return self.sync(self.runner.grants.grant(grant.id))

    def revoke(self, grant: Grant) -> None:
        """Take it back."""
        self.sync(self.runner.grants.revoke_grant(grant.id, OPERATOR))
