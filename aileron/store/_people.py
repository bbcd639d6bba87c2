"""Stores the accounts of people. A change applies only to the revision that it was made from."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from attrs import frozen

from aileron.base.converter import from_json, to_json
from aileron.base.json import compact, from_timestamp, timestamp
from aileron.model.audit import Actor, Event
from aileron.model.deciders import check_may_decide, check_may_force
from aileron.model.people import AccountPasskey, Invitation, Owner, PasskeyUse, PersonAccount, Role, Verifier
from aileron.model.runs import Decision, Transition

from ._audit import Seals
from ._connections import Readers, shielded
from ._dialect import Cursor
from ._table import MOMENT, PLAIN, Codec, Table, enum, value
from ._writer import Writer

_NAMES = Codec(
    lambda names: compact(list(names)) if names else None,
    lambda text: () if text is None else tuple(map(str, json.loads(text))),
)
_PASSKEYS = Codec(
    lambda passkeys: compact([to_json(each) for each in passkeys]) if passkeys else None,
    lambda text: () if text is None else tuple(from_json(AccountPasskey, each) for each in json.loads(text)),
)
PEOPLE = Table(
    "people",
    PersonAccount,
    {
        "id": PLAIN,
        "name": PLAIN,
        "role": enum(Role),
        "revision": PLAIN,
        "created_at": MOMENT,
        "verifier": value(Verifier).or_null(),
        "invitation": value(Invitation).or_null(),
        "group_names": _NAMES,
        "passkeys": _PASSKEYS,
        "login_revision": PLAIN,
    },
    {"group_names": "groups"},
)
MOST_PEOPLE = 500
"""The most accounts in one database."""

_ALL = f"SELECT {PEOPLE.selection} FROM people ORDER BY name"
_ONE = f"SELECT {PEOPLE.selection} FROM people WHERE id = ?"
_NAMED = "SELECT 1 FROM people WHERE name = ?"
_COUNT = "SELECT count(*) AS number FROM people"
_CHANGE = """
    UPDATE people SET role = ?, revision = ?, verifier = ?, invitation = ?, group_names = ?, passkeys = ?,
        login_revision = ?
    WHERE id = ? AND revision = ?
"""
_REMOVE = "DELETE FROM people WHERE id = ? AND revision = ?"
_CHANGED = ("role", "revision", "verifier", "invitation", "group_names", "passkeys", "login_revision")
_IS_PRESENT = "SELECT 1 FROM people WHERE id = ? AND revision = ?"
_USES = "SELECT passkey, count, used_at FROM passkey_uses WHERE account = ?"
_STORE_USE = """
    INSERT INTO passkey_uses (account, passkey, count, used_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (account, passkey) DO UPDATE SET count = excluded.count, used_at = excluded.used_at
"""
_FORGET_USE = "DELETE FROM passkey_uses WHERE account = ? AND passkey = ?"
_FORGET_CHALLENGES = "DELETE FROM used_challenges WHERE until <= ?"
_IS_USED = "SELECT 1 FROM used_challenges WHERE challenge = ?"
_STORE_CHALLENGE = "INSERT INTO used_challenges (challenge, until) VALUES (?, ?)"


@frozen
class SQLPeople:
    """Stores C{people}. Nothing is cached: another process may change the accounts of the same database."""

    _writer: Writer
    _readers: Readers
    _seals: Seals

    async def all(self) -> tuple[PersonAccount, ...]:
        """Return all accounts, by name."""
        return await self._readers.read(_select)

    async def get(self, account_id: str) -> PersonAccount | None:
        """Return an account, or None if there is none with this ID."""
        return await self._readers.read(find_account, account_id)

    async def add(self, account: PersonAccount, events: Sequence[Event]) -> bool:
        """Store a new account and the events that record it, in one transaction.

        :return: False if nothing was stored, because the name is taken or there are too many accounts.
        :raises StoreUnavailable: if the store failed. Nothing was stored.
        """
        return await shielded(self._writer.write(_add, self._seals, account, tuple(events)))

    async def change(self, account: PersonAccount, revision: int, events: Sequence[Event]) -> bool:
        """Replace an account, and store the events that record it, in one transaction.

        :param revision: the revision that the change was made from.
        :return: False if nothing was stored, because the account is gone or has another revision.
        :raises StoreUnavailable: if the store failed. Nothing was stored.
        """
        return await shielded(self._writer.write(_change, self._seals, account, revision, tuple(events)))

    async def remove(self, account: PersonAccount, events: Sequence[Event]) -> bool:
        """Delete an account, and store the events that record it, in one transaction.

        :return: False if nothing was stored, because the account is gone or has another revision.
        :raises StoreUnavailable: if the store failed. Nothing was stored.
        """
        return await shielded(self._writer.write(_remove, self._seals, account, tuple(events)))

    async def list_uses(self, account_id: str) -> Mapping[str, PasskeyUse]:
        """Return the last use of each passkey of an account, by the passkey's ID. A passkey may have none."""
        return await self._readers.read(_select_uses, account_id)

    async def use_passkey(self, account: PersonAccount, use: PasskeyUse, challenge: str, until: datetime) -> bool:
        """Store the use of a passkey, and that its challenge was used, in one transaction.

        :param account: the account with the passkey, as it was when the use was verified.
        :param until: how long the challenge is stored. It must not be accepted any more by then.
        :return: False if nothing was stored, because the account was removed or changed, the challenge was used before,
            or the counter has not grown since the last use.
        :raises StoreUnavailable: if the store failed. Nothing was stored.
        """
        return await shielded(self._writer.write(_use_passkey, account, use, challenge, until))


def _select(cursor: Cursor) -> tuple[PersonAccount, ...]:
    return tuple(PEOPLE.value_of(row) for row in cursor.execute(_ALL))


def find_account(cursor: Cursor, account_id: str) -> PersonAccount | None:
    """Return an account, or None if there is none with this ID."""
    return next((PEOPLE.value_of(row) for row in cursor.execute(_ONE, (account_id,))), None)


def check_decider(cursor: Cursor, transition: Transition, owner: Owner | None) -> None:
    """Check that the person who decides may do so, by the account as it is in this transaction.

    The decision of a grant has no account, and is checked like one of the operator without a rule: a person issued the
    grant with an approval.

    :param owner: the owner of the run.
    :raises Forbidden: if the person may not decide. See L{check_may_decide}.
    """
    decided = transition.vote or transition.decision
    if decided is None:
        return
    login = decided.account
    account = None if login is None else find_account(cursor, login.account)
    is_operator = login is None and Actor("human", decided.decided_by).person is None
    is_forced = isinstance(decided, Decision) and decided.forced and decided.approved
    rule = None if is_forced else transition.approvers
    check_may_decide(login, account, owner, rule, is_operator=is_operator)
    if is_forced:
        check_may_force(login, decided.reason)


def _add(cursor: Cursor, seals: Seals, account: PersonAccount, events: Sequence[Event]) -> bool:
    is_taken = list(cursor.execute(_NAMED, (account.name,)))
    [row] = cursor.execute(_COUNT)
    if is_taken or row["number"] >= MOST_PEOPLE:
        return False
    PEOPLE.insert(cursor, [account])
    seals.append(cursor, events)
    return True


def _change(cursor: Cursor, seals: Seals, account: PersonAccount, revision: int, events: Sequence[Event]) -> bool:
    values = PEOPLE.part(*_CHANGED).row_of(account)
    # guard of roles: a change made from an earlier revision is refused -> store.test_people.PeopleTests.test_raced
    if not cursor.execute(_CHANGE, (*values, account.id, revision)).rowcount:
        return False
    _forget_uses(cursor, account.id, {each.id for each in account.passkeys})
    seals.append(cursor, events)
    return True


def _remove(cursor: Cursor, seals: Seals, account: PersonAccount, events: Sequence[Event]) -> bool:
    if not cursor.execute(_REMOVE, (account.id, account.revision)).rowcount:
        return False
    _forget_uses(cursor, account.id, set())
    seals.append(cursor, events)
    return True


def _select_uses(cursor: Cursor, account_id: str) -> Mapping[str, PasskeyUse]:
    rows = cursor.execute(_USES, (account_id,))
    return {row["passkey"]: PasskeyUse(row["passkey"], row["count"], from_timestamp(row["used_at"])) for row in rows}


def _forget_uses(cursor: Cursor, account_id: str, kept: Collection[str]) -> None:
    """Delete the uses of all passkeys of an account but those with the IDs C{kept}."""
    for each in _select_uses(cursor, account_id).keys() - kept:
        cursor.execute(_FORGET_USE, (account_id, each))


def _use_passkey(cursor: Cursor, account: PersonAccount, use: PasskeyUse, challenge: str, until: datetime) -> bool:
    # guard of roles: a passkey that was just removed signs nobody in -> store.test_people.UseTests.test_changed
    if not list(cursor.execute(_IS_PRESENT, (account.id, account.revision))):
        return False
    # guard of roles: a challenge counts once, at one of several daemons -> store.test_people.UseTests.test_once
    if list(cursor.execute(_IS_USED, (challenge,))):
        return False
    last = _select_uses(cursor, account.id).get(use.passkey)
    # guard of roles: a counter that has not grown, at any daemon, belongs to a copy of the key
    #    -> store.test_people.UseTests.test_counter
    if last is not None and max(last.count, use.count) > 0 and use.count <= last.count:
        return False
    cursor.execute(_FORGET_CHALLENGES, (timestamp(use.used_at),))
    cursor.execute(_STORE_CHALLENGE, (challenge, timestamp(until)))
    cursor.execute(_STORE_USE, (account.id, use.passkey, use.count, timestamp(use.used_at)))
    return True
