"""A person with an account adds a passkey, and signs in with it, in a real browser over real TLS."""

from __future__ import annotations

import re
from typing import Any

from twisted.internet.defer import Deferred

from tests.extent import seldom
from tests.functional.browsed import STYLES
from tests.functional.chromium import Page
from tests.functional.phoned import PhonedTestCase

PASSPHRASE = "marmot velvet canyon thirty"


class PeoplePasskeyTests(PhonedTestCase):
    """A person elsewhere, whose device has an authenticator, and the operator's daemon."""

    def setUp(self) -> Any:
        """Start it."""
        super().setUp()
        return Deferred.fromCoroutine(self.begin())

    async def keep_styles(self, page: Page, name: str) -> None:
        """Keep pictures of the page, narrow and wide, light and dark. Each fits its window."""
        for style in ("390-light", "390-dark", "1280-light", "1280-dark"):
            width, dark = int(style.partition("-")[0]), style.endswith("dark")
            await page.look(width=width, height=800, dark=dark)
            await self.keep(page, f"{name}-{style}")
            await self._assert_fits(page, width, name, style)
        await page.look(**STYLES["390-light" if "390-light" in STYLES else "390-dark"])

    async def fill(self, page: Page, **fields: str) -> None:
        """Type into fields, by their IDs."""
        for name, text in fields.items():
            await page.click(f"#{name.replace('_', '-')}")
            await page.write(text)

    async def join(self, page: Page, name: str) -> None:
        """Add an account, and set its passphrase by the link."""
        shown = (await self.operator("people", "add", name, "--role", "approver")).stdout
        [link] = re.findall(rf"{re.escape(self.public)}/join#[\w-]+", shown)
        await page.open(link)
        await self.fill(page, passphrase=PASSPHRASE, again=PASSPHRASE)
        await page.click("form button")
        await page.shows("No pending approvals.")

    async def add_passkey(self, page: Page) -> None:
        """Add a passkey on the page of the account."""
        await page.click('a[href="/settings/account"]')
        await page.shows("No passkeys yet")
        await self.keep_styles(page, "account-empty")
        await self.fill(page, own_passkey_name="My laptop", own_passphrase="wrong " + PASSPHRASE)
        await page.click("#add-own-passkey .yes")
        await page.shows("The passphrase is wrong. Nothing was added.")
        await self.keep_styles(page, "account-refused")
        await page.evaluate("document.querySelector('#own-passphrase').value = ''")
        await self.fill(page, own_passphrase=PASSPHRASE)
        await page.click("#add-own-passkey .yes")
        await page.until("document.querySelector('#main table')?.textContent.includes('My laptop')")
        await self.keep_styles(page, "account-passkey")

    async def sign_in_with_passkey(self, page: Page) -> None:
        """Sign in with the passkey, without a name."""
        await page.open(f"{self.public}/signin/account")
        await page.shows("Sign in with a passkey")
        await self.keep_styles(page, "account-sign-in")
        await page.click("#by-passkey:not(:disabled)")
        await page.until("document.querySelector('#main > [data-title]') !== null")

    async def log_out(self, page: Page) -> None:
        """End the login of the page."""
        status, text = await self.call(page, "/v1/operator/logout", method="POST", headers=_JSON, body="{}")
        self.assertEqual(status, 200, text)
        await page.open(f"{self.public}/approvals")
        await page.until("document.querySelector('#main > [data-title]') === null")

    @seldom
    async def test_whole(self) -> None:
        """Add a passkey, sign in with it, approve, and be out when the operator makes a new link."""
        page, authenticator = await self.tab()
        await self.join(page, "alice")
        await self.add_passkey(page)
        [person] = (await self.told("people", "list"))["items"]
        self.assertEqual((person["passkeys"], person["state"]), (1, "active"))
        await self.log_out(page)
        await self.sign_in_with_passkey(page)
        run_id = await self.ask("To approve")
        await page.open(f"{self.public}/approvals/{run_id}")
        await self.ready(page)
        await page.click("#approve:not(:disabled)")
        await self.stands(page, "completed")
        found = (await self.told("audit", "list", "--type", "approval.approved"))["items"]
        self.assertTrue(found[0]["actor"]["id"].startswith("alice."))
        verdict = await self.command("audit", "verify")
        self.assertEqual(verdict.exit_code, 0, verdict.stdout)
        await self.try_another(page, authenticator)
        await self.operator("people", "invite", "alice")
        await self.refused(page, "not accepted here")

    async def try_another(self, page: Page, authenticator: str) -> None:
        """The first passkey confirms a second one, on another device. At the operator's page it is told where to go."""
        await page.open(f"{self.public}/settings/account")
        await page.shows("Last used")
        await self.fill(page, own_passkey_name="Same device")
        await page.click("#confirm-own")
        await page.shows("No passkey was created.")
        await self.log_out(page)
        await page.open(f"{self.public}/signin")
        await page.tap("#go:not(:disabled)")
        await page.shows("which signs in at /signin/account")
        await self.verify(page, authenticator, False)
        await self.refused(page, "The passkey was not used.")
        await self.verify(page, authenticator, True)

    async def refused(self, page: Page, words: str) -> None:
        """Check that signing in with the passkey is refused with these words."""
        await page.open(f"{self.public}/signin/account")
        await page.click("#by-passkey:not(:disabled)")
        await page.shows(words)


_JSON = {"Content-Type": "application/json"}
