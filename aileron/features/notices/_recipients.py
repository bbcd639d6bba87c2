"""Decides which accounts are notified of a request: those that may decide it. They are told only how many wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol

from attrs import frozen

from aileron.model.actions import Offering
from aileron.model.deciders import find_objection
from aileron.model.interfaces.store import IRuns
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
    :param list_offers: returns the actions that are offered now.
    :param public_urls: the URLs of the pages at which people sign in.
    """

    people: StoredPeople
    runs: IRuns
    list_in_force: Callable[[], Mapping[str, str]]
    list_offers: Callable[[], Offering]
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
        rules = {each.action.name: each.action.approval.approvers for each in self.list_offers().offers}
        found = []
        for run_id in _list_pending(notices):
            run = await self.runs.get(run_id)
            # guard of roles: only who may decide a request is told
            #    -> features.notices.test_recipients.AddressTests.test_others
            if run is None or find_objection(account.login, run.owner, rules.get(run.action, ApproverRule())):
                continue
            found.append(run_id)
        return found


def _list_pending(notices: Sequence[Notice]) -> list[str]:
    """Return the IDs of the runs that wait for a decision, each once."""
    waiting = (each.run_id for each in notices if each.rule.while_state is RunState.PENDING)
    return list(dict.fromkeys(filter(None, waiting)))
