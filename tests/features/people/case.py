"""The public name with accounts, over memory, without the slow derivation of keys."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from attrs import evolve
from treq.testing import StubTreq
from twisted.internet.defer import Deferred

from aileron.features.people._accounts import Accounts
from aileron.features.people._attempts import SignInAttempts
from aileron.features.people._confirming import Confirming
from aileron.features.people._entrance import FILES, AccountEntrance
from aileron.features.people._passkeys import AccountPasskeys
from aileron.features.people.running import ROUTES, SHOWN, RunningPeople
from aileron.features.phone.running import PublicAccounts, StrangerLimit
from aileron.features.phone.values import PhoneTls
from aileron.model.audit import Actor
from aileron.model.people import PersonAccount, Role
from aileron.testing import MemoryOperators, MemoryPeopleBook, SigningBrowser
from aileron.vault import KdfParameters, Nonces, RelyingParty
from aileron.web import pages
from tests.api.case import COOKIE as DESK_COOKIE
from tests.api.case import running
from tests.features.phone.case import COOKIE, PUBLIC, SITE, Heard, PhoneCase

PASSPHRASE = "marmot velvet canyon thirty"
OPERATOR = Actor("human", "ops_1")


async def derive_fast(passphrase: str, parameters: KdfParameters) -> bytes:
    """Derive a key at once. The tests of the vault have the slow way."""
    return hashlib.sha256(parameters.salt + passphrase.encode()).digest()


class PeopleCase(PhoneCase):
    """A daemon with a public name and accounts."""

    def setUp(self) -> None:
        """Add accounts to the site of the public name."""
        super().setUp()
        self.book = MemoryPeopleBook(self.vault)
        self.accounts = Accounts(self.store.people, self.book, self.clock, self.fresh_id, self.randomness, self.derive)
        limit, is_plain = StrangerLimit(self.clock).take, self.settings.tls is PhoneTls.NONE
        self.attempts = SignInAttempts(self.clock)
        nonces = Nonces(self.clock, authenticate=lambda text: hmac.digest(b"vault", text, "sha256"))
        party = RelyingParty(SITE, (PUBLIC,))
        self.account_passkeys = AccountPasskeys(self.accounts, self.store.people, nonces, party, self.clock)
        passkey_attempts = SignInAttempts(self.clock)
        entrance = AccountEntrance(
            self.accounts, self.account_passkeys, self.attempts, passkey_attempts, limit, is_plain
        )
        self.running.accounts.append(PublicAccounts(entrance.routes(), FILES, ROUTES, SHOWN, self.accounts.find_role))
        confirming = Confirming(self.accounts, self.account_passkeys, self.attempts, is_plain)
        self.people = RunningPeople(self.accounts, self.account_passkeys, confirming, PUBLIC)
        self.build(features=running(self.running, self.people))
        self.site = self.running._make_site(self.deps)
        self.treq = StubTreq(self.site.resource)

    async def derive(self, passphrase: str, parameters: KdfParameters) -> bytes:
        """Derive a key at once."""
        return await derive_fast(passphrase, parameters)

    def now(self, work: Any) -> Any:
        """The result of a coroutine, which must be there at once."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def add(self, name: str = "alice", role: Role = Role.APPROVER) -> str:
        """Make an account, and return the code of its link."""
        _account, code = self.now(self.accounts.add(name, role, OPERATOR))
        return str(code)

    def account(self, name: str = "alice") -> PersonAccount:
        """The account with this name."""
        found: PersonAccount = next(each for each in self.now(self.accounts.list()) if each.name == name)
        return found

    def enter(self, path: str, body: Mapping[str, Any]) -> tuple[SigningBrowser, Heard]:
        """Send what a page sends to sign in, and return the page and the answer."""
        self.treq = StubTreq(self.site.resource)  # another browser, without the cookies of those before
        page = SigningBrowser.generate("", self.clock.seconds)
        heard = self.send("POST", path, {**body, "public_key": page.public_key})
        cookie = heard.headers.get("set-cookie", "").partition(";")[0].partition("=")[2]
        return evolve(page.with_instance(MemoryOperators.INSTANCE), cookie=cookie), heard

    def joined(self, name: str = "alice", role: Role = Role.APPROVER) -> SigningBrowser:
        """A page of a new account, which is signed in."""
        page, heard = self.enter("/join", {"code": self.add(name, role), "passphrase": PASSPHRASE})
        self.assertEqual(heard.status, 200, heard.text)
        self.assertTrue(heard.headers["set-cookie"].startswith(COOKIE))
        return page

    def desk(self, path: str, browser: Any) -> str:
        """The text of a page at the desk."""
        treq: Any = StubTreq(pages(self.deps, self.in_thread()))
        sent = treq.get("http://localhost:7001" + path, headers=browser.headers(DESK_COOKIE, "GET", path))
        treq.flush()

        async def read() -> str:
            response = await sent
            self.assertEqual(response.code, 200)
            return str((await treq.content(response)).decode())

        return str(self.now(read()))
