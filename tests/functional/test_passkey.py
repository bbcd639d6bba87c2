"""A passkey in a real browser, whose authenticator is virtual: made, let count and used, without a mouse."""

import json

from tests.functional.browsed import PagesTestCase
from tests.functional.operated import GATED, PASSPHRASE, kinds


class PasskeyTests(PagesTestCase):
    """A user whose browser has an authenticator that makes sure who uses it."""

    async def test_whole(self) -> None:
        """It counts once its words were typed; then an approval needs it, in the terminal as well."""
        page = await self.browser.page()
        await page.call("WebAuthn.enable")
        options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
        made = await page.call(
            "WebAuthn.addVirtualAuthenticator",
            options={**options, "isUserVerified": True, "automaticPresenceSimulation": True},
        )
        await self.log_in(page, "/settings")
        await self.use(page, 'main a[href="/settings/passkeys"]')
        await page.shows("No passkeys yet")
        await self.reach(page, "#passkey-name")
        await page.write("My laptop")
        await self.use(page, "#add-passkey button")
        await page.shows("type these two words")
        await self.keep(page, "passkey-words")
        adding = self.on_terminal("operator", "passkey", "add")
        await adding.expect("The two words shown on the page: ")
        adding.send(await page.text("#passkey-words"))
        await adding.expect("Passphrase of the vault: ")
        adding.send(PASSPHRASE)
        self.assertEqual((await adding.finish(30)).exit_code, 0)
        await self.operator("operator", "passkey", "require", GATED)
        await page.shows(f"Approvals of these actions require a passkey: {GATED}.")
        await self.keep(page, "passkey-required")
        run_id = await self.ask()
        refused = await self.operator("approval", "approve", run_id, "--yes", code=1)
        self.assertIn("needs your passkey", refused.stderr)
        await page.open(f"{self.url}/approvals/{run_id}")
        await self.ready(page)
        await page.call("WebAuthn.setUserVerified", authenticatorId=made["authenticatorId"], isUserVerified=False)
        await self.use(page, "#approve")
        await page.shows("Your passkey was not used. Nothing was decided.")
        self.assertEqual((await self.outcome(run_id))[0], "pending_approval")
        await page.call("WebAuthn.setUserVerified", authenticatorId=made["authenticatorId"], isUserVerified=True)
        await self.use(page, "#approve")
        await self.stands(page, "completed")
        told = [kind for kind in kinds(await self.audit()) if "passkey" in kind]
        self.assertEqual(sorted(told), [f"operator.passkey_{each}" for each in ("added", "proposed", "required")])
        self.assertEqual([each for each in page.problems if "403" not in each and "file:" not in each], [])
        await self.operator("operator", "passkey", "reset")
        listed = await self.operator("operator", "passkey", "list", "--json")
        self.assertEqual(json.loads(listed.stdout)["items"], [])
