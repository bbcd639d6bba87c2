"""Presses that were meant for the window in front of the operator's page, and reach that when the window closes."""

from __future__ import annotations

from collections.abc import Sequence

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page

_MIDDLE = """(() => { const { x, y, width, height } = document.querySelector("#approve").getBoundingClientRect();
  return [x + width / 2, y + height / 2]; })()"""
# What a window hears when that before it closes.  A browser without windows hears nothing by itself.  The page's clock
# stands from then on, so that no slow machine makes a press of now one of later.
_FRONT = """(() => {
  let now = performance.now();
  performance.now = () => now;
  window.passTime = (milliseconds) => { now += milliseconds; };
  dispatchEvent(new Event("blur"));
  passTime(%d);
  dispatchEvent(new Event("focus"));
})()"""
_LATER = "passTime(600)"
_BEHIND_MS = 200
_PRESS = ("mousePressed", "mouseReleased")
# What may happen to the button while the mouse is down, with the pointer still over it at the end.
_MOVED = "document.querySelector('#approve').style.translate = '0 -8px'"
_RENAMED = "document.querySelector('#approve').firstElementChild.textContent = 'Approve everything'"
_OTHER_QUESTION = "document.querySelector('#main > [data-title]').dataset.digest = 'sha256:other'"
_SETTLED_SECONDS = 0.6


class ClickTests(PagesTestCase):
    """A request that is read and can be approved, in a window that comes to the front."""

    async def readable(self) -> tuple[str, Page]:
        """The request, and its page."""
        run_id = await self.ask()
        page = await self.entered()
        await self.open_approval(page, run_id)
        await self.ready(page)
        await self.pause(_SETTLED_SECONDS)
        return run_id, page

    async def point(self, page: Page, kinds: Sequence[str], count: int = 1) -> None:
        """Have the mouse do this at the middle of the button."""
        x, y = await page.evaluate(_MIDDLE)
        for kind in kinds:
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": count}
            await page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    async def test_double_click(self) -> None:
        """The second click of a double click approves nothing, and says so; the next one is meant, and approves."""
        run_id, page = await self.readable()
        await page.evaluate(_FRONT % _BEHIND_MS)
        await self.point(page, _PRESS, count=2)
        await page.shows("This window had just come to the front")
        self.assertEqual((await self.outcome(run_id))[0], "pending_approval")
        await page.evaluate(_LATER)
        await self.point(page, _PRESS)
        self.assertEqual((await self.outcome(run_id, wait=30))[0], "completed")

    async def test_key(self) -> None:
        """A key that was pressed in the window before it approves nothing either."""
        run_id, page = await self.readable()
        await page.evaluate("document.querySelector('#approve').focus()")
        await page.evaluate(_FRONT % _BEHIND_MS)
        await page.press("Enter")
        await page.shows("This window had just come to the front")
        self.assertEqual((await self.outcome(run_id))[0], "pending_approval")

    async def test_pointer_was_there(self) -> None:
        """Whose pointer was over the page before, as with windows side by side, approves with the first click."""
        run_id, page = await self.readable()
        await self.point(page, ("mouseMoved",))
        await self.pause(_SETTLED_SECONDS)
        await page.evaluate(_FRONT % _BEHIND_MS)
        await self.point(page, _PRESS)
        self.assertEqual((await self.outcome(run_id, wait=30))[0], "completed")

    async def test_never_behind(self) -> None:
        """A window from which the focus was for a moment, with no other one before it, takes the first press."""
        run_id, page = await self.readable()
        await page.evaluate(_FRONT % 0)
        await self.point(page, _PRESS)
        self.assertEqual((await self.outcome(run_id, wait=30))[0], "completed")

    async def test_changed_while_pressed(self) -> None:
        """A press approves nothing if the button moves, or says or asks something else, before the mouse is up."""
        run_id, page = await self.readable()
        for change in (_MOVED, _RENAMED, _OTHER_QUESTION):
            await page.evaluate("document.querySelector('#trouble').textContent = ''")
            x, y = await page.evaluate(_MIDDLE)
            held = {"x": x, "y": y, "button": "left", "clickCount": 1}
            await page.call("Input.dispatchMouseEvent", type="mousePressed", **held)
            await page.evaluate(change)
            await page.call("Input.dispatchMouseEvent", type="mouseReleased", **held)
            await page.shows("The button moved or changed during the press")
            self.assertEqual((await self.outcome(run_id))[0], "pending_approval")
