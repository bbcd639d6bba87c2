"""The samples of the design system, in every form that a system or a person can ask for."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred

from tests.functional import install
from tests.functional.case import FunctionalTestCase
from tests.functional.chromium import Chromium, Page
from tests.functional.listings.reading import VARIABLE

SAMPLES = Path(os.environ.get(VARIABLE) or Path(__file__).parents[2] / "doc") / "design"
FORMS: Mapping[str, Mapping[str, str]] = {
    "light": {"prefers-color-scheme": "light"},
    "dark": {"prefers-color-scheme": "dark"},
    "contrast": {"prefers-contrast": "more"},
    "contrast-dark": {"prefers-contrast": "more", "prefers-color-scheme": "dark"},
    "forced": {"forced-colors": "active"},
}
WIDTHS = (320, 640, 960, 1440)
"""A small phone, a window of 1280 pixels at 200 % zoom, the narrowest side bar, and a desk."""

_FAULTS = """axe.run(document, { resultTypes: ["violations"], selectors: false })
  .then(({ violations }) => violations.filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => [html, failureSummary])]))"""
# Links within a sentence are as high as their line; a checkbox is pressed by its label as well.
_SMALL = """[...document.querySelectorAll("button, .button, select, input, textarea, header a, .row-link, .row label")]
  .filter((each) => each.checkVisibility() && !each.matches("[type=checkbox]"))
  .map((each) => [each.outerHTML.slice(0, 80), each.getBoundingClientRect().height])
  .filter(([, height]) => height < 43.9)"""
_ROWS = """[...document.querySelectorAll(".row")].map((each) => each.getBoundingClientRect().height)"""
_SEEN_ROWS = """(() => {
  const { bottom } = document.querySelector(".rows-body").getBoundingClientRect();
  const [first] = document.querySelectorAll(".row");
  const { top, height } = first.getBoundingClientRect();
  return [(bottom - top) / height, bottom];
})()"""
_MOVING = """[...document.querySelectorAll("*")].map((each) => getComputedStyle(each))
  .filter((each) => each.transitionDuration !== "0s" || each.animationName !== "none").length"""
_COVERED = """(() => {
  const { top, height, left, width } = document.querySelector(".bar").getBoundingClientRect();
  const body = document.querySelector(".detail-body").getBoundingClientRect();
  return body.bottom > top + 1 || top + height > innerHeight + 1 || left + width > innerWidth + 1;
})()"""


class DesignTests(FunctionalTestCase):
    """``design-parts.html`` and ``design-inbox.html``."""

    def setUp(self) -> Any:
        """Lend a browser."""
        super().setUp()
        return Deferred.fromCoroutine(self._begin())

    async def _begin(self) -> None:
        browser = await Chromium.lend(self.reactor)
        self.finally_(browser.give_back)
        self.page = await browser.page()

    async def show(self, name: str) -> Page:
        """Open a sample."""
        await self.page.open((SAMPLES / f"design-{name}.html").as_uri())
        await self.page.until("document.readyState === 'complete' && document.styleSheets.length > 0")
        return self.page

    async def form(self, **features: str) -> None:
        """Ask for a form, such as more contrast."""
        given = [{"name": name, "value": value} for name, value in features.items()]
        await self.page.call("Emulation.setEmulatedMedia", features=given)
        query = " and ".join(f"({name}: {value})" for name, value in features.items())
        await self.page.until(f"matchMedia({json.dumps(query)}).matches")

    async def test_forms(self) -> None:
        """No form has a serious fault of accessibility, such as a contrast that is too low."""
        axe = install.axe(install.place() / "opencode").read_text(encoding="utf-8") + ";0"
        for name in ("parts", "inbox"):
            page = await self.show(name)
            await page.evaluate(axe)
            for form, features in FORMS.items():
                await page.look(width=1280, height=900)
                await self.form(**features)
                self.assertEqual(await page.evaluate(_FAULTS), [], f"{name} {form}")

    async def test_widths(self) -> None:
        """Nothing is wider than the window, from a small phone on, with a mouse and with a finger."""
        for name in ("parts", "inbox"):
            page = await self.show(name)
            for touched in (False, True):
                await page.call("Emulation.setTouchEmulationEnabled", enabled=touched)
                for width in WIDTHS:
                    await page.look(width=width, height=800)
                    found = await page.evaluate("document.documentElement.scrollWidth")
                    self.assertLessEqual(found, width, f"{name}, touched: {touched}")

    async def test_targets(self) -> None:
        """With a finger each target is at least 44 pixels high."""
        await self.page.call("Emulation.setTouchEmulationEnabled", enabled=True)
        for name in ("parts", "inbox"):
            page = await self.show(name)
            for width in (390, 1440):
                await page.look(width=width, height=800)
                self.assertEqual(await page.evaluate(_SMALL), [], f"{name} {width}")

    async def test_rows(self) -> None:
        """Rows are 48 to 64 pixels high, and 12 of them and more are in view on a desk."""
        page = await self.show("inbox")
        for touched in (False, True):
            await page.call("Emulation.setTouchEmulationEnabled", enabled=touched)
            for width, height in ((1440, 900), (390, 844)):
                await page.look(width=width, height=height)
                heights = await page.evaluate(_ROWS)
                self.assertTrue(all(48 <= each <= 64 for each in heights), heights)
        await page.call("Emulation.setTouchEmulationEnabled", enabled=False)
        await page.look(width=1440, height=900)
        rows, bottom = await page.evaluate(_SEEN_ROWS)
        self.assertGreater(rows, 12)
        self.assertLessEqual(bottom, 900)

    async def test_bar(self) -> None:
        """What decides is in view below what it decides, and covers nothing of it; narrow, list or request is shown."""
        page = await self.show("inbox")
        visible = "[...document.querySelectorAll('.rows, .detail')].map((each) => each.checkVisibility())"
        for width, height in ((1440, 900), (1000, 700)):
            await page.look(width=width, height=height)
            self.assertFalse(await page.evaluate(_COVERED), f"{width}")
            self.assertEqual(await page.evaluate(visible), [True, True])
        await page.look(width=390, height=844)
        self.assertEqual(await page.evaluate(visible), [True, False])
        await page.evaluate("document.querySelector('.split').classList.add('open')")
        self.assertEqual(await page.evaluate(visible), [False, True])
        self.assertFalse(await page.evaluate(_COVERED))
        await page.evaluate("document.querySelector('.detail-body').append(...Array(80).fill('A line. '))")
        self.assertFalse(await page.evaluate(_COVERED), "with more to read than fits")

    async def test_motion(self) -> None:
        """Whoever wants less motion gets none."""
        page = await self.show("parts")
        await self.form(**{"prefers-reduced-motion": "reduce"})
        moving = await page.evaluate(_MOVING)
        self.assertEqual(moving, 0)
