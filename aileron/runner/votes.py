"""The approvals of several people: whose count, and whether they are enough."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from attrs import define, evolve
from twisted.logger import Logger

from aileron.model.actions import Action
from aileron.model.deciders import combine_rules, find_objection, find_shortage
from aileron.model.errors import AileronError, ApprovalStale, Conflict
from aileron.model.people import ApproverRule, OperatorRule
from aileron.model.runs import Approval, Decision, Run, RunState, Vote
from aileron.model.signing import SignedDecisions

from .decisions import UNUSABLE, Decisions, NoDecision, get_person
from .offerings import Offerings
from .runs import Verify

LoadRules = Callable[[], Awaitable[Sequence[OperatorRule]]]
"""Returns the operator's rules in force. Raises L{ApprovalStale} if they are not known, so that nothing is approved."""

_log = Logger()
_CHANGED = "Who may approve this action was changed since it was approved."


class VotesChanged(Conflict):
    """Raised in the transaction if somebody else approved, or an account was changed, since the votes were read."""


async def find_no_rules() -> Sequence[OperatorRule]:
    """Return no rules: the operator has none beside those of the action files."""
    return ()


@define(eq=False)
class Votes:
    """Finds the rule about the people who approve, and verifies their votes.

    :param accounts: returns the digest of each account in force, by the account's ID.
    :param find_removed: returns why a stored signature approves an action no more, or None. Safe in any thread.
    """

    _decisions: Decisions
    _offerings: Offerings
    _accounts: Callable[[], Mapping[str, str]]
    _load_rules: LoadRules
    _find_removed: Callable[[str, SignedDecisions], str | None]

    async def find_rule(self, action: Action) -> ApproverRule:
        """Return the rule of the action's file and those of the operator about it, as one.

        :raises ApprovalStale: if the operator's rules are not known.
        :raises StoreUnavailable: if they cannot be read.
        """
        rules = await self._load_rules()
        return combine_rules([action.approval.approvers, *(each.rule for each in rules if each.covers(action.name))])

    def count(self, approval: Approval, rule: ApproverRule) -> tuple[Vote, ...]:
        """Return the votes that count on a pending approval, the oldest first.

        :raises VaultLocked, BindingFailed: if they cannot be verified now.
        """
        return tuple(vote for vote in approval.votes if self._counts(approval, vote, rule))

    def _counts(self, approval: Approval, vote: Vote, rule: ApproverRule) -> bool:
        login = vote.account
        # guard of roles: the vote of an account that the vault does not know does not count
        #    -> runner.test_votes.LapsedTests.test_put_back
        if vote.has_lapsed or (login is not None and not login.is_of(self._accounts().get(login.account))):
            return False
        # guard of roles: what a removed key has signed does not count -> runner.test_votes.KeyTests.test_removed
        if self._find_key_objection(approval.run, vote) is not None:
            return False
        return self._decisions.is_valid_vote(approval, vote) and find_objection(login, approval.run.owner, rule) is None

    def _find_key_objection(self, run: Run, vote: Vote) -> str | None:
        return None if vote.signed is None else self._find_removed(run.action, vote.signed)

    async def need_several(self, action: str) -> bool:
        """Return whether an action needs the approvals of several people. False if that cannot be found out now."""
        try:
            return (await self.find_rule(self._offerings.look_up(action).action)).count > 1
        except AileronError:
            return False

    async def show(self, approval: Approval) -> Approval:
        """Return an approval with the rule that applies now, unless it is the usual one, and the votes that count."""
        rule: ApproverRule | None = None
        try:
            rule = await self.find_rule(self._offerings.look_up(approval.run.action).action)
            rule = None if rule.digest is None else rule
            if approval.run.state is RunState.PENDING:
                return evolve(approval, approvers=rule, votes=() if rule is None else self.count(approval, rule))
        except UNUSABLE:
            return evolve(approval, votes=())
        except AileronError as error:
            _log.debug("who may approve {run} is not known now: {why}", run=approval.run.id, why=error.message)
        return evolve(approval, approvers=rule, votes=approval.find_counted())

    def verification(self, rule: ApproverRule) -> Verify:
        """Return a check of an approved run, also for the transaction that commits C{executing}.

        The run must have the approvals that the rule requires. Runs that a grant approved pass. The check raises
        L{NoDecision} if a counted vote is missing or forged, or they are not enough, and L{ApprovalStale} if the rule
        is not the one under which the run was approved, or the key of a vote was removed since.

        :raises VaultLocked, BindingFailed: if the votes cannot be verified now.
        """
        is_sound = self._decisions.vote_verification()

        def verify(run: Run, approval: Approval | None) -> None:
            if approval is None or approval.grant_id is not None:
                return
            # guard of roles: a run begins only under the rule that it was approved under
            #    -> runner.test_votes.RuleTests.test_changed
            if approval.approvers_digest != rule.digest:
                raise ApprovalStale(_CHANGED)
            if rule.count == 1 or approval.forced:
                return
            votes = approval.find_counted()
            # guard of roles: a vote that was written into the table begins nothing
            #    -> runner.test_votes.ForgedTests.test_written
            if len(votes) != len(approval.counted) or not all(is_sound(approval, vote) for vote in votes):
                raise NoDecision("An approval of a person is missing, or is not valid.")
            # guard of roles: a run begins only with approvals whose keys were not removed since
            #    -> runner.test_votes.KeyTests.test_removed_later
            objection = next(filter(None, (self._find_key_objection(run, vote) for vote in votes)), None)
            if objection is not None:
                raise ApprovalStale(objection)
            # guard of roles: a run begins only with the approvals of enough people
            #    -> runner.test_votes.ForgedTests.test_one_counted
            shortage = find_shortage(votes, run.owner, rule)
            if shortage is not None:
                raise NoDecision(shortage)

        return verify


def require_votes(seen: Sequence[Vote]) -> Verify:
    """Return a check for the transaction that stores a vote: no other vote was stored since, and no account changed.

    :param seen: all votes on the run, as they were read.
    """

    def verify(run: Run, approval: Approval | None) -> None:
        # guard of roles: of two last votes at once, one approves the run
        #    -> runner.test_votes.AtOnceTests.test_two_daemons
        if approval is None or set(approval.votes) != set(seen):
            raise VotesChanged("Somebody else approved at the same time. Try again.")

    return verify


def refuse_second(decision: Decision, approval: Approval) -> None:
    """Refuse the second vote of one person.

    :param approval: the approval with only the votes that count.
    :raises Conflict: if the person voted already.
    """
    # guard of roles: one person counts once -> runner.test_votes.CountTests.test_twice
    if get_person(decision) in {vote.person for vote in approval.votes}:
        raise Conflict(f"You approved this already. {approval.progress}. Somebody else must approve it too.")
