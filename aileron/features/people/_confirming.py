"""Confirms, before a passkey is added, that the person is there: with the passphrase, or with another passkey."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aileron.base.json import JSON
from aileron.model.errors import Conflict, Forbidden

from ._accounts import Accounts
from ._attempts import SignInAttempts
from ._passkeys import AccountPasskeys, SignedInPerson

PLAIN = "Passkeys are not added here: something other than Aileron ends TLS (phone.tls in config.yaml)."


@frozen(eq=False)
class Confirming:
    """Checks confirmations. A login alone proves no person: its key is in a browser's profile.

    :ivar attempts: counts attempts with a passphrase, together with those to sign in.
    :ivar is_plain: whether the daemon is reached by plain HTTP. Nothing is confirmed then.
    """

    _accounts: Accounts
    _passkeys: AccountPasskeys
    _attempts: SignInAttempts
    _is_plain: bool = False

    def check_place(self) -> None:
        """Check that passkeys can be added at this address.

        :raises Conflict: if they cannot.
        """
        # guard of roles: no passphrase in plain text, to add a passkey either
        #    -> features.people.test_passkeys.PlainTests.test_not_added
        if self._is_plain:
            raise Conflict(PLAIN)

    async def check_passphrase(self, person: SignedInPerson, passphrase: str) -> None:
        """Check the passphrase of a person who is signed in.

        :raises Forbidden: if it is wrong.
        :raises LimitExceeded: if there were too many attempts.
        :raises Conflict: if nothing is confirmed here.
        :raises StoreUnavailable: if the account cannot be read.
        """
        self.check_place()
        name, is_right = person.login.name, False
        # guard of roles: a stolen login cannot try out passphrases
        #    -> features.people.test_passkeys.ConfirmTests.test_guessed
        self._attempts.begin(name)
        try:
            is_right = await self._accounts.check(name, passphrase) == person.login
        finally:
            self._attempts.end(name, is_right=is_right)
        # guard of roles: a passkey is added by who knows the passphrase
        #    -> features.people.test_passkeys.ConfirmTests.test_wrong
        if not is_right:
            raise Forbidden("The passphrase is wrong. Nothing was added.")

    async def check_passkey(self, person: SignedInPerson, nonce: str, credential: Mapping[str, JSON]) -> None:
        """Check that a passkey of a person who is signed in has just signed.

        :raises Unauthorized: if the account was removed or changed.
        :raises Forbidden: if the answer is not valid, or not fresh.
        :raises Conflict: if nothing is confirmed here.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if this cannot be found out.
        """
        self.check_place()
        await self._passkeys.confirm(person, nonce, credential)
