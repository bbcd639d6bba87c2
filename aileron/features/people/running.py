"""The accounts of people, as a feature that runs in the daemon."""

from __future__ import annotations

import secrets
from contextlib import suppress
from functools import partial
from hashlib import sha256

from attrs import field, frozen

from aileron.features.core import Core
from aileron.features.feature import RunningFeature
from aileron.features.phone.running import PublicAccounts, RunningPhone, StrangerLimit
from aileron.features.phone.values import PhoneTls
from aileron.model.errors import Conflict, NotFound
from aileron.model.interfaces.authority import IControl
from aileron.model.people import Owner, PersonAccount
from aileron.vault import Nonces, RelyingParty, stretch

from ._accounts import Accounts
from ._attempts import SignInAttempts
from ._confirming import Confirming
from ._entrance import FILES, AccountEntrance
from ._passkeys import AccountPasskeys

__all__ = ["ROUTES", "SHOWN", "Accounts", "RunningPeople", "start_people"]

ROUTES = (
    "list_people",
    "add_person",
    "invite_person",
    "change_person",
    "change_groups",
    "remove_person",
    "connect_agent",
    "list_own_passkeys",
    "ask_own_passkey",
    "offer_own_passkey",
    "add_own_passkey",
    "remove_own_passkey",
)
"""The routes that are served at the public name too. C{aileron/api/roles.py} says for whom."""

NONCE_TAG = "aileron.account-nonce.v1"
"""Marks what the vault signs as a nonce for a passkey of an account. No decision has it."""

SHOWN = ("/settings/people", "/settings/account")


@frozen(eq=False)
class RunningPeople(RunningFeature):
    """The accounts of people, who sign in at the public name.

    :ivar public_url: the origin of the pages at which people sign in.
    """

    accounts: Accounts = field(repr=False)
    passkeys: AccountPasskeys = field(repr=False)
    confirming: Confirming = field(repr=False)
    public_url: str

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that routes and pages look up by class: only this one."""
        return (self,)

    async def find_owner(self, name: str) -> Owner | None:
        with suppress(NotFound, Conflict):
            return await self.accounts.find_owner(name)
        return None

    def write_link(self, code: str) -> str:
        """Return the link by which a person sets the passphrase. The code is after the C{#}, so no server gets it."""
        return f"{self.public_url}/join#{code}"

    def describe(self, account: PersonAccount) -> str:
        """Return the state of an account: C{active}, C{invited}, or C{altered} if it cannot be used."""
        if not self.accounts.is_in_force(account):
            return "altered"
        return "active" if account.invitation is None else "invited"


def start_people(core: Core) -> RunningPeople | None:
    """Serve accounts at the public name, or return None if there is none."""
    phone, process = core.find(RunningPhone), core.process
    if phone is None:
        return None
    in_thread = process.in_thread(at_once=1)
    accounts = Accounts(
        core.store.people,
        core.vault,
        process.reactor,
        process.ids,
        secrets.token_bytes,
        lambda passphrase, parameters: in_thread(stretch, passphrase, parameters),
    )
    clock, settings = process.reactor, phone.settings
    is_plain = settings.tls is PhoneTls.NONE
    nonces = Nonces(clock, authenticate=partial(sign_nonce, core.vault))
    party = RelyingParty(settings.host, (settings.public_url,))
    passkeys = AccountPasskeys(accounts, core.store.people, nonces, party, clock)
    attempts, passkey_attempts = SignInAttempts(clock), SignInAttempts(clock)
    limit = StrangerLimit(clock).take
    entrance = AccountEntrance(accounts, passkeys, attempts, passkey_attempts, limit, is_plain)
    phone.accounts.append(PublicAccounts(entrance.routes(), FILES, ROUTES, SHOWN, accounts.find_role))
    confirming = Confirming(accounts, passkeys, attempts, is_plain)
    return RunningPeople(accounts, passkeys, confirming, settings.public_url)


def sign_nonce(vault: IControl, text: bytes) -> bytes:
    """Return the MAC of a nonce with a key of the vault, which all daemons with this vault have.

    :raises VaultLocked, BindingFailed: if the vault cannot be used.
    """
    return sha256(vault.sign({"tag": NONCE_TAG, "text": text.hex()})).digest()
