"""The operator's word beside a decision: standing grants, pauses, caps of their own, limits, and passkeys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import cast

from attrs import field, frozen

from aileron.base.converter import to_json
from aileron.base.json import JSON, compact, timestamp

from .actions import Cap
from .runs import Decision, Run


@frozen
class Pause:
    """Nothing begins until the operator lifts it.

    :ivar by: the operator session, or the agent's.
    :ivar session_id: whose runs alone; L{None}: everybody's.
    """

    since: datetime
    by: str
    reason: str | None = None
    session_id: str | None = None


@frozen
class Halt:
    """A pause at the moment when it took hold.

    :ivar under_way: what had begun by then, and goes on.
    :ivar saved: whether a restart would find it; False while the database takes no write, as on a full disk.
    """

    pause: Pause
    under_way: tuple[Run, ...] = ()
    saved: bool = True


@frozen
class OwnCap:
    """A cap of the operator's own.

    :ivar action: L{None}: all actions together.
    """

    cap: Cap
    set_at: datetime
    set_by: str
    action: str | None = None

    @property
    def name(self) -> tuple[str, str, bool, float]:
        """The key of which there is one cap."""
        return self.action or "", self.cap.argument or "", self.cap.per_session, self.cap.seconds


@frozen
class PendingLimits:
    """The limits on approvals that wait at once."""

    per_session: int = 20
    per_home: int = 200
    per_action: int = 50


@frozen
class LoopLimits:
    """The limits that stop an agent that goes on and on.

    :ivar denials: of one session within ten minutes.
    :ivar denials_of_action: of one action within ten minutes, whatever the session.
    :ivar same_calls: of one session within a minute, with the same arguments.
    :ivar same_calls_of_all: the same, whatever the session.
    :ivar writes_an_hour: of one session and action that nobody approves, unless another hourly limit is said.
    """

    denials: int = 5
    denials_of_action: int = 10
    same_calls: int = 30
    same_calls_of_all: int = 90
    writes_an_hour: int | None = 60


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
            PredicateKind.PATTERN: f"text that matches {given} as a whole",
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


@frozen
class Passkey:
    """One passkey, as the operator has let it count.

    :ivar id: of the credential, as unpadded base64url.
    :ivar public_key: COSE (RFC 9052).
    :ivar count: how often its authenticator says that it was used; 0, if that does not count.
    :ivar site: what it was made for (WebAuthn's rpId): no page of another site can use it.
    """

    id: str
    name: str
    public_key: bytes = field(repr=False)
    made_at: datetime
    count: int = 0
    site: str = "localhost"


@frozen
class PasskeyRule:
    """The rule of what may not be approved without a passkey.

    :ivar everything: whatever asks.
    :ivar actions: these, by name; a name that ends with C{*} is every one that begins so.
    """

    everything: bool = False
    actions: tuple[str, ...] = ()

    @property
    def asks(self) -> bool:
        """True if anything needs one."""
        return self.everything or bool(self.actions)

    def needs(self, action: str) -> bool:
        """Tell whether a call of this action needs one."""
        return self.everything or any(
            action.startswith(name[:-1]) if name.endswith("*") else action == name for name in self.actions
        )

    def keeps(self, earlier: PasskeyRule) -> bool:
        """Tell whether it asks for all that an earlier one asked for."""
        return self.everything or (not earlier.everything and set(earlier.actions) <= set(self.actions))


def approval_statement(run_id: str, decision: Decision, wish: NewGrant | None) -> Mapping[str, JSON]:
    """Return what a passkey signs for: all that an approval says, with the grant that goes with it."""
    return {
        "run": run_id,
        "approved": decision.approved,
        "digest": decision.digest,
        "reason": decision.reason,
        "not_before": None if decision.not_before is None else timestamp(decision.not_before),
        "grant": None if wish is None else to_json(wish),
    }
