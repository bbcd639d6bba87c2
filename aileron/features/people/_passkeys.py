"""The passkeys of accounts: made by the person who is signed in, and used to sign in without a name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Protocol

from attrs import field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import JSON, canonical, utc
from aileron.base.signatures import read_base64url, write_base64url
from aileron.model.audit import Actor
from aileron.model.errors import AileronError, Conflict, Forbidden, NotFound, Unauthorized
from aileron.model.people import AccountLogin, AccountPasskey, PasskeyUse, PersonAccount
from aileron.vault import Nonces, PasskeyUser, RelyingParty

from ._accounts import Accounts

MOST_PASSKEYS = 10
"""The most passkeys of one account."""

MOST_NAME = 64
"""The longest name of a passkey."""

SIGN_IN_TAG = "aileron.account-signin.v1"
"""The first member of the text that a passkey of an account signs to sign in. No other signed text begins with it."""

CONFIRM_TAG = "aileron.account-confirm.v1"
"""The first member of the text that a passkey of an account signs before another passkey is added."""

ADD_TAG = "aileron.account-passkey.v1"
"""The first member of the text whose digest is the challenge of a new passkey."""

ANSWER_SECONDS = 60.0
"""How long a challenge can be answered."""

ADD_SECONDS = 120.0
"""How long a passkey can be added after the confirmation."""

_REMEMBERED = timedelta(days=1)
"""How long a used challenge is stored. It is longer than challenges last, also by clocks that differ by hours."""

_TOO_LATE = "This took too long, or your account was changed meanwhile. Nothing was added. Try again."
_NOT_MADE = "This is no passkey for this address. Nothing was added. Try again."
_PROVIDED = "You sign in with a provider, so passkeys are added there."
_REFUSED = "This passkey was not accepted here. Try again, or sign in with your name and passphrase."


class StoresPasskeyUses(Protocol):
    """The uses of accounts' passkeys in the database. See L{aileron.store.Store}."""

    async def list_uses(self, account_id: str) -> Mapping[str, PasskeyUse]:
        """Return the last use of each passkey of an account, by the passkey's ID."""

    async def use_passkey(self, account: PersonAccount, use: PasskeyUse, challenge: str, until: datetime) -> bool:
        """Store a use, and that its challenge was used. Return False if the use does not count."""


def make_challenge(tag: str, nonce: str, *about: str) -> bytes:
    """Return the challenge that a passkey signs.

    :param about: what is signed besides, such as the key of the page that signs in.
    """
    return hashlib.sha256(canonical([tag, nonce, *about])).digest()


def read_handle(credential: Mapping[str, JSON]) -> str:
    """Return the account's ID that an authenticator returned as its user handle, or an empty text if there is none."""
    response = credential.get("response")
    handle = response.get("userHandle") if isinstance(response, Mapping) else None
    try:
        return read_base64url(str(handle)).decode("ascii")
    except ValueError:
        return ""


@frozen
class SignedInPerson:
    """A person who is signed in.

    :ivar session: the ID of the login.
    """

    login: AccountLogin
    session: str

    @property
    def actor(self) -> Actor:
        """The person in the form in which the audit log stores them."""
        return Actor("human", self.session)


@frozen(eq=False)
class AccountPasskeys:
    """The passkeys of all accounts, at the public name.

    Challenges are not stored before they are used. All daemons that have the same vault and database know them.

    :ivar nonces: makes nonces whose MAC has a key of the vault.
    :ivar party: the public name as the site of passkeys.
    """

    _accounts: Accounts
    _store: StoresPasskeyUses = field(repr=False)
    _nonces: Nonces
    _party: RelyingParty
    _clock: IReactorTime

    async def list(self, person: SignedInPerson) -> tuple[tuple[AccountPasskey, datetime | None], ...]:
        """Return the passkeys of a person, oldest first, each with the time of its last use.

        :raises Unauthorized: if the account was removed or changed.
        :raises StoreUnavailable: if they cannot be read.
        """
        account = await self._find_account(person)
        uses = await self._store.list_uses(account.id)
        return tuple((each, uses[each.id].used_at if each.id in uses else None) for each in account.passkeys)

    def is_usable(self, passkey: AccountPasskey) -> bool:
        """Return whether a passkey was made for the present public name."""
        return passkey.site == self._party.site

    def offer_sign_in(self) -> dict[str, JSON]:
        """Return a new challenge for signing in, as JSON: C{nonce} and C{site}. It can be answered for one minute.

        :raises VaultLocked, BindingFailed: if none can be made.
        """
        return {"nonce": self._nonces.make(_SIGN_IN), "site": self._party.site}

    async def check_sign_in(
        self, nonce: str, public_key: str, credential: Mapping[str, JSON]
    ) -> tuple[AccountLogin, AccountPasskey]:
        """Return the login of the account whose passkey has signed a page's key, and the passkey.

        :raises Unauthorized: if the nonce is not fresh or was used, or the answer is not valid.
        :raises Conflict: if the library is missing.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if this cannot be found out.
        """
        # guard of roles: a challenge to sign in is ours, and for one minute
        #    -> features.people.test_passkeys.SignInTests.test_late
        if not self._nonces.is_fresh(_SIGN_IN, nonce, ANSWER_SECONDS):
            raise _refuse()
        # guard of roles: a passkey signs in to the account for which it was made
        #    -> features.people.test_passkeys.SignInTests.test_handle_of_another
        account = await self._accounts.find_in_force(read_handle(credential))
        if account is None:
            raise _refuse()
        passkey = await self._use(account, make_challenge(SIGN_IN_TAG, nonce, public_key), credential, _refuse())
        return account.login, passkey

    async def ask(self, person: SignedInPerson) -> tuple[str, Mapping[str, JSON]]:
        """Return a nonce, and the options with which a passkey of a person confirms that it is this person.

        :raises Unauthorized: if the account was removed or changed.
        :raises Conflict: if the person has no passkey for this address, or the library is missing.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if this cannot be found out.
        """
        account = await self._find_account(person)
        known = [each.id for each in account.passkeys if self.is_usable(each)]
        if not known:
            raise Conflict("You have no passkey for this address. Use your passphrase.")
        nonce = self._nonces.make(_bind(_CONFIRM, account, person))
        return nonce, self._party.write_request(make_challenge(CONFIRM_TAG, nonce), known)

    async def confirm(self, person: SignedInPerson, nonce: str, credential: Mapping[str, JSON]) -> None:
        """Check that a passkey of a person confirmed, just now, that it is this person.

        :raises Unauthorized: if the account was removed or changed.
        :raises Forbidden: if the nonce is not fresh or was used, or the answer is not valid.
        :raises Conflict: if the library is missing.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if this cannot be found out.
        """
        account = await self._find_account(person)
        problem = Forbidden("This passkey did not confirm that it is you. Nothing was added. Try again.")
        # guard of roles: a confirmation is for this login, and for one minute
        #    -> features.people.test_passkeys.ConfirmTests.test_late
        if not self._nonces.is_fresh(_bind(_CONFIRM, account, person), nonce, ANSWER_SECONDS):
            raise problem
        await self._use(account, make_challenge(CONFIRM_TAG, nonce), credential, problem)

    async def offer(self, person: SignedInPerson) -> tuple[str, Mapping[str, JSON]]:
        """Return a nonce, and the options with which an authenticator makes a passkey. The caller has confirmed.

        :raises Unauthorized: if the account was removed or changed.
        :raises Conflict: if the account cannot have a further passkey, or the library is missing.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if this cannot be found out.
        """
        account = await self._find_account(person)
        _check_room(account)
        nonce = self._nonces.make(_bind(_ADD, account, person))
        user = PasskeyUser(account.id.encode("ascii"), account.name)
        known = [each.id for each in account.passkeys]
        return nonce, self._party.write_creation(user, make_challenge(ADD_TAG, nonce), known, needs_room=True)

    async def add(
        self, person: SignedInPerson, nonce: str, name: str, credential: Mapping[str, JSON]
    ) -> AccountPasskey:
        """Add the passkey that an authenticator has made to the person's account. The logins of the account stay.

        :param nonce: the nonce of the offer, which proves that the person confirmed.
        :raises Unauthorized: if the account was removed or changed.
        :raises Forbidden: if the nonce is not fresh, or of another login, or the account was changed since.
        :raises Conflict: if the passkey is not valid, the account cannot have it, or was changed meanwhile.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
        """
        account = await self._find_account(person)
        # guard of roles: a stolen login adds no passkey, since each needs a confirmation of its own
        #    -> features.people.test_passkeys.AddTests.test_unconfirmed
        if not self._nonces.is_fresh(_bind(_ADD, account, person), nonce, ADD_SECONDS):
            raise Forbidden(_TOO_LATE)
        _check_room(account)
        made = self._party.verify_creation(credential, make_challenge(ADD_TAG, nonce), Conflict(_NOT_MADE))
        if made.id in {each.id for each in account.passkeys}:
            raise Conflict("This passkey was added already.")
        public_key = write_base64url(made.public_key)
        passkey = AccountPasskey(
            made.id, name, public_key, utc(self._clock.seconds()), made.count, self._party.site, made.synced
        )
        await self._accounts.change_passkeys(
            "people.passkey_added", account, (*account.passkeys, passkey), person.actor, _describe(passkey)
        )
        return passkey

    async def remove(self, person: SignedInPerson, passkey_id: str) -> AccountPasskey:
        """Remove a passkey from the person's account. The logins of the account stay.

        :raises Unauthorized: if the account was removed or changed.
        :raises NotFound: if the account has no such passkey.
        :raises Conflict: if the account was changed meanwhile.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored.
        """
        account = await self._find_account(person)
        gone = next((each for each in account.passkeys if each.id == passkey_id), None)
        if gone is None:
            raise NotFound("You have no such passkey.")
        kept = tuple(each for each in account.passkeys if each is not gone)
        await self._accounts.change_passkeys("people.passkey_removed", account, kept, person.actor, _describe(gone))
        return gone

    async def _find_account(self, person: SignedInPerson) -> PersonAccount:
        account = await self._accounts.find_account(person.login)
        if account is None:
            raise Unauthorized("Your account was changed or removed. Sign in again.")
        return account

    async def _use(
        self, account: PersonAccount, challenge: bytes, credential: Mapping[str, JSON], problem: AileronError
    ) -> AccountPasskey:
        """Verify the answer of a passkey of an account, and store its use. The challenge is used up.

        :param problem: the error to raise if the answer is not valid.
        """
        passkey = next((each for each in account.passkeys if each.id == credential.get("id")), None)
        if passkey is None:
            raise problem
        last = (await self._store.list_uses(account.id)).get(passkey.id)
        count = passkey.count if last is None else max(passkey.count, last.count)
        used = self._party.verify_use(credential, challenge, read_base64url(passkey.public_key), count, problem)
        # guard of roles: a passkey that was bound to one device stays so
        #    -> features.people.test_passkeys.SignInTests.test_synced_later, instead if False
        if used.synced != passkey.synced:
            raise problem
        now = utc(self._clock.seconds())
        # guard of roles: a challenge is used once, at one of several daemons
        #    -> features.people.test_passkeys.DaemonsTests.test_replayed
        if not await self._store.use_passkey(
            account, PasskeyUse(passkey.id, used.count, now), challenge.hex(), now + _REMEMBERED
        ):
            raise problem
        return passkey


_SIGN_IN, _CONFIRM, _ADD = "account sign-in", "account confirmation", "account passkey"


def _bind(purpose: str, account: PersonAccount, person: SignedInPerson) -> str:
    """Return the purpose of a nonce for one login of an account as it is now."""
    return f"{purpose} {person.session} {account.digest}"


def _check_room(account: PersonAccount) -> None:
    # guard of roles: the provider alone decides how its people sign in
    #    -> features.people.test_passkeys.AddTests.test_provider
    if account.is_by_provider:
        raise Conflict(_PROVIDED)
    # guard of roles: an account has a bounded number of passkeys -> features.people.test_passkeys.AddTests.test_many
    if len(account.passkeys) >= MOST_PASSKEYS:
        raise Conflict(f"You have {MOST_PASSKEYS} passkeys, which is the most. Remove one first.")


def _describe(passkey: AccountPasskey) -> dict[str, str]:
    return {"passkey": passkey.id, "passkey_name": passkey.name}


def _refuse() -> Unauthorized:
    return Unauthorized(_REFUSED)
