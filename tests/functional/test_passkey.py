"""A passkey in a real browser, whose authenticator is virtual: made, let count and used, without a mouse."""

import json
from pathlib import Path

from tests.functional.chromium import Page
from tests.functional.operated import GATED, PASSPHRASE, kinds
from tests.functional.passkeyed import PasskeyTestCase
from tests.functional.process import Running
from tests.functional.reactor import until


class PasskeyTests(PasskeyTestCase):
    """A user whose browser has an authenticator that makes sure who uses it."""

    async def type_words(self, running: Running, page: Page) -> None:
        """Touch the passkey instead, where the page asks for that."""
        await page.shows("Sign in with your passkey")
        await self.keep(page, "sign-in-by-passkey")
        await running.expect("The two words shown at .*: ")
        await self.use(page, "#use-passkey")

    async def test_touch(self) -> None:
        """It lets the browser in by one touch without words, and one touch approves all that was selected."""
        page, authenticator = await self.furnished()
        await self.added(page)
        await self.operator("operator", "revoke", "--all")
        before = await self.uses(page, authenticator)
        await self.open_pages(page)
        self.assertEqual(await self.uses(page, authenticator), before + 1)
        await self.operator("passkey", "require", "--all")
        runs = [await self.ask(each) for each in ("One", "Two")]
        await page.open(f"{self.url}/approvals")
        for each in runs:
            await self.use(page, f"input[data-id='{each}']", "Space")
        await page.shows("Approve 2 selected")
        await self.use(page, "#approve-ticked")
        for each in runs:
            self.assertEqual((await self.outcome(each, wait=30))[0], "completed")
        self.assertEqual(await self.uses(page, authenticator), before + 2)
        verified = json.loads((await self.command("audit", "verify", "--json")).stdout)
        self.assertEqual((verified["sound"], verified["proved"]), (True, 2))

    async def test_without_room(self) -> None:
        """A security key without room for passkeys of its own is added, lets the browser in and approves."""
        page, _authenticator = await self.furnished(hasResidentKey=False)
        await self.added(page)
        await self.operator("operator", "revoke", "--all")
        await self.open_pages(page)
        await self.operator("passkey", "require", "--all")
        run_id = await self.ask()
        await page.open(f"{self.url}/approvals/{run_id}")
        await self.ready(page)
        await self.use(page, "#approve")
        await self.stands(page, "completed")

    async def test_whole(self) -> None:
        """It counts once its words were typed; then an approval needs it, in the terminal as well."""
        page, made = await self.furnished()
        await self.log_in(page, "/settings")
        await self.use(page, 'main a[href="/settings/passkeys"]')
        await page.shows("No passkeys yet")
        await self.reach(page, "#passkey-name")
        await page.write("My laptop")
        await self.use(page, "#add-passkey button")
        await page.shows("type these two words")
        await self.keep(page, "passkey-words")
        await self.type_passkey_words(page)
        await self.operator("passkey", "require", GATED)
        await page.shows(f"Approvals of these actions require a passkey: {GATED}.")
        await self.keep(page, "passkey-required")
        run_id = await self.ask()
        refused = await self.operator("approval", "approve", run_id, "--yes", code=1)
        self.assertIn("needs your passkey", refused.stderr)
        await page.open(f"{self.url}/approvals/{run_id}")
        await self.ready(page)
        await page.call("WebAuthn.setUserVerified", authenticatorId=made, isUserVerified=False)
        await self.use(page, "#approve")
        await page.shows("Your passkey was not used. Nothing was decided.")
        self.assertEqual((await self.outcome(run_id))[0], "pending_approval")
        await page.call("WebAuthn.setUserVerified", authenticatorId=made, isUserVerified=True)
        await self.use(page, "#approve")
        await self.stands(page, "completed")
        told = [kind for kind in kinds(await self.audit()) if "passkey" in kind]
        self.assertEqual(sorted(told), [f"operator.passkey_{each}" for each in ("added", "proposed", "required")])
        self.assertEqual([each for each in page.problems if "403" not in each and "file:" not in each], [])
        await self.operator("passkey", "reset")
        listed = await self.operator("passkey", "list", "--json")
        self.assertEqual(json.loads(listed.stdout)["items"], [])


class AddingTests(PasskeyTestCase):
    """A user who has no page open."""

    def watched_browser(self) -> tuple[Path, Path]:
        """A program that stands for the browser, and the file in which it puts what it is to open."""
        opened, program = self.home.temporary / "opened", self.home.root / "browser"
        program.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.part && mv {opened}.part {opened}\n')
        program.chmod(0o700)
        return opened, program

    async def test_cold(self) -> None:
        """One command starts the daemon, opens the page that makes the passkey, and takes its two words once."""
        await self.kill_daemon()
        page, _authenticator = await self.furnished()
        opened, program = self.watched_browser()
        running = self.on_terminal("passkey", "add", BROWSER=str(program))
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        await until(self.reactor, opened.exists, 60, "a file to open")
        await page.open(Path(opened.read_text()).as_uri())
        await page.shows("Add a passkey")
        await self.keep(page, "new-passkey")
        self.assertEqual(await page.evaluate("document.getElementById('words')"), None)
        await running.expect("The two words shown at .*: ")
        await self.use(page, "#new-passkey button")
        await page.shows("Type these two words in your terminal")
        running.send(await page.text("#words"))
        finished = await running.finish(60)
        self.assertEqual(finished.exit_code, 0, finished.stdout)
        self.assertIn("Passkey My passkey added.", finished.stdout)
        await page.until("location.pathname === '/settings/passkeys'")
        await page.shows("My passkey added")
        self.url = str(self.home.discovery()["operator_url"])
        told = [each for each in kinds(await self.audit()) if "passkey" in each or each == "operator.handover_opened"]
        self.assertEqual(
            sorted(set(told)), ["operator.handover_opened", "operator.passkey_added", "operator.passkey_proposed"]
        )
        self.assertEqual([each for each in page.problems if "file:" not in each], [])

    async def test_running(self) -> None:
        """With a running daemon it does the same; an opened vault makes no difference."""
        page, _authenticator = await self.furnished()
        opened, program = self.watched_browser()
        running = self.start(self.home.on_terminal("aileron", "passkey", "add", BROWSER=str(program)))
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        await until(self.reactor, opened.exists, 60, "a file to open")
        await page.open(Path(opened.read_text()).as_uri())
        await running.expect("The two words shown at .*: ")
        await self.use(page, "#new-passkey button")
        await page.shows("Type these two words in your terminal")
        running.send(await page.text("#words"))
        self.assertIn("Passkey My passkey added.", (await running.finish(60)).stdout)
