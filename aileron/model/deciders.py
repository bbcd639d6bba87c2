"""The rule by which a person may decide."""

from __future__ import annotations

from .errors import Forbidden
from .people import AccountLogin, PersonAccount, Role


def check_may_decide(login: AccountLogin | None, account: PersonAccount | None) -> None:
    """Check that a person may decide. Call in the transaction that records the decision.

    :param login: the account as it was when the person signed in, or None if it is unknown.
    :param account: the account as it is in the transaction, or None if it was removed.
    :raises Forbidden: if the account was removed or changed since, or its role decides nothing.
    """
    # guard of roles: no decision is recorded after its account was removed or changed
    #    -> store.test_people.DecisionTests.test_removed
    if login is None or account is None or (account.id, account.revision) != (login.account, login.revision):
        raise Forbidden("Your account was just changed or removed. Nothing was decided.")
    # guard of roles: the role is checked in the transaction -> store.test_people.DecisionTests.test_role
    if not account.role.covers(Role.APPROVER):
        raise Forbidden(f"Your role is {account.role.value}. Nothing was decided.")
