"""Makes, changes and checks accounts. An account counts only while the vault has the digest of its row."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from attrs import evolve, field, frozen
from twisted.internet.defer import DeferredLock
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import JSON, utc
from aileron.base.signatures import write_base64url
from aileron.base.waiting import uncancelled
from aileron.model.audit import DAEMON, Actor, Event
from aileron.model.errors import Conflict, Forbidden, NotFound, Unauthorized
from aileron.model.interfaces.authority import IPeopleBook
from aileron.model.people import (
    REMOVED,
    RESERVED,
    AccountLogin,
    AccountPasskey,
    Invitation,
    Owner,
    PersonAccount,
    Role,
    Verifier,
)
from aileron.vault import SALT_BYTES, KdfParameters, check_passphrase

T = TypeVar("T")

INVITED = timedelta(hours=72)
"""The time within which a link sets the passphrase."""

_CODE_BYTES, _ID_BYTES = 32, 12
_ALTERED = "The account {name} was changed by something else than Aileron, so it cannot be used. Remove it."
_NOBODY = Verifier("00" * SALT_BYTES, "00" * 32, 3, 64 * 1024, 4)
"""The verifier for a name without an account. No passphrase matches it."""


class StoresPeople(Protocol):
    """The accounts in the database. See L{aileron.store.Store}."""

    async def all(self) -> tuple[PersonAccount, ...]:
        """Return all accounts, by name."""

    async def get(self, account_id: str) -> PersonAccount | None:
        """Return an account, or None if there is none with this ID."""

    async def add(self, account: PersonAccount, events: Sequence[Event]) -> bool:
        """Store a new account with events. Return False if the name is taken or there are too many accounts."""

    async def change(self, account: PersonAccount, revision: int, events: Sequence[Event]) -> bool:
        """Replace an account with this revision, with events. Return False if it is gone or has another revision."""

    async def remove(self, account: PersonAccount, events: Sequence[Event]) -> bool:
        """Delete an account, with events. Return False if it is gone or has another revision."""


Derive = Callable[[str, KdfParameters], Awaitable[bytes]]
"""Derives a key from a passphrase, in a thread."""


@frozen(eq=False)
class Accounts:
    """The accounts of people.

    Each change is stored in the database first, with its audit event, and then in the vault. Between the two, or after
    a crash there, the account cannot be used. A removal is stored in the vault first.

    :ivar derive: derives a key from a passphrase. It takes a quarter of a second and 64 MiB.
    """

    _store: StoresPeople
    _book: IPeopleBook
    _clock: IReactorTime
    _ids: Callable[[], str]
    _randomness: Callable[[int], bytes]
    _derive: Derive
    _turns: DeferredLock = field(factory=DeferredLock, init=False)

    async def list(self) -> tuple[PersonAccount, ...]:
        """Return all accounts, by name, also those that cannot be used.

        :raises StoreUnavailable: if they cannot be read.
        """
        return await self._store.all()

    def is_in_force(self, account: PersonAccount) -> bool:
        """Return whether the account is as Aileron stored it. An altered one has no rights."""
        # guard of roles: a row that Aileron did not store has no rights
        #    -> features.people.test_accounts.ForgedTests.test_role
        return self._book.people().get(account.id) == account.digest

    async def find_owner(self, name: str) -> Owner:
        """Return the account with this name as the owner of a session.

        :raises NotFound: if there is no such account.
        :raises Conflict: if the account was altered.
        :raises StoreUnavailable: if it cannot be read.
        """
        account = await self._find(name)
        if not self.is_in_force(account):
            raise Conflict(_ALTERED.format(name=name))
        return account.owner

    async def find_role(self, login: AccountLogin) -> Role | None:
        """Return the role of a login's account, or None if the account was removed or changed since the login.

        :raises StoreUnavailable: if it cannot be read.
        """
        account = await self.find_account(login)
        return None if account is None else account.role

    async def find_account(self, login: AccountLogin) -> PersonAccount | None:
        """Return the account of a login, or None if it was removed or changed since the login.

        A change of its passkeys is no such change.

        :raises StoreUnavailable: if it cannot be read.
        """
        account = await self.find_in_force(login.account)
        # guard of roles: a login ends when its account is changed -> features.people.test_roles.RoleTests.test_changed,
        #    instead if account is None
        if account is None or account.login != login:
            return None
        return account

    async def find_in_force(self, account_id: str) -> PersonAccount | None:
        """Return the account with this ID, or None if there is none, or it was altered.

        :raises StoreUnavailable: if it cannot be read.
        """
        account = await self._store.get(account_id)
        return account if account is not None and self.is_in_force(account) else None

    async def add(self, name: str, role: Role, actor: Actor, groups: Sequence[str] = ()) -> tuple[PersonAccount, str]:
        """Make an account, and return it with the code by which its person sets the passphrase.

        :raises Conflict: if the name is taken or reserved, or there are too many accounts.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored. It cannot be used then.
        """
        # guard of roles: no account passes for a role in a rule, or for the operator in a history
        #    -> features.people.test_accounts.ChangeTests.test_reserved
        if name in RESERVED:
            raise Conflict(
                f"No account can be called {name}, because that stands for a role or the operator. Nothing was changed."
            )
        code, invitation = self._invite()
        account_id = f"per_{self._randomness(_ID_BYTES).hex()}"
        account = PersonAccount(
            account_id, name, role, 1, self._now(), invitation=invitation, groups=tuple(sorted(set(groups)))
        )

        async def store() -> None:
            if not await self._store.add(account, [self._event("people.added", actor, account)]):
                raise Conflict(
                    f"There is an account {name} already, or there are too many. Nothing was changed. "
                    "See the accounts: aileron people list"
                )
            self._keep(account)

        await self._in_turn(store)
        return account, code

    async def invite(self, name: str, actor: Actor) -> tuple[PersonAccount, str]:
        """Replace the passphrase and the passkeys of an account by a new code, and return the account and the code.

        Its logins end.

        :raises NotFound: if there is no such account.
        :raises Conflict: if the account was altered, or changed meanwhile.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
        """
        code, invitation = self._invite()
        changed = await self._change(
            "people.invited",
            name,
            actor,
            # guard of roles: a new link ends the passkeys as well
            #    -> features.people.test_passkeys.ChangeTests.test_invited,
            #    instead lambda each: evolve(each, verifier=None, invitation=invitation),
            lambda each: evolve(each, verifier=None, invitation=invitation, passkeys=()),
        )
        return changed, code

    async def change_role(self, name: str, role: Role, actor: Actor) -> PersonAccount:
        """Give an account another role. Its logins end.

        :raises NotFound: if there is no such account.
        :raises Conflict: if the account was altered, or changed meanwhile.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
        """
        return await self._change("people.role_changed", name, actor, lambda each: evolve(each, role=role))

    async def change_groups(self, name: str, groups: Sequence[str], actor: Actor) -> PersonAccount:
        """Give an account other groups. Its logins end.

        :raises NotFound: if there is no such account.
        :raises Conflict: if the account was altered, or changed meanwhile.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
        """
        wanted = tuple(sorted(set(groups)))
        return await self._change("people.groups_changed", name, actor, lambda each: evolve(each, groups=wanted))

    async def change_passkeys(
        self,
        kind: str,
        account: PersonAccount,
        passkeys: Sequence[AccountPasskey],
        actor: Actor,
        told: Mapping[str, str],
    ) -> PersonAccount:
        """Replace the passkeys of an account. Its logins stay.

        :param kind: the type of the audit event.
        :param account: the account as the change was made from it.
        :param told: what is recorded besides.
        :raises Conflict: if the account was altered, or changed meanwhile.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
        """
        kept = account.revision if account.login_revision is None else account.login_revision

        async def store() -> PersonAccount:
            if await self._store.get(account.id) != account:
                raise Conflict(f"The account {account.name} was changed meanwhile. Try again.")
            wanted = evolve(account, passkeys=tuple(passkeys), login_revision=kept)
            return await self._replace(kind, account, wanted, actor, told)

        return await self._in_turn(store)

    async def remove(self, name: str, actor: Actor) -> PersonAccount:
        """Remove an account. It loses its rights before its row is deleted.

        :raises NotFound: if there is no such account.
        :raises Conflict: if the account was changed meanwhile.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if this cannot be stored.
        """

        async def remove() -> PersonAccount:
            account = await self._find(name)
            kept = {each: digest for each, digest in self._book.people().items() if each != account.id}
            # guard of roles: a person whom the operator removed does not come back by another sign-in
            #    -> features.people.test_provided.ProvidedTests.test_removed
            if account.is_by_provider:
                kept[account.id] = f"{REMOVED}{account.name}"
            self._book.keep_people(kept)
            if not await self._store.remove(account, [self._event("people.removed", actor, account)]):
                raise Conflict(f"The account {name} was changed meanwhile. Try again.")
            return account

        return await self._in_turn(remove)

    async def join(self, code: str, passphrase: str) -> AccountLogin:
        """Set the passphrase of the account that was invited with this code. The code is used up.

        :raises InvalidRequest: if the passphrase is too weak. The code can be used again.
        :raises Unauthorized: if the code is unknown, used or too old.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
        """
        invited = await self._find_invited(code)
        check_passphrase(passphrase)
        parameters = KdfParameters(self._randomness(SALT_BYTES))
        verifier = _make_verifier(parameters, await self._derive(passphrase, parameters))
        joined = evolve(invited, revision=invited.revision + 1, verifier=verifier, invitation=None)

        async def store() -> None:
            event = self._event("people.joined", DAEMON, joined)
            # guard of roles: a link sets one passphrase -> features.people.test_accounts.AtOnceTests.test_at_once
            if not await self._store.change(joined, invited.revision, [event]):
                raise _refuse_code()
            self._keep(joined)

        await self._in_turn(store)
        return joined.login

    async def check(self, name: str, passphrase: str) -> AccountLogin | None:
        """Return the login of the account with this name and passphrase, or None if one of them is wrong.

        A name without an account takes as long as one with an account.

        :raises StoreUnavailable: if the accounts cannot be read.
        """
        named = (each for each in await self._store.all() if each.name == name and self.is_in_force(each))
        account = next(named, None)
        verifier = _NOBODY if account is None or account.verifier is None else account.verifier
        parameters = KdfParameters(
            bytes.fromhex(verifier.salt), verifier.iterations, verifier.memory_kib, verifier.lanes
        )
        key = await self._derive(passphrase, parameters)
        is_right = hmac.compare_digest(key.hex(), verifier.key)
        if account is None or not is_right:
            return None
        return account.login

    async def sign_in(self, account_id: str, name: str, role: Role, told: Mapping[str, str]) -> AccountLogin:
        """Return the login of a person for whom a provider vouches. The account is made, or its role changed, first.

        :param account_id: the ID that follows from the provider's subject. It begins with L{BY_PROVIDER}.
        :param name: the name of a new account.
        :param told: what is recorded with a new account.
        :raises Forbidden: if the operator removed the account.
        :raises Conflict: if something else altered the account, or a new one cannot be made.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be read or stored.
        """

        async def find() -> PersonAccount:
            account = await self._store.get(account_id)
            if account is None:
                return await self._add_provided(PersonAccount(account_id, name, role, 1, self._now()), told)
            # guard of roles: a row that Aileron did not store lets nobody in
            #    -> features.people.test_provided.ProvidedTests.test_forged
            if not self.is_in_force(account):
                raise Conflict(_ALTERED.format(name=account.name))
            if account.role is role:
                return account
            wanted = evolve(account, role=role, login_revision=None)
            return await self._replace("people.role_changed", account, wanted, DAEMON)

        return (await self._in_turn(find)).login

    async def _add_provided(self, account: PersonAccount, told: Mapping[str, str]) -> PersonAccount:
        if account.id in self.list_removed():
            raise Forbidden("The operator of this Aileron removed your account. Nothing was changed.")
        if not await self._store.add(account, [self._event("people.added", DAEMON, account, told)]):
            raise Conflict(f"There is an account {account.name} already, or there are too many. Nothing was changed.")
        self._keep(account)
        return account

    def list_removed(self) -> Mapping[str, str]:
        """Return the names of the removed accounts that may not sign in with a provider again, by the account's ID."""
        people = self._book.people().items()
        return {each: mark.removeprefix(REMOVED) for each, mark in people if mark.startswith(REMOVED)}

    async def allow(self, name: str) -> None:
        """Allow a person to sign in with a provider again after their account was removed. That makes a new account.

        :raises NotFound: if no account with this name was removed.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
        """

        async def forget() -> None:
            allowed = {each for each, removed in self.list_removed().items() if removed == name}
            if not allowed:
                raise NotFound(f"No account {name} was removed that signed in with a provider.")
            self._book.keep_people({k: mark for k, mark in self._book.people().items() if k not in allowed})

        await self._in_turn(forget)

    async def _find_invited(self, code: str) -> PersonAccount:
        digest = _digest_code(code)
        for account in await self._store.all():
            invitation = account.invitation
            if invitation is None or not hmac.compare_digest(invitation.code_digest, digest):
                continue
            # guard of roles: a link lasts three days -> features.people.test_accounts.JoinTests.test_late,
            #    instead if self.is_in_force(account)
            if self._now() < invitation.ends_at and self.is_in_force(account):
                return account
        raise _refuse_code()

    async def _change(
        self, kind: str, name: str, actor: Actor, change: Callable[[PersonAccount], PersonAccount]
    ) -> PersonAccount:
        async def store() -> PersonAccount:
            account = await self._find(name)
            # guard of roles: no passphrase lets a person in whom a provider vouches for
            #    -> features.people.test_provided.ProvidedTests.test_no_passphrase
            if account.is_by_provider:
                raise Conflict(f"{name} signs in with a provider, whose groups give the role. Nothing was changed.")
            # guard of roles: a change of the role or the groups ends the logins, whatever the passkeys are
            #    -> features.people.test_passkeys.ChangeTests.test_role, instead wanted = change(account)
            wanted = evolve(change(account), login_revision=None)
            return await self._replace(kind, account, wanted, actor)

        return await self._in_turn(store)

    async def _replace(
        self,
        kind: str,
        account: PersonAccount,
        wanted: PersonAccount,
        actor: Actor,
        more: Mapping[str, str] | None = None,
    ) -> PersonAccount:
        # guard of roles: an altered row is not put in force
        #    -> features.people.test_accounts.ForgedTests.test_changed
        if not self.is_in_force(account):
            raise Conflict(_ALTERED.format(name=account.name))
        changed = evolve(wanted, revision=account.revision + 1)
        told = {**(more or {}), **({"before": account.role.value} if changed.role is not account.role else {})}
        if not await self._store.change(changed, account.revision, [self._event(kind, actor, changed, told)]):
            raise Conflict(f"The account {account.name} was changed meanwhile. Try again.")
        self._keep(changed)
        return changed

    async def _find(self, name: str) -> PersonAccount:
        found = next((each for each in await self._store.all() if each.name == name), None)
        if found is None:
            raise NotFound(f"There is no account {name}.")
        return found

    def _keep(self, account: PersonAccount) -> None:
        self._book.keep_people({**self._book.people(), account.id: account.digest})

    def _invite(self) -> tuple[str, Invitation]:
        code = write_base64url(self._randomness(_CODE_BYTES))
        return code, Invitation(_digest_code(code), self._now() + INVITED)

    def _event(self, kind: str, actor: Actor, account: PersonAccount, told: Mapping[str, str] | None = None) -> Event:
        payload: dict[str, JSON] = {"account": account.id, "name": account.name, "role": account.role.value}
        if account.groups:
            payload["groups"] = account.groups
        return Event(self._ids(), kind, self._now(), actor, {**payload, **(told or {})})

    async def _in_turn(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run C{work} when no other change is under way. It completes even if the caller is cancelled.

        Otherwise a change could be in the database without being in the vault.
        """
        return await uncancelled(self._turns.run(work))

    def _now(self) -> datetime:
        return utc(self._clock.seconds())


def _make_verifier(parameters: KdfParameters, key: bytes) -> Verifier:
    return Verifier(parameters.salt.hex(), key.hex(), parameters.iterations, parameters.memory_kib, parameters.lanes)


def _digest_code(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()


def _refuse_code() -> Unauthorized:
    return Unauthorized("This link was used, or is too old. Ask for a new one.")
