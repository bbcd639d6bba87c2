"""Decides which accounts are notified of a request: those that may decide it. They are told only how many wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol

from attrs import frozen

from aileron.model.deciders import find_objection
from aileron.model.errors import NotFound
from aileron.model.interfaces.runner import IDecisions
from aileron.model.people import ApproverRule, PersonAccount, Role
from aileron.model.runs import RunState

from .values import Message, Notice

Address = Callable[[str, Message], Awaitable[Message | None]]
"""Returns what the account with a name is told in place of the operator's message, or None for nothing."""


async def address_nobody(person: str, message: Message) -> Message | None:
    """Return None: without accounts, there is nobody but the operator to tell."""
    return None


class StoredPeople(Protocol):
    """The accounts in the database."""

    async def all(self) -> tuple[PersonAccount, ...]:
        """Return all accounts, by name."""


@frozen(kw_only=True)
class Recipients:
    """The accounts that are notified.

    :param list_in_force: returns the digests of the accounts in force, by ID. See L{IPeopleBook}.
    :param public_urls: the URLs of the pages at which people sign in.
    """

    people: StoredPeople
    decisions: IDecisions
    list_in_force: Callable[[], Mapping[str, str]]
    public_urls: Collection[str]

    async def address(self, person: str, message: Message) -> Message | None:
        """Return a message that tells a person only how many of the requests they may decide.

        :return: the message, or None if the person may decide none, or has no account in force.
        :raises StoreUnavailable: if the store cannot be read.
        """
        account = next((each for each in await self.people.all() if each.name == person), None)
        # guard of roles: only an account in force is notified
        #    -> features.notices.test_recipients.AddressTests.test_gone
        if account is None or self.list_in_force().get(account.id) != account.digest:
            return None
        count = len(await self._list_decidable(account, message.notices))
        if not count or not self.public_urls:
            return None
        title = (
            f"Aileron: {count} requests are waiting for you" if count > 1 else "Aileron: a request is waiting for you"
        )
        url = f"{min(self.public_urls)}/approvals"
        return Message(message.id, message.at, title, (), url, (), more=count)

    async def _list_decidable(self, account: PersonAccount, notices: Sequence[Notice]) -> list[str]:
        """Return the IDs of the runs among these notices that the account may approve."""
        if not account.role.covers(Role.APPROVER):
            return []
        return [each for each in _list_pending(notices) if await self._may_approve(account, each)]

    async def _may_approve(self, account: PersonAccount, run_id: str) -> bool:
        """Return whether the account may approve a request by the rules that apply now, and has not done so yet."""
        try:
            approval = await self.decisions.approval(run_id, only_read=True)
        except NotFound:
            return False
        if account.name in {vote.name for vote in approval.votes}:
            return False
        # guard of roles: an account that may not approve a request is not told of it
        #    -> features.notices.test_recipients.AddressTests.test_others, instead return True
        return find_objection(account.login, approval.run.owner, approval.approvers or ApproverRule()) is None


def _list_pending(notices: Sequence[Notice]) -> list[str]:
    """Return the IDs of the runs that wait for a decision, each once."""
    waiting = (each.run_id for each in notices if each.rule.while_state is RunState.PENDING)
    return list(dict.fromkeys(filter(None, waiting)))
