"""Trusting a file in a real browser."""

import json

from tests.functional.browsed import PagesTestCase
from tests.functional.operated import GATED, UNGATED, kinds


class TrustPageTests(PagesTestCase):
    """A file that some program wrote, and the operator who reads it."""

    async def test_trust(self) -> None:
        """A changed action comes up with what differs, is inert, and is trusted as it was read, and no other way."""
        page = await self.entered()
        await page.click('a[href="/trust"]')
        await page.shows("No new or changed files")
        file = self.state.actions / f"{GATED}.md"
        file.write_text(file.read_text().replace("Tells a channel something.", "Tells a channel <b>much</b>."))
        await page.shows("Changed since you trusted it.")
        await page.shows("+Tells a channel <b>much</b>.")
        self.assertEqual(await page.evaluate("document.querySelectorAll('main b').length"), 0)
        reply = await self.run_action(self.agent, GATED, {"channel": "#general", "summary": "x"})
        self.assertEqual(reply.status, 404)
        await self.keep(page, "trust")
        stale = json.dumps({"items": [{"kind": "action", "name": GATED, "digest": "sha256:" + "0" * 64}]})
        headers = {"Content-Type": "application/json"}
        self.assertEqual((await self.call(page, "/v1/trust", method="POST", body=stale, headers=headers))[0], 409)
        await page.click("button.trust")
        await page.shows("No new or changed files")
        await self.ask()
        self.assertIn("trust.given", kinds(await self.audit()))
        self.assertEqual([each for each in page.problems if "409" not in each], [])

    async def test_named(self) -> None:
        """A file that makes changes without asking is trusted once its name was typed, alone and among all."""
        page = await self.entered()
        await page.click('a[href="/trust"]')
        await page.shows("No new or changed files")
        gated, file = self.state.actions / f"{GATED}.md", self.state.actions / f"{UNGATED}.md"
        file.write_text(file.read_text().replace("Tells a channel something.", "Tells a channel much."))
        gated.write_text(gated.read_text().replace("Tells a channel something.", "Tells a channel much."))
        await page.shows("Makes changes without asking you.")
        await page.until(f"document.getElementById('trust-action-{GATED}')?.disabled === false", 10)
        blocked = f"['trust-action-{UNGATED}', 'trust-all'].map((id) => document.getElementById(id).disabled)"
        self.assertEqual(await page.evaluate(blocked), [True, True])
        await self.keep(page, "trust-named")
        await page.evaluate(
            "(() => { const field = document.querySelector('.typed-name'); field.value = '" + UNGATED + "';"
            " field.dispatchEvent(new Event('input', { bubbles: true })); })()"
        )
        self.assertEqual(await page.evaluate(blocked), [False, False])
        await page.click("#trust-all")
        await page.shows("No new or changed files")
        self.assertEqual(page.problems, [])

    async def test_not_exchanged_under_the_reader(self) -> None:
        """What is written while a text is read does not take its place: nothing can be trusted before it was shown."""
        page = await self.entered()
        await page.click('a[href="/trust"]')
        await page.shows("No new or changed files")
        file = self.state.actions / f"{GATED}.md"
        good = file.read_text().replace("Tells a channel something.", "Tells a channel much.")
        file.write_text(good)
        await page.until("document.querySelector('button.trust')?.disabled === false", 10)
        file.write_text(good.replace("Tells a channel much.", "Tells everybody everything."))
        await page.shows("This request changed while you were looking at it.")
        self.assertNotIn("Tells everybody", await page.evaluate("document.body.textContent"))
        enabled = "[...document.querySelectorAll('button.trust, button.distrust')].some((each) => !each.disabled)"
        self.assertFalse(await page.evaluate(enabled))
        await page.click("#look")
        await page.shows("+Tells everybody everything.")
        await page.until("document.querySelector('button.trust')?.disabled === false", 10)
        await page.click("button.trust")
        await page.shows("No new or changed files")
        await page.click(f"#distrust-action-{GATED}")
        await page.shows("New. Not active until you trust it.")
        self.assertEqual(page.problems, [])
