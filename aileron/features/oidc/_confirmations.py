"""Has the provider confirm again who is signed in. A login whose person was not confirmed in time has no rights.

What is known is in this process's memory, as the logins are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron.base.json import JSON, utc
from aileron.credentials import SignInRefused
from aileron.model.audit import DAEMON, Event
from aileron.model.errors import BindingFailed, NetworkError, VaultLocked
from aileron.model.people import AccountLogin, Role

from ._membership import find_role
from ._provider import SignInProvider, VerifiedPerson
from .values import OidcSettings

_log = Logger()

MOST_SECONDS = 12 * 3600.0
"""The longest time from a sign-in at the provider to the next one."""

LOOK_SECONDS = 30.0
"""The time between two looks for who is due."""

_TRIES = 3
_SET_BACK_SECONDS = 60.0


@frozen
class ConfirmedPerson:
    """A person who has signed in.

    :ivar login: the account, as it was at the sign-in.
    :ivar subject: the provider's subject.
    :ivar nonce: the nonce of the sign-in.
    :ivar refresh_token: what the provider is asked with, or None if it gave nothing.
    :ivar began_at: when the person signed in at the provider.
    :ivar confirmed_at: when the provider has confirmed the person last.
    :ivar tried_at: when the provider was asked last.
    """

    login: AccountLogin
    subject: str
    nonce: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    began_at: float
    confirmed_at: float
    tried_at: float


class Confirmations:
    """The people who have signed in with the provider, each with the time of the last confirmation.

    The provider is asked three times while a confirmation lasts, by the refresh token. If it refuses, or names another
    role, the person must sign in again at once. If it is silent, that is so when the confirmation has ended.

    :param record: stores an audit event.
    """

    def __init__(
        self,
        settings: OidcSettings,
        provider: SignInProvider,
        clock: IReactorTime,
        record: Callable[[Event], Awaitable[None]],
        ids: Callable[[], str],
    ) -> None:
        self._settings, self._provider, self._clock = settings, provider, clock
        self._record, self._ids = record, ids
        self._people: dict[str, ConfirmedPerson] = {}
        self._lasts_seconds = settings.recheck_minutes * 60.0

    def begin(self, login: AccountLogin, person: VerifiedPerson, nonce: str) -> None:
        """Note that a person has signed in."""
        now = self._clock.seconds()
        self._people[login.account] = ConfirmedPerson(login, person.subject, nonce, person.refresh_token, now, now, now)

    def end(self, account_id: str) -> None:
        """Forget a person, who must sign in again. Idempotent."""
        self._people.pop(account_id, None)

    def is_confirmed(self, account_id: str) -> bool:
        """Return whether the provider has confirmed the person of an account, not too long ago."""
        found = self._people.get(account_id)
        return found is not None and self._lasts(found)

    async def renew(self, signed_in: Collection[str]) -> None:
        """Ask the provider about everybody who is due, one after another.

        :param signed_in: the IDs of the accounts with a login. Everybody else is forgotten.
        """
        for each in tuple(self._people.values()):
            if each.login.account not in signed_in or not self._lasts(each):
                self._forget(each)
            elif each.refresh_token is not None and self._is_due(each):
                await self._ask(each, each.refresh_token)

    async def _ask(self, person: ConfirmedPerson, refresh_token: str) -> None:
        tried = evolve(person, tried_at=self._clock.seconds())
        if not self._replace(person, tried):
            return
        try:
            found = await self._provider.refresh(refresh_token, person.nonce)
        except (NetworkError, BindingFailed, VaultLocked) as error:
            _log.warn("oidc: the provider did not confirm a login: {kind}", kind=error.kind)
            return
        except SignInRefused:
            await self._withdraw(tried, None)
            return
        role = find_role(self._settings, found.claims)
        # guard of sign-in: another person, or another role, ends the login
        #    -> features.oidc.test_confirmations.ChangedTests.test_role
        if found.subject != person.subject or role is not person.login.role:
            await self._withdraw(tried, role)
            return
        again = found.refresh_token or refresh_token
        self._replace(tried, evolve(tried, refresh_token=again, confirmed_at=self._clock.seconds()))

    async def _withdraw(self, person: ConfirmedPerson, role: Role | None) -> None:
        """End the login of a person whom the provider does not confirm, and record it.

        :param role: the role that the provider gives now.
        :raises StoreUnavailable: if it cannot be recorded. The login has ended.
        """
        if not self._forget(person):
            return
        login = person.login
        told: dict[str, JSON] = {"account": login.account, "name": login.name, "role": login.role.value}
        told |= {"now": None if role is None else role.value}
        await self._record(Event(self._ids(), "oidc.withdrawn", utc(self._clock.seconds()), DAEMON, told))

    def _lasts(self, person: ConfirmedPerson) -> bool:
        # guard of sign-in: a login ends unless the provider confirms it
        #    -> features.oidc.test_confirmations.SilentTests.test_ends, instead return True
        return self._is_within(person.confirmed_at, self._lasts_seconds) and self._is_within(
            person.began_at, MOST_SECONDS
        )

    def _is_due(self, person: ConfirmedPerson) -> bool:
        return not self._is_within(person.tried_at, self._lasts_seconds / _TRIES)

    def _is_within(self, at: float, seconds: float) -> bool:
        """Return whether a time is less than C{seconds} ago. A clock that was set back does not extend it."""
        return -_SET_BACK_SECONDS <= self._clock.seconds() - at < seconds

    def _replace(self, before: ConfirmedPerson, after: ConfirmedPerson) -> bool:
        """Store C{after} unless the person has signed in again meanwhile. Return whether it is stored."""
        if self._people.get(before.login.account) is not before:
            return False
        self._people[before.login.account] = after
        return True

    def _forget(self, person: ConfirmedPerson) -> bool:
        """Remove a person who has not signed in again meanwhile. Return whether it is removed."""
        if self._people.get(person.login.account) is not person:
            return False
        del self._people[person.login.account]
        return True
