"""Writing an action in a real browser, by keyboard alone: a fault, a save, a dry run, trust, an agent's call."""

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import SHIP

NAME = "tell-team"
EDIT, TRY = f"/actions/{NAME}/edit", f"/actions/{NAME}/try"


class WritingTests(PagesTestCase):
    """An operator who has a page, a keyboard and no terminal."""

    async def fill(self, page: Page, selector: str, text: str) -> None:
        """Go to a field by Tab, and type this in place of what is there."""
        await self.reach(page, selector)
        await page.evaluate("document.activeElement.select()")
        await page.write(text)

    async def test_write_to_run(self) -> None:
        """An action is written, corrected, saved, tried, trusted and then run by an agent; nothing is sent before."""
        text = self.action_file(NAME, gated=True).read_text()
        page = await self.entered("/actions")
        await self.use(page, "#new-action")
        await page.until("document.querySelector('#action-text')?.value.includes('my-action')")
        await self.fill(page, "#action-text", text.replace("required = true", 'required = "yes"'))
        await self.use(page, "#check")
        await page.shows("Errors found: 1.")
        await self.look_at(page, "editor-fault")
        await self.use(page, "#fault-0")
        selected = "(({ value, selectionStart, selectionEnd }) => value.slice(selectionStart, selectionEnd))"
        self.assertEqual(await page.evaluate(f"{selected}(document.activeElement)"), 'required = "yes"')
        await page.write("required = true")
        await self.use(page, "#save")
        await page.shows("Saved. Not active until you trust it.")
        await page.until(f"location.pathname === '{EDIT}'")
        self.assertEqual((self.state.actions / f"{NAME}.md").read_text(), text)
        await self.pause(3)  # the page is drawn anew, of what is on disk now
        await page.shows("Saved. Not active until you trust it.")
        self.assertEqual((await self.run_action(self.agent, NAME)).status, 404)
        await self.look_at(page, "editor-saved")
        await self.use(page, "#to-try")
        await self.fill(page, "#edit-0", SHIP["channel"])
        await self.fill(page, "#edit-1", "Dark <b>mode</b>")
        await self.use(page, "#try")
        await page.shows("This was a dry run: nothing was sent or stored.")
        self.assertEqual(await page.evaluate("document.activeElement.tagName"), "H2")
        shown = await page.text("#result")
        for words in (
            f"You want to run {NAME} on",
            SHIP["channel"],
            "Dark <b>mode</b>",
            "First time this action runs.",
        ):
            self.assertIn(words, shown)
        self.assertIn(f"POST {self.service.url}/api/chat.postMessage", shown)
        self.assertNotIn(self.workspace.token, await page.evaluate("document.documentElement.outerHTML"))
        await self.look_at(page, "try")
        self.assertEqual((self.workspace.requests, (await self.status())["counts"]["pending_approvals"]), ([], 0))
        await self.use(page, f"a[href='/trust?action={NAME}']")
        await self.use(page, "button.trust")
        await page.shows("No new or changed files")
        reply = await self.run_action(self.agent, NAME)
        self.assertEqual(reply.status, 202, reply.text)
        await self.approve(str(reply.body["run_id"]))
        await self.posted()
        self.assertEqual([each.text for each in self.workspace.messages], [SHIP["summary"]])
        self.assertEqual(page.problems, [])

    async def test_race(self) -> None:
        """What was saved elsewhere meanwhile is not overwritten, and what was typed stays."""
        file = self.state.actions / "ship-update.md"
        page = await self.entered("/actions/ship-update")
        await page.click("a[href='/actions/ship-update/edit']")
        await page.until("document.querySelector('#action-text')?.value.includes('ship-update')")
        mine = file.read_text() + "\nMine.\n"
        await self.fill(page, "#action-text", mine)
        theirs = file.read_text() + "\nTheirs.\n"
        file.write_text(theirs)
        await self.pause(3)
        self.assertEqual(await page.evaluate("document.querySelector('#action-text').value"), mine)
        await page.click("#save")
        await page.shows("The file was changed since you opened it. Nothing was saved.")
        self.assertEqual(file.read_text(), theirs)
        self.assertEqual(await page.evaluate("document.querySelector('#action-text').value"), mine)
        await page.click("a[href='/actions']")
        await page.shows("New action")
        await page.go_back()
        await page.until("document.querySelector('#action-text')?.value.includes('Mine.')")
        self.assertEqual([each for each in page.problems if "409" not in each], [])

    async def test_restarted(self) -> None:
        """What was typed and not saved is shown once more where the daemon was restarted, and the pages have moved."""
        page = await self.entered("/actions/ship-update")
        await page.click("a[href='/actions/ship-update/edit']")
        await page.until("document.querySelector('#action-text')?.value.includes('ship-update')")
        await self.fill(page, "#action-text", "Mine.\n")
        await self.command("daemon", "stop")
        await self.unlock()
        await page.shows("Your pages have another address now")
        for _ in range(2):
            await page.shows("Copy it before you close this tab.")
            left = "[...document.querySelectorAll('#unsaved textarea')].map(({ value }) => value)"
            self.assertEqual(await page.evaluate(left), ["Mine.\n"])
            await page.click("a[href='/runs']")
            await self.pause(1)

    async def test_wrong_arguments(self) -> None:
        """Every fault of sample arguments is told, and what cannot be read in a field is told beside it."""
        page = await self.entered("/actions/ship-update")
        await page.click("a[href='/actions/ship-update/try']")
        await self.fill(page, "#edit-0", "x" * 70_000)
        await self.fill(page, "#edit-1", "y" * 70_000)
        await self.use(page, "#try")
        await page.shows("The arguments have errors")
        self.assertEqual(await page.evaluate("document.querySelectorAll('#result li').length"), 2)
        self.assertEqual(page.problems, [])
