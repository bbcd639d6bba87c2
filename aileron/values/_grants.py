"""Standing grants: the operator's word that calls like one that was approved need not be asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import cast

from attrs import field, frozen

from ._json import JSON, compact

MOST_USES = 1000
"""How often one grant can be used at most."""

MOST_GRANT_DAYS = 90
"""How long one grant can last at most."""

MOST_LIVE_GRANTS = 100
"""How many grants can be in force at once."""


class PredicateKind(StrEnum):
    """The kinds of predicates of an argument; each says what it takes for its C{given}.

    C{EQUALS}: the value.  C{ONE_OF}: an array of values.  C{PATTERN}: an RE2 expression for the whole text.  C{RANGE}:
    C{{minimum?, maximum?}}, inclusive.  C{DOMAIN}: an array of names, C{*.name} for those below one; the argument is
    one mail address, or an array of them.  C{ANY}: nothing; any value does, and none.
    """

    EQUALS = "equals"
    ONE_OF = "one_of"
    PATTERN = "pattern"
    RANGE = "range"
    DOMAIN = "domain"
    ANY = "any"


@frozen
class Predicate:
    """A predicate that must hold of one argument.

    :ivar given: by C{kind}, see there.
    """

    argument: str
    kind: PredicateKind
    given: JSON = None

    def in_words(self) -> str:
        """Return words for the operator, read after the argument's name; the caller makes them visible."""
        given, several = self.given, isinstance(self.given, Sequence) and not isinstance(self.given, str)
        each = [*cast("Sequence[JSON]", given)] if several else [given]
        if self.kind is PredicateKind.ANY:
            return "ANY VALUE AT ALL, and none"
        if self.kind is PredicateKind.RANGE:
            return _range_in_words(given)
        said = {
            PredicateKind.EQUALS: f"exactly {compact(given)}",
            PredicateKind.ONE_OF: f"one of {', '.join(map(compact, each))}",
            PredicateKind.PATTERN: f"the whole of it matching {given}",
            PredicateKind.DOMAIN: f"mail addresses at {', '.join(map(str, each))} alone",
        }
        return said[self.kind]


def _range_in_words(given: JSON) -> str:
    bounds = given if isinstance(given, Mapping) else {}
    low, high = bounds.get("minimum"), bounds.get("maximum")
    whole = "a whole number" if not any(isinstance(each, float) for each in (low, high)) else "a number"
    least = "" if low is None else f", at least {compact(low)}"
    return f"{whole}{least}" + ("" if high is None else f", at most {compact(high)}")


class GrantState(StrEnum):
    """The state of a grant; that what it is bound to has changed is told apart."""

    LIVE = "live"
    USED_UP = "used_up"
    OVER = "over"
    REVOKED = "revoked"


@frozen
class Grant:
    """The operator's word, as it lies in the vault.

    :ivar predicates: one an argument at most.
    :ivar exact: what each argument must be that no predicate names; one that is in neither must be absent.
    :ivar uses: how often it can be used in all; C{used}: how often it was.
    :ivar bound: what it stands on, by what that is called: where one of them is another, it allows nothing.
    :ivar run_id: of the call that was approved with it.
    :ivar made_by: the operator session.
    :ivar session_id: allowed to this session alone; L{None}: to all.
    :ivar revoked_at: when it was ended; also when it was first seen to be over, since a clock can be set back.
    """

    id: str
    action: str
    predicates: tuple[Predicate, ...]
    exact: Mapping[str, JSON]
    uses: int
    not_after: datetime
    bound: Mapping[str, str]
    run_id: str
    made_at: datetime
    made_by: str
    session_id: str | None = None
    used: int = 0
    used_at: datetime | None = None
    revoked_at: datetime | None = None

    @property
    def left(self) -> int:
        """The number of times that it can be used yet, if it is in force."""
        return max(0, self.uses - self.used)

    def state(self, now: datetime) -> GrantState:
        """Tell where it stands at C{now}."""
        if self.revoked_at is not None:
            return GrantState.REVOKED if self.revoked_at < self.not_after else GrantState.OVER
        if now >= self.not_after:
            return GrantState.OVER
        return GrantState.LIVE if self.left else GrantState.USED_UP


@frozen
class NewGrant:
    """The operator's wish for calls to come, said with an approval.

    :ivar session: for the session of the approved call alone.
    """

    predicates: tuple[Predicate, ...]
    uses: int
    not_after: datetime
    session: bool = True


@frozen
class StandingGrant:
    """A grant as the operator is shown it.

    :ivar suspended: why it allows nothing though it is in force; L{None}: it does, or nobody can tell now.
    """

    grant: Grant
    state: GrantState
    suspended: str | None = field(default=None)
