"""The public name with a sign-in provider, over memory."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from treq.testing import StubTreq
from twisted.internet.defer import Deferred

from aileron.features.oidc._attempts import COOKIE, ProviderAttempts
from aileron.features.oidc._confirmations import Confirmations
from aileron.features.oidc._entrance import RETURN_PATH, ProviderEntrance, SignInSite
from aileron.features.oidc._provider import SignInProvider
from aileron.features.oidc.running import RunningOidc, add_provider
from aileron.features.oidc.values import OidcSettings
from aileron.features.phone.running import StrangerLimit
from aileron.features.phone.values import PhoneTls
from aileron.model.people import PersonAccount, Role
from aileron.testing import MemoryOperators, SigningBrowser
from tests.api.case import running
from tests.features.oidc.issuer import CLIENT_ID, SECRET, Issuer
from tests.features.people.case import PeopleCase
from tests.features.phone.case import PUBLIC, Heard

ISSUER = "https://login.example.org"
SETTINGS = OidcSettings(ISSUER, CLIENT_ID, roles={"ops": Role.APPROVER, "boss": Role.ADMINISTRATOR})


class OidcCase(PeopleCase):
    """A daemon with a public name, accounts and a provider."""

    oidc = SETTINGS

    def setUp(self) -> None:
        """Add the provider to the site of the public name."""
        super().setUp()
        self.issuer = Issuer(ISSUER, self.clock.seconds)
        self.provider = SignInProvider(self.oidc, self.issuer.exchange, self.open_secret, self.clock)
        self.confirmations = Confirmations(self.oidc, self.provider, self.clock, self.store.audit.append, self.fresh_id)
        [before] = self.running.accounts
        show = next(serve for path, method, serve in before.serve if (path, method) == ("/signin", "GET"))
        is_plain = self.settings.tls is PhoneTls.NONE
        site = SignInSite(PUBLIC + RETURN_PATH, StrangerLimit(self.clock).take, show, is_plain)
        self.provider_attempts = ProviderAttempts(b"k" * 32, self.clock)
        self.entrance = ProviderEntrance(
            self.oidc, self.provider, self.provider_attempts, self.confirmations, self.accounts, self.randomness, site
        )
        self.running.accounts[:] = [add_provider(before, self.entrance, self.confirmations)]
        core: Any = self.running.core
        self.provided = RunningOidc(self.oidc, site.redirect_uri, self.accounts, self.confirmations, is_plain, core)
        self.build(features=running(self.running, self.people, self.provided))
        self.site = self.running._make_site(self.deps)
        self.treq = StubTreq(self.site.resource)

    async def open_secret(self) -> str | None:
        """The client secret."""
        return SECRET

    def begin(self) -> tuple[str, str]:
        """Begin to sign in, and return the attempt's cookie and the address of the provider's page."""
        self.treq = StubTreq(self.site.resource)  # another browser
        heard = self.send("POST", "/signin/oidc/begin", {})
        self.assertEqual(heard.status, 200, heard.text)
        return heard.headers["set-cookie"].partition(";")[0].partition("=")[2], heard.json["url"]

    def finish(self, cookie: str, query: str) -> tuple[SigningBrowser, Heard]:
        """Send what the page sends to which the provider has sent the browser; return the page and the answer."""
        self.treq = StubTreq(self.site.resource)
        page = SigningBrowser.generate("", self.clock.seconds)
        headers = {"Cookie": f"{COOKIE}={cookie}"} if cookie else {}
        heard = self.send("POST", "/signin/oidc", {"query": query, "public_key": page.public_key}, headers=headers)
        value = heard.headers.get("set-cookie", "").partition(";")[0].partition("=")[2]
        return evolve(page.with_instance(MemoryOperators.INSTANCE), cookie=value), heard

    def enter_by_provider(self, **changed: str | None) -> tuple[SigningBrowser, Heard]:
        """Sign in with the provider, and return the page and the answer.

        :param changed: see L{Issuer.visit}.
        """
        cookie, url = self.begin()
        return self.finish(cookie, self.issuer.visit(url, **changed))

    def signed_in(self) -> SigningBrowser:
        """A page of a person who has signed in with the provider."""
        page, heard = self.enter_by_provider()
        self.assertEqual(heard.status, 200, heard.text)
        return page

    def refused(self, words: str, **changed: str | None) -> None:
        """Check that nobody is let in, with these words."""
        count = len(self.operators.list())
        heard = self.enter_by_provider(**changed)[1]
        self.assertEqual(heard.status, 401, heard.text)
        self.assertIn(words, heard.text)
        self.assertEqual(len(self.operators.list()), count)

    def looks(self, page: SigningBrowser) -> int:
        """The status of a request for the inbox."""
        return self.send("GET", "/fragments/approvals", browser=page).status

    def renew(self) -> None:
        """Look who is due to be confirmed."""
        accounts = {each.account.account for each in self.operators.list() if each.account is not None}
        self.successResultOf(Deferred.fromCoroutine(self.confirmations.renew(accounts)))

    def only_account(self) -> PersonAccount:
        """The only account."""
        [found] = self.now(self.accounts.list())
        return found  # type: ignore[no-any-return]
