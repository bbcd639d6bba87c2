"""What a press on an approval's page does, at every width: what the button says, at once, and of what was read."""

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page

WIDTHS = {390: 800, 700: 900, 960: 900, 1440: 900}
"""A phone, half a screen, the narrowest window with a column of pages, and a desktop: heights by widths."""
_BODY = "document.querySelector('.detail-body')"
"""What scrolls beside the list."""
_COVERED = """(() => {
  const badge = document.querySelector("#pending"), word = document.createRange();
  word.selectNodeContents(badge.previousSibling);
  const [one, other, link] = [badge, word, badge.parentElement].map((each) => each.getBoundingClientRect());
  const beside = one.left >= other.right || other.left >= one.right;
  const apart = beside || one.top >= other.bottom || other.top >= one.bottom;
  const within = one.top >= link.top && one.right <= link.right && other.bottom <= link.bottom;
  return apart && within ? [] : [one, other, link].map(({ left, top, right, bottom }) => [left, top, right, bottom]);
})()"""
"""Where the badge, the word and the link are, if the first two are not apart in the third."""


class DecidingTests(PagesTestCase):
    """One request in windows of four sizes."""

    async def opened(self, width: int = 1440, summary: str = "Dark mode") -> Page:
        """A page of that width that shows what an agent asks for."""
        run_id = await self.ask(summary=summary)
        page = await self.browser.page()
        await page.look(width=width, height=WIDTHS[width])
        await self.log_in(page, f"/approvals/{run_id}")
        await page.until("document.querySelector('#decision') !== null")
        return page

    async def test_first_press(self) -> None:
        """The first press of Approve and of Deny acts, with a mouse and with a finger; nothing moves under it."""
        for width in WIDTHS:
            for button, state in (("#approve", "completed"), ("#deny", "denied")):
                page = await self.opened(width, f"{button} at {width}")
                await self.keep(page, f"deciding-{width}", whole=False)
                await self.ready(page)
                await (page.tap if width < 500 else page.click)(button)
                await self.stands(page, state)
                self.assertEqual(page.problems, [])
        self.assertEqual([each.text for each in self.workspace.messages], [f"#approve at {each}" for each in WIDTHS])

    async def test_badge(self) -> None:
        """The number of what is pending stands beside or above the name of its page, over no letter of it."""
        page = await self.opened(390)
        await page.until("!document.querySelector('#pending').hidden")
        for number in ("1", "128"):
            for width in (320, *WIDTHS):
                await page.look(width=width, height=WIDTHS.get(width, 700))
                await page.evaluate(f"document.querySelector('#pending').textContent = '{number}'")
                await self.keep(page, f"badge-{number}-{width}", whole=False)
                self.assertEqual(await page.evaluate(_COVERED), [], (number, width))

    async def test_edited(self) -> None:
        """What was edited and not checked is not approved over: the one button checks it first, or it is discarded."""
        page = await self.opened(390)
        await self.ready(page)
        await page.tap("#edit summary")
        await page.tap("#edit-1")
        await page.press("End")
        await page.write(", at last")
        await page.shows("You edited the arguments.")
        self.assertFalse(await page.evaluate("document.querySelector('#approve').checkVisibility()"))
        await self.keep(page, "deciding-edited", whole=False)
        await page.tap("#discard")
        await page.until("document.querySelector('#approve').checkVisibility()")
        await page.tap("#edit-1")
        await page.press("End")
        await page.write(", at last")
        await page.tap("#change")
        await page.shows("Your edits")
        await self.ready(page)
        await page.tap("#approve")
        await self.stands(page, "completed")
        self.assertEqual([each.text for each in self.workspace.messages], ["Dark mode, at last"])
        self.assertEqual(page.problems, [])

    async def test_later(self) -> None:
        """A time that was chosen counts, in view or folded away, until it is cleared; the button names it."""
        page = await self.opened(700)
        await self.ready(page)
        await page.click("#later summary")
        await page.shows("Choose a start time")
        await page.click("#later .chip[data-days]")
        await page.shows("Approve for tomorrow")
        await page.click("#start-now")
        await page.until("document.querySelector('#approve > span').textContent === 'Approve'")
        await page.click("#later summary")
        await page.click("#later .chip[data-days]")
        await page.click("#later summary")
        await self.pause(1)
        await self.keep(page, "deciding-later", whole=False)
        self.assertIn("Approve for tomorrow", await page.text("#approve"))
        await page.click("#approve")
        await page.shows("Starts in")
        self.assertEqual(self.workspace.messages, [])
        self.assertEqual(page.problems, [])

    async def test_seen(self) -> None:
        """On a phone nothing is approved before every text, warning and request was on the screen."""
        page = await self.opened(390, "<!channel> g\u0435neral news\u200b\n" + "\n".join(map(str, range(15))))
        await self.pause(1)
        await page.shows("Before you approve, read to the end")
        self.assertTrue(await page.evaluate("document.querySelector('#approve').disabled"))
        self.assertFalse(await page.evaluate("document.querySelector('#deny').disabled"))
        note = "(document.querySelector('.card .note > :not(:empty)').getBoundingClientRect())"
        bar = "document.querySelector('.bar').getBoundingClientRect()"
        self.assertTrue(await page.evaluate(f"{note}.top > {bar}.top"), "the warning is in view from the beginning")
        await page.evaluate(f"{_BODY}.scrollTo(0, 1e6)")
        await self.pause(1)
        self.assertTrue(
            await page.evaluate("document.querySelector('#approve').disabled"), "the middle was jumped over"
        )
        for _ in range(20):
            await page.evaluate(f"{_BODY}.scrollBy(0, -200)")
            await self.pause(0.1)
        await self.pause(1)
        self.assertFalse(await page.evaluate("document.querySelector('#approve').disabled"))
        self.assertEqual(page.problems, [])

    async def test_target(self) -> None:
        """Nothing is approved before the line was on the screen, to its end, that says where a folded request goes."""
        page = await self.opened(390)
        place = "document.querySelector('#sent-1 summary').getBoundingClientRect()"
        bar = "document.querySelector('.bar').getBoundingClientRect().top"
        await page.shows("Before you approve, read to the end")
        while (left := await page.evaluate(f"{place}.top - {bar}")) > 10:
            await page.evaluate(f"{_BODY}.scrollBy(0, {min(left - 5, 150)})")
            await self.pause(0.2)
        await self.pause(1)
        self.assertTrue(await page.evaluate(f"{place}.bottom > {bar} + 10"), "the line is in view from the beginning")
        self.assertTrue(await page.evaluate("document.querySelector('#approve').disabled"))
        self.assertIn("Requests", await page.text("#unread"))
        await page.evaluate(f"{_BODY}.scrollBy(0, 150)")
        await self.ready(page)
        self.assertEqual(await page.evaluate("document.querySelector('#sent-1 summary').tabIndex"), 0)
        self.assertEqual(page.problems, [])

    async def test_behind_the_pages(self) -> None:
        """On a phone, what is scrolled away above the request counts as not seen."""
        page = await self.opened(390)
        place = "document.querySelector('#sent-1 summary').getBoundingClientRect()"
        above = f"{_BODY}.getBoundingClientRect().top"
        unread = "document.querySelector('#sent-1 summary > code').matches('.unread')"
        await page.shows("Before you approve, read to the end")
        await page.evaluate(f"void ({_BODY}.style.paddingBottom = '3000px')")
        await page.evaluate(f"{_BODY}.scrollBy(0, {place}.bottom - {above} + 5)")
        await self.pause(1)
        self.assertTrue(await page.evaluate(f"{place}.bottom > 0 && {place}.bottom < {above}"))
        self.assertTrue(await page.evaluate(unread))
        self.assertTrue(await page.evaluate("document.querySelector('#approve').disabled"))
        await page.evaluate(f"{_BODY}.scrollBy(0, -100)")
        await page.until(f"!{unread}")
        self.assertEqual(page.problems, [])

    async def test_others(self) -> None:
        """Other requests of the session leave an open approval as it is: selection, focus, and a button that acts."""
        page = await self.opened(1440)
        await self.ready(page)
        article, selected = "document.querySelector('article')", "getSelection().toString()"
        await page.evaluate(
            f"void ({article}.mine = true, getSelection().selectAllChildren({article}.querySelector('h1')))"
        )
        before = await page.evaluate(selected)
        await page.evaluate(
            "void (window.rested = 0, new MutationObserver((all) => all.forEach(({ target }) => {"
            " if (target.matches('#approve') && target.disabled) window.rested += 1; })).observe("
            "document.body, { attributes: true, attributeFilter: ['disabled'], subtree: true }))"
        )
        await self.ask(summary="Another thing")
        await page.shows("Deny all 2 and end session")
        self.assertTrue(await page.evaluate(f"{article}.mine === true"))
        self.assertEqual((await page.evaluate(selected), await page.evaluate("rested")), (before, 0))
        await page.click("#approve")
        await page.shows("Approved: ")
        await self.posted()
        self.assertEqual([each.text for each in self.workspace.messages], ["Dark mode"])
        self.assertEqual(page.problems, [])

    async def test_pause(self) -> None:
        """The notice of a pause covers no button, at any width, and moves none."""
        await self.ask()
        for width, height in WIDTHS.items():
            page = await self.browser.page()
            await page.look(width=width, height=height)
            await self.log_in(page)
            await page.until("document.querySelector('.tick input:not(:disabled)') !== null")
            await page.evaluate("document.querySelector('.tick input').click()")
            place = "document.querySelector('#approve-ticked').getBoundingClientRect().bottom"
            before = await page.evaluate(place)
            await self.press_pause(page)
            await page.shows("Paused since")
            await self.keep(page, f"deciding-paused-{width}", whole=False)
            covered = (
                "(({ left, top, width, height }) => document.elementFromPoint(left + width / 2, top + height / 2).id)"
            )
            found = await page.evaluate(f"{covered}(document.querySelector('#approve-ticked').getBoundingClientRect())")
            self.assertEqual(found, "approve-ticked")
            self.assertLessEqual(before, height)
            await self.press_pause(page)
            await page.until("!document.body.innerText.includes('Paused since')")

    async def press_pause(self, page: Page) -> None:
        """Press the button that pauses or resumes, in a narrow window in the menu."""
        if await page.evaluate("document.querySelector('#show-menu').checkVisibility()"):
            await page.click("#show-menu")
        await page.click("#pause")

    async def test_typed(self) -> None:
        """A reason that was typed is not lost when the login ends or the pages get another address."""
        page = await self.opened(1440)
        await self.ready(page)
        await page.click("#reason")
        await page.write("Not before Monday")
        await self.kill_daemon()
        await self.unlock()
        await page.shows("Your pages have another address now")
        await page.shows("You typed this and did not save it")
        left = "[...document.querySelectorAll('#unsaved textarea')].map(({ value }) => value)"
        self.assertEqual(await page.evaluate(left), ["Not before Monday"])
