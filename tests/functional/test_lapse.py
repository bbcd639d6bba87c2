"""A login that nobody uses: the right to decide lapses in an open tab, and watching goes on."""

from __future__ import annotations

import json

from tests.functional.browsed import PagesTestCase
from tests.functional.commands import fork_daemons
from tests.functional.operated import kinds
from tests.functional.passkeyed import PasskeyTestCase

_SHORT = "import aileron.vault._logins as logins\nlogins.IDLE_SECONDS = 6.0\n"
_TITLE = "document.title"


class LapseTests(PagesTestCase):
    """A daemon in whose life a login lapses after six seconds in place of thirty minutes."""

    def confine(self) -> None:
        """Have each daemon begin with the short time."""
        fork_daemons(_SHORT)

    async def test_lapsed(self) -> None:
        """The tab says that it only watches, shows what comes, and has no button that decides until the next login."""
        run_id = await self.ask()
        page = await self.entered(f"/approvals/{run_id}")
        await self.ready(page)
        await page.shows("You are only watching. To decide, run aileron open")
        self.assertTrue((await page.evaluate(_TITLE)).startswith("Watching · (1) "), await page.evaluate(_TITLE))
        buttons = "[...document.querySelectorAll('#approve, #deny')].every((each) => each.disabled)"
        self.assertTrue(await page.evaluate(buttons))
        other = await self.ask("Two")
        await page.until(f"document.querySelector('[data-row=\"{other}\"]') !== null")
        await page.until(f"{_TITLE}.startsWith('Watching · (2) ')")
        self.assertEqual((await self.outcome(run_id))[0], "pending_approval")
        self.assertIn("operator.login_lapsed", kinds(await self.audit()))
        await self.log_in(page, f"/approvals/{run_id}")
        await page.until("document.querySelector('#deny:not(:disabled)') !== null")
        await page.click("#deny")
        self.assertEqual((await self.outcome(run_id, wait=30))[0], "denied")
        self.assertEqual(page.problems, [])


class RaiseTests(PasskeyTestCase):
    """The same daemon, and a user with a passkey."""

    def confine(self) -> None:
        """Have each daemon begin with the short time."""
        fork_daemons(_SHORT)

    async def test_raised(self) -> None:
        """One touch lets the page decide again where it is: no words, no new address, and the draft stays."""
        page, authenticator = await self.furnished()
        await self.added(page)
        run_id = await self.ask()
        await page.open(f"{self.url}/approvals/{run_id}")
        await self.ready(page)
        await page.evaluate("document.getElementById('reason').value = 'Too late'")
        before = await self.uses(page, authenticator)
        await page.shows("You are only watching. To decide:")
        await self.keep(page, "raise-by-passkey")
        await page.call("WebAuthn.setUserVerified", authenticatorId=authenticator, isUserVerified=False)
        await self.use(page, ".bar .raise")
        await page.shows("Your passkey was not used, so you can only watch.")
        await page.call("WebAuthn.setUserVerified", authenticatorId=authenticator, isUserVerified=True)
        await self.use(page, ".bar .raise")
        await page.until("document.querySelector('#deny:not(:disabled)') !== null")
        self.assertEqual(await self.uses(page, authenticator), before + 1)
        self.assertEqual(await page.evaluate("location.href"), f"{self.url}/approvals/{run_id}")
        self.assertEqual(await page.evaluate("document.getElementById('reason').value"), "Too late")
        self.assertNotIn("You can watch", await page.evaluate("document.getElementById('notices').innerText"))
        await page.click("#deny")
        self.assertEqual((await self.outcome(run_id, wait=30))[0], "denied")
        (raised,) = [each for each in await self.audit() if each["type"] == "operator.login_raised"]
        self.assertIn("passkey", raised["payload"])
        self.assertEqual(json.loads((await self.command("audit", "verify", "--json")).stdout)["sound"], True)
        self.assertEqual([each for each in page.problems if "file:" not in each], [])
