"""Stores the accounts of people. A change applies only to the revision that it was made from."""

from __future__ import annotations

import json
from collections.abc import Sequence

from attrs import frozen

from aileron.base.json import compact
from aileron.model.audit import Actor, Event
from aileron.model.deciders import check_may_decide, check_may_force
from aileron.model.people import Invitation, Owner, PersonAccount, Role, Verifier
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
    UPDATE people SET role = ?, revision = ?, verifier = ?, invitation = ?, group_names = ?
    WHERE id = ? AND revision = ?
"""
_REMOVE = "DELETE FROM people WHERE id = ? AND revision = ?"
_CHANGED = ("role", "revision", "verifier", "invitation", "group_names")


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


def _select(cursor: Cursor) -> tuple[PersonAccount, ...]:
    return tuple(PEOPLE.value_of(row) for row in cursor.execute(_ALL))


def find_account(cursor: Cursor, account_id: str) -> PersonAccount | None:
    """Return an account, or None if there is none with this ID."""
    return next((PEOPLE.value_of(row) for row in cursor.execute(_ONE, (account_id,))), None)


def check_decider(cursor: Cursor, transition: Transition, owner: Owner | None) -> None:
    """Check that the person who decides may do so, by the account as it is in this transaction.

    Decisions of grants pass: a person issued the grant with an approval.

    :param owner: the owner of the run.
    :raises Forbidden: if the person may not decide. See L{check_may_decide}.
    """
    decided = transition.vote or transition.decision
    if decided is None or (isinstance(decided, Decision) and decided.grant_id is not None):
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
    seals.append(cursor, events)
    return True


def _remove(cursor: Cursor, seals: Seals, account: PersonAccount, events: Sequence[Event]) -> bool:
    if not cursor.execute(_REMOVE, (account.id, account.revision)).rowcount:
        return False
    seals.append(cursor, events)
    return True
