"""Decides whether a person may decide a request, and how many people must approve it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .audit import Actor
from .errors import Forbidden
from .people import OPERATOR, AccountLogin, ApproverRule, Owner, PersonAccount, Role
from .runs import Vote

_GONE = "Your account was just changed or removed. Nothing was decided."


def combine_rules(rules: Iterable[ApproverRule]) -> ApproverRule:
    """Return the rule that is as strict as all of these together.

    The person needs one name of each list, C{not_requester} holds if one rule has it, and the largest count holds.
    """
    found = tuple(rules)
    lists = dict.fromkeys(names for rule in found for names in rule.by)
    # guard of roles: of two rules the stricter one holds -> runner.test_approvers.StrictestTests.test_combined,
    #    instead return found[0]
    return ApproverRule(
        tuple(lists), any(rule.not_requester for rule in found), max((rule.count for rule in found), default=1)
    )


def check_may_decide(
    login: AccountLogin | None,
    account: PersonAccount | None,
    owner: Owner | None,
    rule: ApproverRule | None,
    *,
    is_operator: bool,
) -> None:
    """Check that a person may decide. Call in the transaction that records the decision.

    :param login: the account as it was when the person signed in, or None if there is none.
    :param account: the account as it is in the transaction, or None if there is none.
    :param owner: the owner of the request, or None for the operator.
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
        check_may_approve(login, owner, rule)


def check_may_approve(login: AccountLogin | None, owner: Owner | None, rule: ApproverRule) -> None:
    """Check that a person may approve a request of this owner, by the action's rule.

    :param login: the account as it was when the person signed in, or None for the operator.
    :raises Forbidden: if the person may not.
    """
    objection = find_objection(login, owner, rule)
    if objection is not None:
        raise Forbidden(f"{objection} Nothing was decided.", {"rule": True})


def find_objection(login: AccountLogin | None, owner: Owner | None, rule: ApproverRule) -> str | None:
    """Return why a person may not approve a request, as a sentence, or None if the person may.

    A request of an account is approved by its own person, by administrators, by the operator, and by those whom the
    rule names; by everybody who may decide if the rule asks for several people. So is a request of the operator.

    :param login: the account as it was when the person signed in, or None for the operator.
    :param owner: the owner of the request, or None for the operator.
    """
    name, role = (OPERATOR, Role.ADMINISTRATOR) if login is None else (login.name, login.role)
    groups = () if login is None else login.groups
    objection = rule.find_objection(name, role, groups, is_requester=_is_own(login, owner))
    if objection is not None:
        return objection
    is_concerned = owner is None or _is_own(login, owner) or role.covers(Role.ADMINISTRATOR)
    # guard of roles: an approver approves no request of another person -> runner.test_owners.OwnerTests.test_default
    if owner is not None and not is_concerned and not rule.asks_others:
        return f"This is a request of {owner.name}, who approves it."
    return None


def find_shortage(votes: Sequence[Vote], owner: Owner | None, rule: ApproverRule) -> str | None:
    """Return why these votes are not the approvals that a rule requires, as a sentence, or None if they are.

    :param owner: the owner of the request, or None for the operator.
    """
    for vote in votes:
        # guard of roles: each of the people is one who may approve -> runner.test_votes.RuleTests.test_stricter
        objection = find_objection(vote.account, owner, rule)
        if objection is not None:
            return objection
    # guard of roles: one person counts once, also in the last check
    #    -> runner.test_votes.ShortageTests.test_same_person,
    #    instead if len(votes) < rule.count
    if len({vote.person for vote in votes}) < rule.count:
        return f"This action needs the approvals of {rule.count} people."
    return None


def check_may_force(login: AccountLogin | None, reason: str | None) -> None:
    """Check that a person may approve alone, whatever the rule says.

    :param login: the account as it was when the person signed in, or None for the operator.
    :raises Forbidden: if the person is no administrator, or gives no reason.
    """
    # guard of roles: only administrators and the operator force -> runner.test_forced.ForcedTests.test_role
    if login is not None and not login.role.covers(Role.ADMINISTRATOR):
        raise Forbidden(f"Your role is {login.role.value}. Forcing needs the role administrator. Nothing was decided.")
    # guard of roles: forcing needs a reason -> runner.test_forced.ForcedTests.test_reason
    if not any(map(str.isalnum, reason or "")):
        raise Forbidden("Forcing needs a reason, which is recorded. Nothing was decided.")


def check_may_change(login: AccountLogin | None, owner: Owner | None) -> None:
    """Check that a person may edit or put aside what an account's agent requested, or end that agent's session.

    The account's own person may, and so may administrators and the operator.

    :raises Forbidden: if the person may not.
    """
    if owner is None or login is None or _is_own(login, owner) or login.role.covers(Role.ADMINISTRATOR):
        return
    raise Forbidden(f"This belongs to {owner.name}. Nothing was changed.")


def check_may_edit(editor: Actor, owner: Owner | None, rule: ApproverRule) -> None:
    """Check that a person may edit a request of an action with this rule.

    Whoever writes the arguments is the requester of what they do, and a rule may keep the requester from approving. So
    only the owner of such a request, who is the requester already, may edit it.

    :raises Forbidden: if somebody else edits what its requester may not approve.
    """
    if rule.not_requester and editor.person != (None if owner is None else owner.name):
        raise Forbidden("Nobody may approve what they edited, so you cannot edit this request. Nothing was changed.")


def _is_own(login: AccountLogin | None, owner: Owner | None) -> bool:
    """Return whether a request of this owner was made for the person of this login."""
    return (None if login is None else login.account) == (None if owner is None else owner.account)
