"""A user whose browser has a virtual authenticator."""

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import PASSPHRASE


class PasskeyTestCase(PagesTestCase):
    """A user whose browser has an authenticator that makes sure who uses it."""

    async def furnished(self, **changed: bool) -> tuple[Page, str]:
        """A tab with an authenticator, changed so, that answers by itself; and its id."""
        page = await self.browser.page()
        await page.call("WebAuthn.enable")
        options = {"hasResidentKey": True, "hasUserVerification": True, "isUserVerified": True, **changed}
        made = await page.call(
            "WebAuthn.addVirtualAuthenticator",
            options={"protocol": "ctap2", "transport": "internal", "automaticPresenceSimulation": True, **options},
        )
        return page, str(made["authenticatorId"])

    async def type_passkey_words(self, page: Page) -> None:
        """Type the words of a new passkey."""
        adding = self.on_terminal("passkey", "add")
        await adding.expect("The two words shown on the page: ")
        adding.send(await page.text("#passkey-words"))
        await adding.expect("Passphrase of the vault: ")
        adding.send(PASSPHRASE)
        self.assertEqual((await adding.finish(30)).exit_code, 0)

    async def added(self, page: Page) -> None:
        """Make a passkey, and have it count."""
        await self.log_in(page, "/settings/passkeys")
        await self.reach(page, "#passkey-name")
        await page.write("My laptop")
        await self.use(page, "#add-passkey button")
        await page.shows("type these two words")
        await self.type_passkey_words(page)

    async def uses(self, page: Page, authenticator: str) -> int:
        """How often the authenticator has signed."""
        found = await page.call("WebAuthn.getCredentials", authenticatorId=authenticator)
        return int(found["credentials"][0]["signCount"])
