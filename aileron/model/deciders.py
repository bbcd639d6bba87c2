"""Decides whether a person may decide a request."""

from __future__ import annotations

from .audit import Actor
from .errors import Forbidden
from .people import OPERATOR, AccountLogin, ApproverRule, PersonAccount, Role

_GONE = "Your account was just changed or removed. Nothing was decided."


def check_may_decide(
    login: AccountLogin | None, account: PersonAccount | None, rule: ApproverRule | None, *, is_operator: bool
) -> None:
    """Check that a person may decide. Call in the transaction that records the decision.

    Agents' sessions belong to the operator, who is therefore the requester of their calls.

    :param login: the account as it was when the person signed in, or None if there is none.
    :param account: the account as it is in the transaction, or None if there is none.
    :param rule: the action's rule about an approval, or None for a denial, which has no effect.
    :param is_operator: True if the operator decides, who has no account.
    :raises Forbidden: if the account's row is not that of the login any more, its role decides nothing, or the rule
        does not let the person approve.
    """
    if not is_operator:
        # guard of roles: no decision is recorded after its account was removed or changed
        #    -> store.test_people.DecisionTests.test_removed
        # guard of roles: a row that a program altered meanwhile decides nothing
        #    -> store.test_people.DecisionTests.test_altered,
        #    instead if login is None or account is None
        if login is None or account is None or account.login != login:
            raise Forbidden(_GONE)
        # guard of roles: the role is checked in the transaction -> store.test_people.DecisionTests.test_role
        if not login.role.covers(Role.APPROVER):
            raise Forbidden(f"Your role is {login.role.value}. Nothing was decided.")
    if rule is not None:
        check_may_approve(login, rule)


def check_may_approve(login: AccountLogin | None, rule: ApproverRule) -> None:
    """Check that an action's rule lets a person approve.

    :param login: the account as it was when the person signed in, or None for the operator.
    :raises Forbidden: if it does not.
    """
    name, role = (OPERATOR, Role.ADMINISTRATOR) if login is None else (login.name, login.role)
    objection = rule.find_objection(name, role, is_requester=login is None)
    if objection is not None:
        raise Forbidden(f"{objection} Nothing was decided.", {"rule": True})


def check_may_edit(editor: Actor, rule: ApproverRule) -> None:
    """Check that a person may edit a request of an action with this rule.

    Whoever writes the arguments is the requester of what they do, and a rule may keep the requester from approving. The
    operator, who is the requester already, may edit.

    :raises Forbidden: if an account edits what its requester may not approve.
    """
    if rule.not_requester and editor.person is not None:
        raise Forbidden(
            "Nobody may approve what they edited, so accounts cannot edit this request. Nothing was changed."
        )
