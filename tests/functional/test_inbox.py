"""The inbox of a wide window: a request stands beside the list from the start, and nothing takes its place."""

from __future__ import annotations

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.mixed import Person
from tests.functional.operated import AgentSession
from tests.functional.test_kept_open import SAYING

_SHOWN = "document.querySelector('article.split')?.dataset.id"
_LOOKALIKE = "#g\u0435neral"
_CONFIRM = "Confirm: approve in spite of the red warning"
_TICKED = "[...document.querySelectorAll('#inbox .tick input:checked')].map((each) => each.dataset.id)"
_ROWS = """(() => {
  const { top, bottom } = document.querySelector("#inbox").getBoundingClientRect();
  const places = [...document.querySelectorAll("#inbox .row")].map((each) => each.getBoundingClientRect());
  const seen = places.filter((each) => each.top >= top && each.bottom <= Math.min(bottom, innerHeight) + .5);
  return [places.map(({ height }) => height), seen.length];
})()"""


def _can(button: str) -> str:
    return f"document.querySelector('{button}:not(:disabled)') !== null"


class InboxTests(PagesTestCase):
    """A browser before the inbox."""

    async def inbox(self, width: int = 1440, height: int = 900) -> Page:
        """A tab of that size that shows the inbox."""
        page = await self.entered("/home")
        await page.look(width=width, height=height)
        await page.open(f"{self.url}/approvals")
        await page.until("document.querySelector('#main .split') !== null")
        return page

    async def ask_many(self, count: int) -> None:
        """Have requests of several agents wait, none of whom floods."""
        for at in range(count):
            if at % 4 == 0:
                self.agent = await self.session(f"agent-{at}")
            await self.ask(f"Release {at}")

    async def test_beside(self) -> None:
        """The first request is beside the list at once, under its own address, and can be decided once it was read."""
        first, _ = await self.ask("One"), await self.ask("Two")
        page = await self.inbox()
        self.assertEqual(await page.evaluate(_SHOWN), first)
        self.assertEqual(await page.evaluate("location.pathname"), f"/approvals/{first}")
        self.assertFalse(await page.evaluate(_can("#approve")), "as soon as it is shown")
        await self.ready(page)
        self.assertEqual(
            await page.evaluate("document.querySelector('[data-part=place]').innerText.slice(0, 6)"), "1 of 2"
        )
        await page.go_back()
        await page.until("location.pathname === '/home'")

    async def test_undo(self) -> None:
        """Undo is offered as long as it can be pressed: once the run starts, only what was decided is said."""
        await self.ask("One")
        await self.ask("Two")
        page = await self.inbox()
        await Person(page).decide("approve")
        await page.until("document.querySelector('#toast:not([hidden]) button') !== null")
        await page.until("document.querySelector('#toast button') === null")
        self.assertIn("Approved: ", await page.text("#toast"))
        self.assertFalse(await page.evaluate("document.querySelector('#toast').hidden"))

    async def test_not_replaced(self) -> None:
        """A graver request that comes later stands above it in the list; what is read keeps its place."""
        first = await self.ask("One")
        page = await self.inbox()
        await self.ready(page)
        await page.evaluate("document.querySelector('#reason').value = 'typed'")
        grave = await self.ask("Two", _LOOKALIKE)
        await page.until("document.querySelectorAll('#inbox .row').length === 2")
        self.assertEqual(await page.evaluate("document.querySelector('#inbox .row').dataset.row"), grave)
        self.assertEqual(await page.evaluate(_SHOWN), first)
        self.assertEqual(await page.evaluate("document.querySelector('#reason').value"), "typed")
        await page.click("#deny")
        self.assertEqual((await self.outcome(first, wait=30))[0], "denied")
        self.assertEqual((await self.outcome(grave))[0], "pending_approval")

    async def test_empty(self) -> None:
        """Without a request the list fills the window and says so; the first one that comes is beside it."""
        page = await self.inbox()
        await page.shows("No pending approvals.")
        self.assertFalse(await page.evaluate("document.querySelector('.detail') !== null"))
        run_id = await self.ask()
        await page.until(f"{_SHOWN} === '{run_id}'")

    async def test_narrow(self) -> None:
        """A narrow window shows the list alone; made wide, the first request is beside it."""
        first, _ = await self.ask("One"), await self.ask("Two")
        page = await self.inbox(390, 844)
        await page.until("document.querySelectorAll('#inbox .row').length === 2")
        self.assertIsNone(await page.evaluate(_SHOWN))
        await page.look(width=1440, height=900)
        await page.until(f"{_SHOWN} === '{first}'")

    async def test_watching(self) -> None:
        """A login that may only watch has no button that decides, and says why and what to do."""
        run_id = await self.ask()
        await self.ask("Two")
        page = await self.inbox()
        await self.ready(page)
        await page.click(f"[data-row='{run_id}'] input")
        await page.until(_can("#deny-ticked"))
        await page.evaluate(SAYING)
        await page.evaluate("""window.saying = {"X-Aileron-Level": "reading"}""")
        await page.evaluate("void dispatchEvent(new Event('online'))")
        await page.until(f"!({_can('#deny')}) && !({_can('#approve')})")
        self.assertFalse(await page.evaluate(_can("#deny-ticked")))
        self.assertFalse(await page.evaluate(_can("#approve-ticked")))
        for place in (".bar", "#batch"):
            told = await page.evaluate(f"document.querySelector('{place}').innerText")
            self.assertIn("You are only watching. To decide, run aileron open in your terminal, or", told)
        self.assertFalse(await page.evaluate("document.getElementById('enter-again').checkVisibility()"), "said twice")
        await page.click(".bar .enter-again")
        await page.until("document.querySelector('#code[open] #login-code') !== null")
        await page.click("#hide-code")
        await page.evaluate("window.saying = {}; void dispatchEvent(new Event('online'))")
        await page.until(f"{_can('#deny')} && {_can('#approve')} && {_can('#deny-ticked')}")
        self.assertNotIn("only watching", await page.evaluate("document.querySelector('.bar').innerText"))

    async def test_rows(self) -> None:
        """At 1440 by 900 at least 14 rows are in view, each 48 to 64 pixels high."""
        await self.ask_many(16)
        page = await self.inbox()
        heights, seen = await page.evaluate(_ROWS)
        self.assertTrue(all(48 <= each <= 64 for each in heights), heights)
        self.assertGreaterEqual(seen, 14)

    async def test_red(self) -> None:
        """A red request is approved by a second press, which the first one names; it is not asked for ever.

        What comes meanwhile does not take the question away.
        """
        run_id = await self.ask("One", _LOOKALIKE)
        page = await self.inbox()
        await self.ready(page)
        self.assertEqual(await page.text("#approve > span"), "Approve anyway…")
        await page.click("#approve")
        self.assertEqual(await page.text("#approve > span"), _CONFIRM)
        await self.ask("Two")
        await self.pause(3)
        self.assertEqual(await page.text("#approve > span"), _CONFIRM)
        self.assertEqual((await self.outcome(run_id))[0], "pending_approval")
        await page.until("document.querySelector('#approve > span').textContent === 'Approve anyway…'")
        await page.until("document.querySelectorAll('#inbox .row').length === 2")
        self.assertEqual((await self.outcome(run_id))[0], "pending_approval")
        await page.click("#approve")
        await page.until(f"document.querySelector('#approve > span').textContent === {_CONFIRM!r}")
        await page.click("#approve")
        await page.until(
            f"{_SHOWN} !== '{run_id}' || document.querySelector('article').dataset.state !== 'pending_approval'"
        )
        self.assertNotIn((await self.outcome(run_id, wait=30))[0], ("pending_approval", "denied"))

    async def test_ticks(self) -> None:
        """What is selected stays selected while rows come and go; what was decided elsewhere leaves the selection."""
        first, second = await self.ask("One"), await self.ask("Two")
        page = await self.inbox()
        for each in (first, second):
            await page.click(f"input[data-id='{each}']")
        await page.shows("Approve 2 selected")
        await page.evaluate("document.querySelector('#batch-reason').value = 'typed'")
        third = await self.ask("Three")
        await page.until(f"document.querySelector('[data-row=\"{third}\"]') !== null")
        await self.pause(1)
        self.assertEqual(await page.evaluate(_TICKED), [first, second])
        self.assertEqual(await page.text("#approve-ticked"), "Approve 2 selected")
        await self.operator("approval", "deny", second, "--reason", "no")
        await page.until(f"document.querySelector('[data-row=\"{second}\"]') === null")
        self.assertEqual(await page.evaluate(_TICKED), [first])
        await page.until("document.querySelector('#approve-ticked').textContent === 'Approve 1 selected'")
        self.assertEqual(await page.evaluate("document.querySelector('#batch-reason').value"), "typed")
        await page.until(_can("#approve-ticked"))
        await page.click("#approve-ticked")
        self.assertEqual((await self.outcome(first, wait=30))[0], "completed")
        self.assertEqual((await self.outcome(third))[0], "pending_approval")


_TOGETHER = ".identical input"


class IdenticalTests(PagesTestCase):
    """Agents that ask for the same."""

    async def ask_alike(self, *agents: str, channel: str = "#general") -> list[tuple[AgentSession, str]]:
        """Have each agent ask for the same, and return each session with its run."""
        found = []
        for agent in agents:
            self.agent = await self.session(agent)
            found.append((self.agent, await self.ask("Alike", channel)))
        return found

    async def states(self, asked: list[tuple[AgentSession, str]], wait: int = 0) -> list[str]:
        """How each run stands."""
        return [(await self.result(session, run_id, wait)).body["status"] for session, run_id in asked]

    async def inbox(self, width: int = 1440, height: int = 900) -> Page:
        """A tab of that size that shows the inbox."""
        page = await self.entered("/home")
        await page.look(width=width, height=height)
        await page.open(f"{self.url}/approvals")
        await page.until("document.querySelector('#main .split') !== null")
        return page

    async def test_selected(self) -> None:
        """One row stands for all; selected, it says who asks, and each is decided. One that comes later clears it."""
        asked = await self.ask_alike("one", "two")
        page = await self.inbox(390, 844)
        await page.until("document.querySelectorAll('#inbox .row').length === 1")
        await page.until("document.querySelector('#inbox input[data-tickable=yes]:not(:disabled)') !== null")
        await page.click("#inbox input[data-tickable=yes]")
        await page.shows("Approve 2 selected")
        told = await page.text("#batch-told")
        self.assertIn("2 identical requests: one (session", told)
        self.assertIn("two (session", told)
        asked += await self.ask_alike("three")
        await page.shows("3 identical requests")
        await page.until("document.querySelector('#batch').hidden")
        self.assertEqual(await page.evaluate(_TICKED), [])
        self.assertEqual(await self.states(asked), ["pending_approval"] * 3)
        await page.until("document.querySelector('#inbox input[data-tickable=yes]:not(:disabled)') !== null")
        await page.click("#inbox input[data-tickable=yes]")
        await page.until(_can("#approve-ticked"))
        self.assertLessEqual(await page.evaluate("document.documentElement.scrollWidth"), 390)
        await page.click("#approve-ticked")
        await page.shows("Approved: 3")
        self.assertEqual(await self.states(asked, wait=30), ["completed"] * 3)
        self.assertEqual(page.problems, [])

    async def test_together(self) -> None:
        """On the page of one, the box by its key has one press decide all, by keyboard; Undo takes all back."""
        asked = await self.ask_alike("one", "two")
        page = await self.inbox()
        await self.ready(page)
        self.assertEqual(await page.text("#approve > span"), "Approve")
        for key in ("t", "Space"):
            await page.press(key)
        await page.until("document.querySelector('#approve > span').textContent === 'Approve all 2'")
        self.assertEqual(await page.text("#deny > span"), "Deny all 2")
        asked += await self.ask_alike("three")
        await page.until(f"document.querySelector('{_TOGETHER}').dataset.id.split(',').length === 3")
        self.assertFalse(await page.evaluate(f"document.querySelector('{_TOGETHER}').checked"))
        self.assertEqual(await page.text("#approve > span"), "Approve")
        await page.click(_TOGETHER)
        await page.until("document.querySelector('#approve > span').textContent === 'Approve all 3'")
        await self.ready(page)  # the later one is among the warnings
        await page.click("#approve")
        await page.until("document.querySelector('#toast:not([hidden]) button') !== null")
        await page.click("#toast button")
        await page.shows("Taken back. Nothing was sent.")
        self.assertEqual(await self.states(asked), ["cancelled"] * 3)

    async def test_denied(self) -> None:
        """A denial of all reaches each, with its reason, also two of one session."""
        asked = await self.ask_alike("one", "two")
        asked.append((self.agent, await self.ask("Alike")))
        page = await self.inbox()
        await self.ready(page)
        await page.click(_TOGETHER)
        await page.evaluate("document.querySelector('#reason').value = 'not today'")
        await page.until("document.querySelector('#deny > span').textContent === 'Deny all 3'")
        await page.click("#deny")
        await page.shows("Denied 3: ")
        for session, run_id in asked:
            told = (await self.result(session, run_id)).body
            self.assertEqual((told["status"], told.get("reason")), ("denied", "not today"))

    async def test_red(self) -> None:
        """With a red warning there is no box: each is read and decided on its own page."""
        await self.ask_alike("one", "two", channel=_LOOKALIKE)
        page = await self.inbox()
        await page.shows("Decide each on its own page, because of the red warning.")
        self.assertEqual(await page.evaluate(f"document.querySelectorAll('{_TOGETHER}').length"), 0)
        self.assertEqual(await page.evaluate("document.querySelector('#inbox .tick input').dataset.tickable"), "no")
