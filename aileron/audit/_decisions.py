"""Verifies the signed decisions in the audit log by the keys that the log itself enrolled (ADR 78)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field

from aileron.base.converter import from_json
from aileron.base.domains import encode_domain
from aileron.base.json import JSON, canonical, loads_strict
from aileron.model.audit import ROW, Actor, Break, Row
from aileron.model.authority import Predicate, PredicateKind, read_signed_grant
from aileron.model.errors import InvalidRequest
from aileron.model.people import OPERATOR
from aileron.model.signing import KeyKind, SignedDecisions, Statement, begins_as_signed

_LOGIN, _RAISED = "operator.login", "operator.login_raised"
_ADDED, _REMOVED = "operator.passkey_added", ("operator.passkey_removed", "operator.passkey_reset")
_SSH_KEY_ADDED, _SSH_KEY_REMOVED = "operator.approver_added", "operator.approver_removed"
_ISSUED, _GRANT = "grant.issued", ("predicates", "uses", "not_after")
_MOST_DEPTH = 64
_APPROVED, _VOTED = "approval.approved", "approval.voted"
_DECIDED = {_APPROVED: "approved", _VOTED: "approved", "approval.denied": "denied"}
_TYPES = frozenset((_LOGIN, _RAISED, _ADDED, *_REMOVED, _SSH_KEY_ADDED, _SSH_KEY_REMOVED, _ISSUED, *_DECIDED))
_SEQUENCE, _TYPE, _AT, _ACTOR_TYPE, _ACTOR, _RUN, _PAYLOAD = (
    ROW.index(name) for name in ("sequence", "type", "at", "actor_type", "actor_id", "run_id", "payload")
)


class _Unproved(Exception):
    """Raised for a decision whose signature is missing or invalid, or is for something else."""


@define(eq=False)
class DecisionCheck:
    """A check of the decisions in consecutive records, oldest first.

    :ivar is_whole: True if the check begins at the log's first record. Otherwise keys may have been enrolled before.
    :ivar proved: the number of decisions whose signature is valid.
    """

    is_whole: bool
    proved: int = field(default=0, init=False)
    _logins: dict[str, str | None] = field(factory=dict, init=False)
    _pruned_logins: set[str] = field(factory=set, init=False)
    _passkeys: dict[str, str | None] = field(factory=dict, init=False)
    _are_passkeys_known: bool = field(init=False)
    _ssh_keys: dict[str, str] = field(factory=dict, init=False)
    _are_ssh_keys_known: bool = field(init=False)
    _removed: set[str] = field(factory=set, init=False)
    _grants: set[str] = field(factory=set, init=False)
    _are_grants_known: bool = field(init=False)
    _votes: dict[str, tuple[str, str, str]] = field(factory=dict, init=False)  # by digest: run, what, and whose
    _are_votes_known: bool = field(init=False)
    _have_keys: bool = field(default=False, init=False)
    _taken: set[tuple[str, str, str]] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self._are_passkeys_known = self._are_ssh_keys_known = self._are_grants_known = self.is_whole
        self._are_votes_known = self.is_whole

    def check(self, rows: Sequence[Row]) -> Break | None:
        """Check the decisions in C{rows}, whose chain is valid. Return the first fault, or None if there is none."""
        for row in rows:
            if row[_TYPE] not in _TYPES:
                continue
            try:
                self._take(row)
            except _Unproved as fault:
                why = f"The decision in record {row[_SEQUENCE]} is not proved: {fault}."
                return Break("decision", row[_SEQUENCE], why)
        return None

    def _take(self, row: Row) -> None:
        """Remember the key that a record enrolls, or verify the decision that a record contains.

        :raises _Unproved: if the decision or the grant is not proved by a signature, or the record's contents cannot be
            read in one way.
        """
        payload = _read(row[_PAYLOAD])
        if row[_TYPE] == _ISSUED:
            self._take_grant(row, payload)
        elif row[_TYPE] in (_LOGIN, _RAISED):
            self._take_login(str(row[_ACTOR]), payload)
        elif row[_TYPE] == _ADDED:
            self._take_passkey(payload)
        elif row[_TYPE] in _REMOVED:
            self._take_removed(payload)
        elif row[_TYPE] in (_SSH_KEY_ADDED, _SSH_KEY_REMOVED):
            self._take_ssh_key(payload, is_removed=row[_TYPE] == _SSH_KEY_REMOVED)
        elif payload is not None:
            self._take_decision(row, payload)
            self._take_votes(row, payload)
        elif row[_TYPE] == _VOTED:
            self._are_votes_known = False

    def _take_login(self, session: str, payload: Mapping[str, Any] | None) -> None:
        if payload is None:
            self._pruned_logins.add(session)
            return
        key = payload.get("key")
        public_key = str(key.get("public_key")) if isinstance(key, dict) else None
        self._have_keys = self._have_keys or public_key is not None
        # guard of signing: a login keeps its key -> audit.test_decisions.RecordTests.test_other_key_later
        if self._logins.setdefault(session, public_key) != public_key:
            raise _Unproved("the login has another key than before")

    def _take_passkey(self, payload: Mapping[str, Any] | None) -> None:
        if payload is None:
            self._are_passkeys_known = False
            return
        key = payload.get("key")
        self._passkeys[str(payload.get("id"))] = str(key.get("public_key")) if isinstance(key, dict) else None

    def _take_removed(self, payload: Mapping[str, Any] | None) -> None:
        ids = () if payload is None else payload.get("ids", ())
        if not isinstance(ids, list | tuple):
            raise _Unproved("the removed passkeys are not listed")
        for each in map(str, ids):
            self._passkeys.pop(each, None)
            self._removed.add(each)

    def _take_grant(self, row: Row, payload: Mapping[str, Any] | None) -> None:
        """Verify that a person signed a new grant.

        :raises _Unproved: if the signature is missing or invalid, or is for another grant.
        """
        if payload is None:
            self._are_grants_known = False
            return
        self._grants.add(str(payload.get("grant")))
        if payload.get("signed") is None:
            # guard of signing: a grant is signed -> audit.test_decisions.GrantTests.test_unsigned
            if self._have_keys:
                raise _Unproved("the signature of the grant is missing")
            return
        signed, statement = _verify(payload["signed"])
        item = statement.of(str(payload.get("run")))
        # guard of signing: a grant that is wider than was signed is noticed
        #    -> audit.test_decisions.GrantTests.test_wider
        if item is None or item["verdict"] != "approved" or not _is_granted(item["grant"], payload):
            raise _Unproved("another grant was signed")
        self._require_enrolled(str(row[_ACTOR]), signed)
        self._take_nonce(statement, f"grant of {payload.get('run')}")

    def _take_ssh_key(self, payload: Mapping[str, Any] | None, *, is_removed: bool) -> None:
        if payload is None:
            self._are_ssh_keys_known = False
            return
        key = payload.get("key")
        # guard of signing: a removed SSH key proves nothing afterwards
        #    -> audit.test_decisions.SshTests.test_removed_key
        self._ssh_keys.pop(str(payload.get("id")), None)
        if isinstance(key, dict) and not is_removed:
            self._ssh_keys[str(payload.get("id"))] = str(key.get("public_key"))

    def _take_decision(self, row: Row, payload: Mapping[str, Any]) -> None:
        if payload.get("signed") is None:
            if row[_TYPE] in (_APPROVED, _VOTED):
                self._require_no_signature(row, payload)
            return
        signed, statement = _verify(payload["signed"])
        self._compare(row, payload, statement)
        self._require_enrolled(str(row[_ACTOR]), signed)
        self._have_keys = True
        self.proved += 1

    def _take_votes(self, row: Row, payload: Mapping[str, Any]) -> None:
        """Remember the approval of one of several people, or compare the last one with those that it counted.

        :raises _Unproved: if one that was counted is not in the log, is for something else, or is of the same person.
        """
        run, what, whose = str(row[_RUN]), str(payload.get("digest")), _name_person(row)
        if row[_TYPE] == _VOTED:
            self._votes[str(payload.get("decision_digest"))] = run, what, whose
        if row[_TYPE] != _APPROVED or "votes" not in payload:
            return
        people, votes = {whose}, payload["votes"]
        for each in map(str, votes if isinstance(votes, list | tuple) else ()):
            if each not in self._votes and not self._are_votes_known:
                people.add(each)
                continue
            found = self._votes.get(each, ("", "", ""))
            # guard of roles: an approval that nobody gave is noticed -> audit.test_decisions.VoteTests.test_unknown
            if found[:2] != (run, what):
                raise _Unproved("an approval that it counts was not given")
            people.add(found[2])
        needed = payload.get("needed")
        # guard of roles: too few people are noticed -> audit.test_decisions.VoteTests.test_same_person
        if not isinstance(needed, int) or len(people) < needed:
            raise _Unproved("fewer people approved than were needed")

    def _require_no_signature(self, row: Row, payload: Mapping[str, Any]) -> None:
        """Check that an approval needs no signature: a recorded grant approved it, or a version that did not sign yet.

        :raises _Unproved: if the approval needs a signature, or the audit log has no such grant.
        """
        grant = payload.get("grant")
        if grant is None or row[_ACTOR_TYPE] == "human":
            # guard of signing: a signature that is gone is noticed -> audit.test_decisions.RecordTests.test_removed
            if self._have_keys or str(row[_ACTOR]) in self._ssh_keys:
                raise _Unproved("its signature is missing")
        # guard of signing: a grant that nobody issued approves nothing -> audit.test_decisions.GrantTests.test_unknown
        elif self._are_grants_known and str(grant) not in self._grants:
            raise _Unproved("the grant that approved it was not issued")

    def _require_enrolled(self, session: str, signed: SignedDecisions) -> None:
        # guard of signing: a key that nobody enrolled proves nothing
        #    -> audit.test_decisions.RecordTests.test_unknown_key
        if not self._is_enrolled(session, signed):
            raise _Unproved("the key that signed it was not enrolled")

    def _compare(self, row: Row, payload: Mapping[str, Any], statement: Statement) -> None:
        """Compare a recorded decision with the statement that was signed.

        :raises _Unproved: if the statement is for another run or decision, or decided this run before.
        """
        same_as = payload.get("same_as")
        run, verdict = str(row[_RUN]), _DECIDED[row[_TYPE]]
        # guard of roles: a forced approval was signed as one -> audit.test_decisions.VoteTests.test_forced
        if payload.get("forced") is True:
            verdict = "forced"
        item = statement.of(run if same_as is None else str(same_as))
        # guard of signing: a signature for another run is noticed -> audit.test_decisions.RecordTests.test_another_run
        if item is None or (same_as is not None and verdict != "denied"):
            raise _Unproved("its signature is for another run")
        # guard of signing: a forged verdict is noticed -> audit.test_decisions.RecordTests.test_verdict
        if (item["verdict"], item["reason"]) != (verdict, payload.get("reason")):
            raise _Unproved("something else was signed")
        # guard of signing: a changed digest is noticed -> audit.test_decisions.RecordTests.test_digest
        if same_as is None and item["digest"] != payload.get("digest"):
            raise _Unproved("something else was signed")
        # guard of signing: an earlier start is noticed -> audit.test_decisions.RecordTests.test_earlier
        if verdict != "denied" and not begins_as_signed(item["not_before"], payload.get("not_before") or row[_AT]):
            raise _Unproved("a later start was signed")
        self._take_nonce(statement, run)

    def _take_nonce(self, statement: Statement, use: str) -> None:
        taken = statement.instance, statement.nonce, use
        if taken in self._taken:
            raise _Unproved("its signature was used before")
        self._taken.add(taken)

    def _is_enrolled(self, session: str, signed: SignedDecisions) -> bool:
        if signed.kind is KeyKind.SSH:
            # guard of signing: an SSH key that nobody enrolled proves nothing
            #    -> audit.test_decisions.SshTests.test_unknown_key
            known = self._ssh_keys.get(session)
            return known == signed.public_key or (known is None and not self._are_ssh_keys_known)
        if signed.kind is not KeyKind.PASSKEY:
            if session not in self._logins:
                return not self.is_whole or session in self._pruned_logins
            return self._logins[session] == signed.public_key
        passkey = str(signed.passkey)
        # guard of signing: a removed passkey proves nothing afterwards
        #    -> audit.test_decisions.RecordTests.test_removed_in_part
        if passkey in self._removed:
            return False
        if passkey not in self._passkeys:
            return not self._are_passkeys_known
        recorded = self._passkeys[passkey]
        if recorded is None:  # an earlier version recorded no key: the first signature tells it
            self._passkeys[passkey] = signed.public_key
        return recorded in (None, signed.public_key)


def _name_person(row: Row) -> str:
    """Return the name of the account that acted, or C{operator}."""
    return Actor(str(row[_ACTOR_TYPE]), str(row[_ACTOR])).person or OPERATOR


def _verify(given: Any) -> tuple[SignedDecisions, Statement]:
    """Parse a recorded signature and verify it. Whether its key is enrolled is not checked.

    Return the signature and what was signed.

    :raises _Unproved: if the signature is not valid.
    """
    try:
        signed = from_json(SignedDecisions, given)
        return signed, signed.verified()
    except (ValueError, TypeError, LookupError, RecursionError, InvalidRequest):
        raise _Unproved("its signature is not valid") from None


def _is_granted(signed: JSON, payload: Mapping[str, Any]) -> bool:
    """Return whether a recorded grant is the signed one. Domain names may be recorded in another form."""
    try:
        wish, recorded = read_signed_grant(signed), read_signed_grant({name: payload[name] for name in _GRANT})
        for_session = payload["session"] is not None
        told = [
            canonical([each.uses, each.not_after.isoformat(), [_write_predicate(given) for given in each.predicates]])
            for each in (wish, recorded)
        ]
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError):
        return False
    return told[0] == told[1] and (for_session or not wish.session)


def _write_predicate(predicate: Predicate) -> JSON:
    given = predicate.given
    if predicate.kind is PredicateKind.DOMAIN and isinstance(given, list | tuple):
        given = [_write_domain(str(name)) for name in given]
    return [predicate.argument, predicate.kind.value, given]


def _write_domain(name: str) -> str:
    below = "*." if name.startswith("*.") else ""
    return f"{below}{encode_domain(name.removeprefix('*.'))}"


def _read(text: object) -> Mapping[str, Any] | None:
    """Parse the payload of a record. Return None if its contents were deleted, or {} if they are not a JSON object.

    :raises _Unproved: if the payload is not JSON, or has a member twice.
    """
    try:
        payload = None if text is None else loads_strict(str(text).encode(), _MOST_DEPTH)
    except (ValueError, RecursionError):
        # guard of signing: contents with two meanings prove nothing -> audit.test_decisions.RecordTests.test_ambiguous
        raise _Unproved("its contents cannot be read in one way") from None
    return payload if payload is None or isinstance(payload, dict) else {}
