"""The sign-in with a provider, as a feature that runs in the daemon."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial

from attrs import evolve, field, frozen

from aileron.base.json import JSON
from aileron.connectors import HttpExchange, system_transport
from aileron.features.core import Core, ListeningSites
from aileron.features.feature import RunningFeature
from aileron.features.people.running import Accounts, RunningPeople
from aileron.features.phone.running import PublicAccounts, RunningPhone, StrangerLimit
from aileron.features.phone.values import PhoneTls
from aileron.model.people import BY_PROVIDER, AccountLogin, Role

from ._attempts import ProviderAttempts
from ._client_secret import open_secret
from ._confirmations import LOOK_SECONDS, Confirmations
from ._entrance import FILES, RETURN_PATH, ProviderEntrance, Serve, SignInSite
from ._provider import SignInProvider
from .values import TARGET, OidcSettings

_PLAIN = "Nobody can sign in with the provider while phone.tls is none in config.yaml."


@frozen(eq=False)
class RunningOidc(RunningFeature):
    """The sign-in with a provider.

    :ivar redirect_uri: the address to register at the provider.
    """

    settings: OidcSettings
    redirect_uri: str
    accounts: Accounts = field(repr=False)
    confirmations: Confirmations = field(repr=False)
    is_plain: bool
    _core: Core = field(repr=False)

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that routes look up by class: only this one."""
        return (self,)

    def find_scope(self, name: str) -> OidcSettings | None:
        return self.settings if name == TARGET else None

    def status(self) -> Mapping[str, JSON]:
        return {"oidc": self.describe()}

    def describe(self) -> Mapping[str, JSON]:
        """Return the provider for answers of the API: issuer, our redirect URI, and why nobody signs in."""
        problem = _PLAIN if self.is_plain else None
        return {"issuer": self.settings.issuer, "redirect_uri": self.redirect_uri, "problem": problem}

    async def serve(self, sites: ListeningSites) -> None:
        operators = sites.parts.operators

        async def look() -> None:
            accounts = {each.account.account for each in operators.list() if each.account is not None}
            await self.confirmations.renew(accounts)

        process = self._core.process
        process.life.repeat(process.reactor, LOOK_SECONDS, look)


def start_oidc(core: Core, settings: OidcSettings) -> RunningOidc | None:
    """Serve the sign-in with the provider at the public name, or return None if there is none."""
    phone, people, process = core.find(RunningPhone), core.find(RunningPeople), core.process
    if phone is None or people is None:
        return None
    clock = process.reactor
    exchange = HttpExchange(system_transport(clock, lambda: process.own_ports), clock)
    provider = SignInProvider(settings, exchange, partial(open_secret, core.vault, settings), clock)
    confirmations = Confirmations(settings, provider, clock, core.store.audit.append, process.ids)
    redirect_uri, is_plain = f"{phone.settings.public_url}{RETURN_PATH}", phone.settings.tls is PhoneTls.NONE
    [before] = phone.accounts
    site = SignInSite(redirect_uri, StrangerLimit(clock).take, _find_sign_in(before), is_plain)
    attempts = ProviderAttempts(secrets.token_bytes(32), clock)
    entrance = ProviderEntrance(settings, provider, attempts, confirmations, people.accounts, secrets.token_bytes, site)
    phone.accounts[:] = [add_provider(before, entrance, confirmations)]
    return RunningOidc(settings, redirect_uri, people.accounts, confirmations, is_plain, core)


def add_provider(accounts: PublicAccounts, entrance: ProviderEntrance, confirmations: Confirmations) -> PublicAccounts:
    """Return the accounts of the public name with the sign-in with a provider."""

    async def find_role(login: AccountLogin) -> Role | None:
        # guard of sign-in: each request needs the provider's confirmation
        #    -> features.oidc.test_entrance.LeavingTests.test_silent, instead if False
        if login.account.startswith(BY_PROVIDER) and not confirmations.is_confirmed(login.account):
            return None
        return await accounts.find_role(login)

    routes = entrance.routes()
    replaced = {(path, method) for path, method, _ in routes}
    kept = [each for each in accounts.serve if each[:2] not in replaced]
    return evolve(accounts, serve=(*routes, *kept), files=(*accounts.files, *FILES), find_role=find_role)


def _find_sign_in(accounts: PublicAccounts) -> Serve:
    return next(serve for path, method, serve in accounts.serve if (path, method) == ("/signin", "GET"))
