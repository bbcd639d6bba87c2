"""The operator's decisions beside single approvals: standing grants, pauses, caps, limits and passkeys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import cast

from attrs import field, frozen

from aileron.base.converter import to_json
from aileron.base.json import JSON, canonical, compact, from_timestamp, timestamp

from .actions import Cap
from .people import Owner
from .runs import Decision, Run


@frozen
class Pause:
    """A pause set by the operator or by a session. While it lasts, no run of the paused sessions starts.

    :ivar by: the operator session, or the agent session, that paused.
    :ivar session_id: the session whose runs are paused, or None for all.
    """

    since: datetime
    by: str
    reason: str | None = None
    session_id: str | None = None


@frozen
class Halt:
    """The result of a pause: the pause itself, and the runs that were executing when it took effect.

    :ivar under_way: the runs that had started and continue.
    :ivar saved: True if the pause survives a restart, or False while neither the database nor the vault accepts writes.
    :ivar listed: False if the database could not be read, so that C{under_way} is empty whatever is executing.
    """

    pause: Pause
    under_way: tuple[Run, ...] = ()
    saved: bool = True
    listed: bool = True


@frozen
class OwnCap:
    """A cap that the operator set.

    :ivar action: the action, or None for all actions together.
    """

    cap: Cap
    set_at: datetime
    set_by: str
    action: str | None = None

    @property
    def name(self) -> tuple[str, str, bool, float]:
        """The key of the cap. A new cap with this key replaces the old one.

        Its parts are the action, the argument, whether it is per session, and the seconds.
        """
        return self.action or "", self.cap.argument or "", self.cap.per_session, self.cap.seconds


@frozen
class PendingLimits:
    """The most approvals that may be pending, of one session, of one action, and of the home in total."""

    per_session: int = 20
    per_home: int = 200
    per_action: int = 50


@frozen
class LoopLimits:
    """The limits that stop an agent in a loop.

    :ivar denials: the most denials of one session within ten minutes.
    :ivar denials_of_action: the most denials of one action within ten minutes, in all sessions.
    :ivar same_calls: the most calls of one session within a minute with identical arguments.
    :ivar same_calls_of_all: the most calls of all sessions within a minute with identical arguments.
    :ivar writes_an_hour: the most ungated writes of one session and action, unless another hourly limit is set.
    """

    denials: int = 5
    denials_of_action: int = 10
    same_calls: int = 30
    same_calls_of_all: int = 90
    writes_an_hour: int | None = 60


MOST_USES = 1000
"""The most uses of one grant."""

MOST_GRANT_DAYS = 90
"""The longest validity of one grant."""

MOST_LIVE_GRANTS = 100
"""The most grants in force at once."""


class PredicateKind(StrEnum):
    """The kinds of predicates of an argument, each with the type of L{Predicate.given}.

    C{EQUALS}: the value. C{ONE_OF}: an array of values. C{PATTERN}: an RE2 expression for the whole text. C{RANGE}:
    C{{minimum?, maximum?}}, inclusive. C{DOMAIN}: an array of domain names, or C{*.name} for all subdomains of C{name}.
    The argument is a mail address or an array of mail addresses. C{ANY}: nothing. Any value is accepted, and a missing
    argument too.
    """

    EQUALS = "equals"
    ONE_OF = "one_of"
    PATTERN = "pattern"
    RANGE = "range"
    DOMAIN = "domain"
    ANY = "any"


@frozen
class Predicate:
    """A condition on the value of one argument, as part of a grant.

    :ivar given: the parameter of the predicate, see L{PredicateKind}.
    """

    argument: str
    kind: PredicateKind
    given: JSON = None

    def in_words(self) -> str:
        """Return the condition in words for the operator, which follow the argument's name.

        The caller makes invisible characters visible.
        """
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
    """The state of a grant. It does not say whether the grant's bindings have changed."""

    LIVE = "live"
    USED_UP = "used_up"
    OVER = "over"
    REVOKED = "revoked"


@frozen
class Grant:
    """A standing grant, as stored in the vault.

    :ivar predicates: the predicates, at most one for each argument.
    :ivar exact: the required values of arguments without a predicate. An argument in neither must be absent.
    :ivar uses: the most uses in all. C{used} is the number of uses so far.
    :ivar bound: the versions and digests that the grant depends on, by name. If one of them changes, the grant allows
        nothing.
    :ivar run_id: the run that was approved together with the grant.
    :ivar made_by: the operator session that made the grant.
    :ivar session_id: the session that may use the grant, or None for all.
    :ivar owner: the owner of the runs that the grant allows, or None for those of the operator.
    :ivar revoked_at: when the grant was revoked, or when its expiry was first noticed. The expiry is stored because a
        clock can be set back.
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
    owner: Owner | None = None

    def is_meant_for(self, run_owner: Owner | None, session_id: str | None) -> bool:
        """Return whether runs of this owner and session may use the grant, whatever its terms."""
        # guard of roles: a grant for one person's agents allows nothing to another's
        #    -> runner.test_personal.GrantTests.test_owner, instead return self.session_id in (None, session_id)
        return self.owner == run_owner and self.session_id in (None, session_id)

    @property
    def left(self) -> int:
        """The uses left while the grant is in force."""
        return max(0, self.uses - self.used)

    def state(self, now: datetime) -> GrantState:
        """Return the state of the grant at C{now}."""
        if self.revoked_at is not None:
            return GrantState.REVOKED if self.revoked_at < self.not_after else GrantState.OVER
        if now >= self.not_after:
            return GrantState.OVER
        return GrantState.LIVE if self.left else GrantState.USED_UP


@frozen
class NewGrant:
    """The grant for similar calls that the operator requests with an approval.

    :ivar session: True if only the session of the approved call may use it.
    """

    predicates: tuple[Predicate, ...]
    uses: int
    not_after: datetime
    session: bool = True


@frozen
class StandingGrant:
    """A grant as shown to the operator.

    :ivar suspended: the reason why the grant allows nothing although it is in force, or None if it can be used or this
        is unknown.
    """

    grant: Grant
    state: GrantState
    suspended: str | None = field(default=None)


@frozen
class Passkey:
    """One passkey that the operator has confirmed.

    :ivar id: the credential's id, as unpadded base64url.
    :ivar public_key: the public key in COSE format (RFC 9052).
    :ivar count: the authenticator's signature counter, or 0 if it has none.
    :ivar site: the WebAuthn rpId of the site that the passkey was made for. Pages of other sites cannot use the
        passkey.
    :ivar synced: True if the passkey may be copied to other devices (flag BE), or None if that was not recorded.
    """

    id: str
    name: str
    public_key: bytes = field(repr=False)
    made_at: datetime
    count: int = 0
    site: str = "localhost"
    synced: bool | None = None


@frozen
class EnrolledSshKey:
    """One OpenSSH public key that the operator has enrolled.

    :ivar id: the name of the key in the audit log and in commands.
    :ivar public_key: the key as in a C{.pub} file, without its comment.
    """

    id: str
    name: str
    public_key: str
    made_at: datetime


@frozen
class PasskeyRule:
    """The rule of approvals that need a passkey.

    :ivar everything: True if every approval needs a passkey.
    :ivar actions: the names of actions whose approval needs a passkey. A name that ends with C{*} is a prefix.
    """

    everything: bool = False
    actions: tuple[str, ...] = ()

    @property
    def asks(self) -> bool:
        """True if any approval needs a passkey."""
        return self.everything or bool(self.actions)

    def needs(self, action: str) -> bool:
        """Return whether approving this action needs a passkey."""
        return self.everything or any(
            action.startswith(name[:-1]) if name.endswith("*") else action == name for name in self.actions
        )

    def keeps(self, earlier: PasskeyRule) -> bool:
        """Return whether this rule covers everything that an earlier rule covered."""
        return self.everything or (not earlier.everything and set(earlier.actions) <= set(self.actions))


_GRANT_MEMBERS = frozenset(("predicates", "uses", "not_after", "session"))
_PREDICATE_MEMBERS = frozenset(("argument", "kind", "given"))


def decision_item(run_id: str, decision: Decision, wish: NewGrant | None) -> Mapping[str, JSON]:
    """Return the member of a signed list that states a decision, with the grant that is requested with it."""
    return {
        "run": run_id,
        "digest": decision.digest,
        "verdict": verdict_of(decision.approved, forced=decision.forced),
        "reason": decision.reason,
        "not_before": None if decision.not_before is None else timestamp(decision.not_before),
        "grant": None if wish is None else to_json(wish),
    }


def verdict_of(approved: bool, *, forced: bool = False) -> str:
    """Return the word for a decision that is signed: C{approved}, C{forced} or C{denied}."""
    if not approved:
        return "denied"
    return "forced" if forced else "approved"


def is_decision(item: Mapping[str, JSON], run_id: str, decision: Decision, wish: NewGrant | None) -> bool:
    """Return whether a member of a signed list states exactly this decision.

    Times and grants may be written in any form.
    """
    said = (item["run"], item["digest"], item["verdict"], item["reason"])
    # guard of signing: a signature is for one verdict on one digest -> vault.test_approvers.SignatureTests.test_other
    if said != (run_id, decision.digest, verdict_of(decision.approved, forced=decision.forced), decision.reason):
        return False
    try:
        begins = None if item["not_before"] is None else from_timestamp(str(item["not_before"]))
        grant = None if item["grant"] is None else read_signed_grant(item["grant"])
        # guard of signing: a grant is the one that was signed -> vault.test_approvers.SignatureTests.test_other_grant,
        #    instead is_same = grant == wish
        is_same = _write_grant(grant) == _write_grant(wish)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError):
        return False
    return begins == decision.not_before and is_same


def _write_grant(grant: NewGrant | None) -> bytes | None:
    return None if grant is None else canonical(to_json(grant))


def read_signed_grant(value: JSON) -> NewGrant:
    """Parse a grant in a signed list. The grant may have no member that is not part of a grant.

    :raises ValueError, TypeError, LookupError, AttributeError: if the value is not a grant.
    """
    told = cast("Mapping[str, JSON]", value)
    listed = cast("Sequence[Mapping[str, JSON]]", told.get("predicates", ()))
    if set(told) - _GRANT_MEMBERS or any(set(each) - _PREDICATE_MEMBERS for each in listed):
        raise ValueError("The grant has unknown members.")
    if type(told["uses"]) is not int:
        raise ValueError("The uses of a grant are a whole number.")
    return read_new_grant(told)


def read_new_grant(value: Mapping[str, JSON]) -> NewGrant:
    """Parse a grant as a request contains it.

    :raises ValueError, TypeError, LookupError, AttributeError: if the value is not a grant.
    """
    listed = cast("Sequence[Mapping[str, JSON]]", value.get("predicates", ()))
    predicates = [
        Predicate(str(each["argument"]), PredicateKind(str(each["kind"])), each.get("given")) for each in listed
    ]
    ends = from_timestamp(str(value["not_after"]).upper())
    return NewGrant(tuple(predicates), int(cast("float", value["uses"])), ends, value.get("session", True) is True)
