"""Finding and taking along: the filter's suggestions, a search while one types, the palette, and what is copied."""

from __future__ import annotations

import json
import shlex

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.loopback import LoopbackSite
from tests.functional.operated import GATED, UNGATED
from tests.functional.test_notifications import Listener

_ROWS = "[...document.querySelectorAll('#inbox .asks .row:not([hidden]) .row-link')].length"
_WORDS = "[...document.querySelectorAll('#filter-words:not([hidden]) [role=option]')].map((each) => each.textContent)"
_FIELD = """(({ activeElement: at }) => [at.id, at.value, at.selectionStart])(document)"""
_RUNS = "[...document.querySelectorAll('.list tbody th a')].map((each) => each.textContent)"
_TITLE = "Post to #general: "
_CLIPBOARD = "navigator.clipboard.writeText = async (text) => { window.taken = text; };0"
_AWAY_SECONDS = 0.2
_BAR = """(({ top, bottom }) => [Math.round(top), Math.round(innerHeight - bottom)])(
  document.querySelector("body > header").getBoundingClientRect())"""
_CARDS = """[...document.querySelectorAll(".list tbody tr")].every((each) => {
  const { left, right } = each.getBoundingClientRect();
  return left > 0 && right < innerWidth && each.scrollWidth <= each.clientWidth;
})"""


class FindingTests(PagesTestCase):
    """A user who looks for something."""

    async def shown(self, path: str, width: int = 1440, height: int = 900) -> Page:
        """A tab of that size that shows a page."""
        page = await self.entered("/home")
        await page.look(width=width, height=height)
        await page.open(f"{self.url}{path}")
        await page.until("document.querySelector('main > [data-title]') !== null")
        return page

    async def test_filter_suggests(self) -> None:
        """The filter suggests its fields and their values: by keys alone, one agent's requests are left."""
        await self.ask("One")
        self.agent = await self.session("goose")
        await self.ask("Two")
        page = await self.shown("/approvals")
        await page.press("/")
        await page.until(f'JSON.stringify({_WORDS}) === \'["agent:","action:","host:","session:"]\'')
        await page.write("ag")
        self.assertEqual(await page.evaluate(_WORDS), ["agent:"])
        for key in ("ArrowDown", "Enter"):
            await page.press(key)
        self.assertEqual(await page.evaluate(_WORDS), ["agent:goose", "agent:opencode"])
        await self.look_at(page, "filter-words")
        await page.look(width=1440, height=900)
        await page.write("g")
        for key in ("ArrowDown", "Enter"):
            await page.press(key)
        self.assertEqual(await page.evaluate(_FIELD), ["filter-inbox", "agent:goose ", 12])
        self.assertEqual((await page.evaluate(_ROWS), await page.evaluate(_WORDS)), (1, []))
        await page.press("Escape")
        self.assertEqual(await page.evaluate(_ROWS), 2)
        self.assertEqual(page.problems, [])

    async def test_search(self) -> None:
        """Activity is searched while one types: the results change, and the field keeps focus, text and caret."""
        for summary in ("Dark mode", "Light mode"):
            await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": summary})
        for path, found in (("/runs", _RUNS), ("/history", "document.querySelectorAll('.history li').length")):
            page = await self.shown(path)
            all_of_them = _dumped(await page.evaluate(found))
            await self.reach(page, "#filter-text")
            await page.write("Dark")
            await page.until(f"location.search === '?text=Dark' && JSON.stringify({found}) !== '{all_of_them}'")
            if path == "/runs":
                await page.until(f"JSON.stringify({_RUNS}) === '{_dumped([_TITLE + 'Dark mode'])}'")
            self.assertEqual(await page.evaluate(_FIELD), ["filter-text", "Dark", 4])
            await page.write("er")
            await page.shows("No matching")
            self.assertEqual(await page.evaluate(_FIELD), ["filter-text", "Darker", 6])
            self.assertEqual(page.problems, [])

    async def test_palette(self) -> None:
        """A button that says its keys opens the palette, which leads to a page."""
        page = await self.shown("/home")
        self.assertIn("Ctrl K", await page.text("#show-palette"))
        await self.use(page, "#show-palette")
        await page.until("document.activeElement.id === 'palette-field'")
        await page.write("connectors")
        await page.until("document.querySelector('#palette-list li')?.dataset.href === '/connectors'")
        await page.press("Enter")
        await page.until("location.pathname === '/connectors'")
        self.assertEqual(page.problems, [])

    async def test_copies(self) -> None:
        """A run's ID is copied by its button, and its request as a command, without the credential.

        Between them Tab leads out of the page, for as long as a slow machine takes.
        """
        run_id = await self.ask("It's done")
        page = await self.shown(f"/approvals/{run_id}")
        await page.evaluate(_CLIPBOARD)
        await self.use(page, f"button[data-copy='{run_id}']")
        await page.until(f"window.taken === '{run_id}'")
        await page.evaluate("document.querySelector('#steps details').open = true;0")
        while await page.evaluate("document.hasFocus()"):
            await page.press("Tab")
        await self.pause(_AWAY_SECONDS)
        await self.use(page, "#steps button[data-copy]")
        await page.until("window.taken.startsWith('curl')")
        words = shlex.split(await page.evaluate("window.taken"))
        self.assertIn("Authorization: (the credential, added by the daemon)", words)
        self.assertEqual(json.loads(words[words.index("--data-raw") + 1])["text"], "It's done")
        self.assertEqual(page.problems, [])

    async def test_phone(self) -> None:
        """On a phone the pages are at the lower edge, and a run is a card that fits; wide, they are at the side."""
        await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "word " * 40})
        await self.ask()
        page = await self.shown("/runs", 320, 568)
        top, below = await page.evaluate(_BAR)
        self.assertEqual((top > 500, below), (True, 0))
        self.assertTrue(await page.evaluate(_CARDS))
        await page.click("#show-menu")
        await page.until("document.querySelector('#menu').getBoundingClientRect().bottom <= innerHeight - 50")
        await page.click("#setup a[href='/grants']")
        await page.until("location.pathname === '/grants'")
        await page.look(width=1440, height=900)
        self.assertEqual(await page.evaluate(_BAR), [0, 0])
        self.assertEqual(page.problems, [])


class TestNotificationTests(PagesTestCase):
    """A daemon with a channel."""

    async def furnish(self, config: str = "") -> None:
        """Have a webhook listen."""
        self.listener = Listener()
        site = LoopbackSite.listen(self.reactor, self.listener)
        self.finally_(site.stop)
        await super().furnish(f'notifications:\n  webhooks:\n    office: {{url: "{site.url}/office"}}\n')

    async def test_press(self) -> None:
        """A press under Settings sends one message by each channel, and the table counts it."""
        page = await self.entered("/settings")
        await self.use(page, "#try-channels")
        await page.until("document.querySelector('[data-head=Sent]')?.textContent === '1'")
        ((_, body),) = self.listener.at("/office")
        self.assertIn("this is a test", json.loads(body)["title"])
        self.assertNotIn(GATED, body.decode())
        self.assertEqual(page.problems, [])


def _dumped(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
