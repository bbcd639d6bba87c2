"""Signing in with a provider by OpenID Connect, in a real browser over real TLS, and a provider that misbehaves."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from twisted.internet.defer import Deferred

from tests.extent import seldom
from tests.features.oidc.issuer import SECRET
from tests.functional import canary
from tests.functional.chromium import Page
from tests.functional.oidc_provider import OidcProvider, flood, hang, redirect, show_portal
from tests.functional.operated import kinds
from tests.functional.phoned import NAME, PhonedTestCase, config, fetch

BUTTON, LOG_IN = "#provider:not(:disabled)", "#yes"


class OidcTests(PhonedTestCase):
    """A person with an account at a provider, and a daemon that trusts it."""

    def setUp(self) -> Any:
        """Start the provider and the daemon."""
        super().setUp()
        self.provider = OidcProvider.listen(self.reactor)
        self.finally_(self.provider.stop)
        return Deferred.fromCoroutine(self.begin())

    def text(self) -> str:
        """The configuration."""
        return config(self.tls) + self.provider.config()

    async def begin(self) -> None:
        """Start the daemon, and store the client secret."""
        await super().begin()
        await self.feed(SECRET, "oidc", "secret")
        self.page = await self.phone.page()

    async def log_in(self, page: Page, path: str = "/signin") -> None:
        """Sign in with the provider, from the page that asks how."""
        await page.open(f"{self.public}{path}")
        await page.click(BUTTON)
        await page.shows("Are you Alice?")
        await page.click(LOG_IN)

    async def refused(self, words: str) -> None:
        """Check that the person is refused with these words, and that a new start is offered."""
        await self.log_in(self.page)
        await self.page.shows(words)
        self.assertEqual(await self.page.evaluate("location.href"), f"{self.public}/signin/oidc/return")
        self.assertTrue(await self.page.evaluate("document.querySelector('#again a').checkVisibility()"))

    async def test_whole(self) -> None:
        """Sign in, approve one request, and be out when the operator removes the account. The record proves who."""
        run_id = await self.ask("To approve")
        await self.log_in(self.page)
        await self.page.shows("To approve")
        self.assertTrue(str(await self.page.evaluate("location.href")).startswith(f"{self.public}/approvals"))
        await self.page.open(f"{self.public}/approvals/{run_id}")
        await self.ready(self.page)
        await self.page.click("#approve:not(:disabled)")
        await self.stands(self.page, "completed")
        found = (await self.told("audit", "list", "--type", "approval.approved"))["items"]
        self.assertRegex(found[0]["actor"]["id"], r"^alice-[0-9a-f]{8}\.")
        verdict = await self.command("audit", "verify")
        self.assertEqual(verdict.exit_code, 0, verdict.stdout)
        [person] = (await self.told("people", "list"))["items"]
        self.assertEqual((person["role"], person["state"]), ("approver", "active"))
        await self.page.open(f"{self.public}/approvals")
        await self.page.until("document.querySelector('#main > [data-title]') !== null")
        await self.operator("people", "remove", person["name"])
        await self.page.until("document.querySelector('#main > [data-title]') === null")
        await self.refused("removed your account")
        self.assertEqual((await self.told("oidc", "show"))["removed"], [person["name"]])
        await self.operator("oidc", "allow", person["name"])
        await self.log_in(self.page)
        await self.page.shows("No pending approvals.")
        await self.look_for_secrets(self.page)
        self.assertIn("oidc.allowed", kinds(await self.audit()))

    async def look_for_secrets(self, page: Page) -> None:
        """Check that nothing of the sign-in is left in the browser's tab, or anywhere in the daemon's home."""
        self.assertEqual(await page.evaluate("sessionStorage.length"), 0)
        self.assertEqual(await page.evaluate("document.referrer.includes('code=')"), False)
        forms = self.provider.issuer.forms
        spent = [form[name] for form in forms for name in ("code", "code_verifier") if name in form]
        for secret in (*self.provider.issuer.given, *spent, SECRET):
            self.assertEqual(canary.in_files(self.home.root / "state", secret), [], secret[:12])

    @seldom
    async def test_refused(self) -> None:
        """What the provider sends back wrongly lets nobody in, and the page says why."""
        issuer = self.provider.issuer
        for changed, words in (
            ({"state": "x" * 43}, "Start again"),
            ({"iss": "https://evil.example"}, "another authorization server"),
            ({"code": "made-up"}, "refused (invalid_grant)"),
            ({"code": None, "error": "access_denied"}, "access_denied"),
            ({"next": "https://evil.example", "code": "made-up"}, "invalid_grant"),
        ):
            self.provider.send_back(**changed)
            await self.refused(words)
        self.provider.send_back()
        now = int(time.time())
        for claims, words in (
            ({"aud": "other"}, "another application"),
            ({"nonce": "other"}, "another sign-in"),
            ({"iss": "https://evil.example"}, "another issuer"),
            ({"iat": now - 7200, "exp": now - 3600}, "expired"),
            ({"groups": ["guests"]}, "gives you no role"),
        ):
            issuer.claims = claims
            await self.refused(words)
        issuer.claims = {}
        issuer.sign = lambda claims: jwt.encode(claims, None, "none")  # type: ignore[arg-type]
        await self.refused("not signed with RS256")
        issuer.sign = None
        issuer.header = {"kid": "unknown"}
        await self.refused("does not publish")
        issuer.header = {}
        issuer.kid, issuer.published = "two", ["two"]
        await self.until_keys()
        await self.log_in(self.page)
        await self.page.shows("No pending approvals.")
        issuer.person["groups"] = ["boss"]
        await self.log_in(self.page)
        await self.page.shows("No pending approvals.")
        [person] = (await self.told("people", "list"))["items"]
        self.assertEqual(person["role"], "administrator")

    async def until_keys(self) -> None:
        """Wait until the daemon asks for keys again."""
        from twisted.internet.task import deferLater

        await deferLater(self.reactor, 11)

    @seldom
    async def test_replayed(self) -> None:
        """The address that the provider has sent a browser to lets no other browser in, and nobody a second time."""
        await self.page.open(f"{self.public}/signin")
        await self.page.click(BUTTON)
        await self.page.shows("Are you Alice?")
        back = str(await self.page.evaluate("document.querySelector('#yes').href"))
        self.assertEqual(parse_qs(urlsplit(back).query).keys(), {"code", "state"})
        other = self.start_other()
        thief = await other.page()
        await thief.open(back)
        await thief.shows("Start again")
        self.assertEqual(self.provider.issuer.forms, [])
        await self.page.click(LOG_IN)
        await self.page.shows("No pending approvals.")
        await self.page.open(back)
        await self.page.shows("Start again")
        self.assertEqual(len(self.provider.issuer.forms), 1)

    def start_other(self) -> Any:
        """Another person's browser."""
        from tests.functional.chromium import Chromium
        from tests.functional.phoned import spki
        from tests.functional.ports import LOOPBACK

        profile = self.home.root / "other"
        profile.mkdir()
        hashes = spki(self.presented())
        flags = [
            f"--host-resolver-rules=MAP *.example.org {LOOPBACK}",
            f"--ignore-certificate-errors-spki-list={hashes}",
        ]
        started = Chromium.start(self.reactor, profile, self.home.environment(), flags=flags)
        self.finally_(started.stop)
        return started

    @seldom
    async def test_hostile(self) -> None:
        """A provider that answers hugely, elsewhere, with a page, or not at all lets nobody in; the daemon goes on."""
        issuer = self.provider.issuer
        await self.log_in(self.page)
        await self.page.shows("No pending approvals.")
        for answer in (flood, redirect, show_portal):
            self.provider.answer_with(answer)
            await self.refused("could not be reached")
        self.provider.answer_with(hang)
        await self.refused("could not be reached")
        self.provider.answer_with(lambda _: None)
        await self.page.open(f"{self.public}/approvals")
        await self.page.shows("No pending approvals.")
        await self.provider.stop()
        self.assertTrue(issuer.asked)
        status, _text = fetch(f"https://{NAME}:{self.public_port()}", "/signin", verify=False)
        self.assertEqual(status, 200)
