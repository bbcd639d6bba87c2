"""What one can say to a request in a real browser beside what `test_keyboard` says, and what the service then got."""

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import CONNECTOR, GATED

_BAR = "document.querySelector('.bar').getBoundingClientRect()"
_END = "document.querySelector('.text.long .end').getBoundingClientRect()"
_PLACED = f"document.querySelector('.text.long').scrollTop = 1e6; scrollBy(0, {_END}.top - {_BAR}.top - 60)"
LONG = "First line\n" + "\n" * 22 + "and at the very end: wire it to me"


class ReviewTests(PagesTestCase):
    """One request."""

    async def opened(self, summary: str = "Dark mode", channel: str = "#general") -> tuple[Page, str]:
        """A page that shows what an agent asks for, and its id."""
        run_id = await self.ask(summary=summary, channel=channel)
        page = await self.entered(f"/approvals/{run_id}")
        await page.until("document.querySelector('#decision') !== null")
        return page, run_id

    async def test_read_first(self) -> None:
        """What hides its end behind blank lines is not approved before that was on the screen, by keyboard too.

        An end that lies in the window, but behind the bar with the buttons, was not read.
        """
        page, _ = await self.opened(LONG)
        await page.look(height=520)
        await page.until("document.querySelector('#deny:not(:disabled)') !== null")
        await page.shows("Before you approve, read to the end: Text")
        self.assertIn("Contains long runs of whitespace", await page.text(".card"))
        self.assertTrue(await page.evaluate("document.querySelector('#approve').disabled"))
        await self.keep(page, "unread")
        await page.evaluate(_PLACED)
        await self.pause(1)
        behind = await page.evaluate(f"{_END}.top > {_BAR}.top && {_END}.top < innerHeight")
        self.assertTrue(behind and await page.evaluate("document.querySelector('#approve').disabled"))
        await page.press("a")
        self.assertEqual(await page.evaluate("document.activeElement.dataset.label"), "Text")
        await page.press("End")
        await page.until("!document.querySelector('#unread').textContent.includes('Text')")
        await self.ready(page)
        self.assertEqual(await page.text("#unread"), "")
        await self.pause(3)
        self.assertFalse(await page.evaluate("document.querySelector('#approve').disabled"), "it was read once")
        await page.press("a")
        self.assertEqual(await page.evaluate("document.activeElement.id"), "approve")
        await page.press("Enter")
        await self.stands(page, "completed")
        self.assertEqual([each.text for each in self.workspace.messages], [LONG])
        self.assertEqual(page.problems, [])

    async def test_folded(self) -> None:
        """A request that repeats what is shown is folded and can be approved; one that adds words stands open."""
        page, _ = await self.opened()
        await self.ready(page)
        self.assertFalse(await page.evaluate("document.querySelector('#request-1').checkVisibility()"))
        await page.click("#sent-1 summary")
        self.assertIn('"text": "Dark mode"', await page.text("#request-1"))
        self.state.connectors.joinpath("slack.toml").write_text(self.without_hint())
        await self.operator("connector", "trust", CONNECTOR, "--yes")
        await self.edit_action()
        await page.click("#look")
        await page.until(
            "document.querySelector('#request-1')?.checkVisibility() && !document.querySelector('#sent-1')"
        )
        self.assertIn('"text": "Edited: Dark mode"', await page.text("#request-1"))
        self.assertEqual(page.problems, [])

    def without_hint(self) -> str:
        """The connector's file without what says that it sends messages."""
        lines = self.state.connectors.joinpath("slack.toml").read_text().splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("present"))

    async def test_not_carried_over(self) -> None:
        """What was chosen and typed at one request is not there at the next, not by the way back either."""
        page, run_id = await self.opened()
        await self.ready(page)
        other = await self.ask(summary="Another thing")
        await page.evaluate(
            "(() => { const choice = document.querySelector('#grant-1'); choice.value = 'any';"
            " choice.dispatchEvent(new Event('change'));"
            " document.querySelector('#reason').value = 'only for the first'; })()"
        )
        await self.pause(3)
        self.assertEqual(await page.evaluate("document.querySelector('#grant-1').value"), "any", "it is kept here")
        await page.evaluate(
            "(() => { const link = document.createElement('a'); link.href = '/approvals/" + other + "';"
            " document.querySelector('#main p').append(link); link.click(); })()"
        )
        await page.until(f"document.querySelector('article[data-id=\"{other}\"]') !== null")
        chosen = await page.evaluate("['grant-1', 'reason'].map((id) => document.getElementById(id).value)")
        self.assertEqual(chosen, ["", ""])
        self.assertNotEqual(run_id, other)
        self.assertEqual(page.problems, [])

    async def test_clock_changes(self) -> None:
        """A start at a time that the clock shows twice or skips is the later one, an expiry the earlier one."""
        page, _ = await self.opened("Release 1")
        await page.call("Emulation.setTimezoneOverride", timezoneId="Europe/Berlin")
        read = (
            "(async () => {{ const {{ laterOf, firstMeaning }} = await import('/static/later.js');"
            " const field = document.querySelector('#not-before'); field.value = '{}';"
            " return [laterOf(document.querySelector('article')), firstMeaning(field, '')]; }})()"
        )
        for local, begins, expires in (
            ("2026-10-25T02:30", "2026-10-25T01:30:00.000Z", "2026-10-25T00:30:00.000Z"),
            ("2026-03-29T02:30", "2026-03-29T01:30:00.000Z", "2026-03-29T00:30:00.000Z"),
            ("2026-10-25T12:00", "2026-10-25T11:00:00.000Z", "2026-10-25T11:00:00.000Z"),
            ("2026-10-25T01:59", "2026-10-24T23:59:00.000Z", "2026-10-24T23:59:00.000Z"),
            ("2026-03-29T03:30", "2026-03-29T01:30:00.000Z", "2026-03-29T01:30:00.000Z"),
        ):
            self.assertEqual(await page.evaluate(read.format(local)), [begins, expires], local)

    async def test_grant_pattern(self) -> None:
        """A pattern chosen beneath a request allows what matches it, and nothing else."""
        page, _ = await self.opened("Release 1")
        await self.ready(page)
        await page.click("#grant summary")
        await page.evaluate(
            "(() => { const kind = document.querySelector('select[data-argument=summary]'); kind.value = 'pattern';"
            " kind.dispatchEvent(new Event('change'));"
            " const field = document.querySelector('#grant-1-pattern'); field.value = 'Release [0-9]+';"
            " document.querySelector('#uses').value = '5'; })()"
        )
        self.assertTrue(await page.evaluate("document.querySelector('#grant-1-pattern').checkVisibility()"))
        await self.keep(page, "grant-pattern")
        await page.shows("Approve and allow similar calls")
        await page.click("#approve")
        await self.stands(page, "completed")
        alike = await self.run_action(self.agent, GATED, {"channel": "#general", "summary": "Release 2"})
        other = await self.run_action(self.agent, GATED, {"channel": "#general", "summary": "Release two"})
        self.assertEqual((alike.status, other.status), (200, 202), alike.text)
        self.assertEqual([each.text for each in self.workspace.messages], ["Release 1", "Release 2"])
        self.assertEqual(page.problems, [])


class ListTests(PagesTestCase):
    """Several requests."""

    async def test_flood(self) -> None:
        """A session that asks too much stands by itself, and two clicks deny all of it and shut the agent out."""
        runs = [await self.ask(f"number {number}") for number in range(6)]
        page = await self.entered()
        await page.shows("opencode has 6 pending requests")
        await self.keep(page, "flood")
        await page.click(".deny-all")
        await page.shows("Confirm: deny and end session")
        await self.pause(1)
        await page.click(".deny-all")
        await page.shows("No pending approvals.")
        states = {(await self.told("runs", "show", run_id))["state"] for run_id in runs}
        self.assertEqual(states, {"denied"})
        refused = await self.run_action(self.agent, GATED, {"channel": "#general", "summary": "more"})
        self.assertEqual(refused.status, 401)
        self.assertEqual(self.workspace.messages, [])
        self.assertEqual(page.problems, [])

    async def test_keys(self) -> None:
        """By j and k one goes through the list, Enter opens, ? explains; in a field a letter is only a letter."""
        first, second = await self.ask("one"), await self.ask("another")
        page = await self.entered("/home")
        await page.look(width=900, height=900)  # where the list is alone
        await page.open(f"{self.url}/approvals")
        await page.shows("another")
        await page.press("j", "j")
        here = "document.activeElement.getAttribute('href')"
        self.assertEqual(await page.evaluate(here), f"/approvals/{second}")
        await page.press("k")
        self.assertEqual(await page.evaluate(here), f"/approvals/{first}")
        await page.press("?")
        self.assertTrue(await page.evaluate("document.querySelector('#keys').open"))
        await self.keep(page, "keys")
        await page.press("Escape")
        self.assertFalse(await page.evaluate("document.querySelector('#keys').open"))
        await page.until("document.querySelector('.tick input:not(:disabled)') !== null")
        await page.press("x", "Space")
        await page.shows("Approve 1 selected")
        await page.press("k", "Enter")
        await self.ready(page)
        await page.press("e")
        self.assertTrue(await page.evaluate("document.activeElement.matches('#edit summary')"))
        await page.press("r")
        self.assertEqual(await page.evaluate("document.activeElement.id"), "reason")
        await page.press("j", "a", "u")
        self.assertEqual(await page.evaluate("document.activeElement.value"), "jau")
        self.assertEqual(await page.evaluate("location.pathname"), f"/approvals/{first}")
        self.assertEqual(page.problems, [])
