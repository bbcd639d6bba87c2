"""Each thing that an operator does on the pages, done in a real browser without a mouse, and what then is so."""

import json
from typing import Any

from tests.functional import slack
from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import GATED, UNGATED, kinds
from tests.functional.web import Reply

_MOST_TABS = 120
_FOCUSED = "document.activeElement.matches({})"
_SEEN = "document.activeElement.tagName + '#' + document.activeElement.id"


class KeyboardTests(PagesTestCase):
    """A person who cannot use a mouse."""

    async def reach(self, page: Page, selector: str) -> None:
        """Press Tab until the focus is on such an element, once there is one that can be used; it is seen there."""
        wanted = json.dumps(f"{selector}:not(:disabled)")
        await page.until(f"document.querySelector({wanted}) !== null")
        seen: list[str] = []
        for _ in range(_MOST_TABS):
            await page.press("Tab")
            if await page.evaluate(_FOCUSED.format(wanted)):
                self.assertTrue(await page.evaluate("document.activeElement.matches(':focus-visible')"), selector)
                return
            seen.append(await page.evaluate(_SEEN))
        raise AssertionError(f"Tab does not lead to {selector}, but to {seen}")

    async def use(self, page: Page, selector: str, key: str = "Enter") -> None:
        """Go to an element and press a key there."""
        await self.reach(page, selector)
        await page.press(key)

    async def go(self, page: Page, name: str, shows: str) -> None:
        """Follow a link of the navigation."""
        await self.use(page, f'nav a[href="/{name}"]')
        await page.shows(shows)

    async def confirm(self, page: Page, button: str) -> None:
        """Use a button that asks whether one is sure, and confirm."""
        await self.use(page, button)
        await page.until(f"document.activeElement.matches({json.dumps(button + '[data-asked]:not(:disabled)')})")
        await page.press("Enter")

    async def recorded(self, *wanted: str) -> None:
        """Fail unless all of these are on record."""
        self.assertLessEqual(set(wanted), set(kinds(await self.audit())))

    async def test_approvals(self) -> None:
        """A request is opened from the list, edited and approved; then two are selected and approved together.

        What is changed is shown anew with the difference, and that is what is sent. What is selected is approved, each
        by its own digest, and nothing else; what is not shown whole cannot be selected.
        """
        run_id = await self.ask("Dark mode")
        page = await self.entered()
        await self.use(page, f'a[href="/approvals/{run_id}"]')
        await self.ready(page)
        await self.use(page, "#edit summary")
        await self.reach(page, "#edit-1")
        await page.press("End")
        await page.write(", at last")
        await self.use(page, "#change")
        await page.shows("Your edits")
        shown = [await page.text(f"#edited-0-{which}") for which in ("before", "after")]
        self.assertEqual(shown, ["Dark mode", "Dark mode, at last"])
        self.assertFalse(await page.evaluate("document.querySelector('main .stale') !== null"))
        await self.keep(page, "edited")
        await self.ready(page)
        await self.use(page, "#approve")
        await self.stands(page, "completed")
        self.assertEqual((await self.result(self.agent, run_id)).body["edited"][0]["after"], "Dark mode, at last")
        first, second, other, long = [await self.ask(each) for each in ("one", "two", "three", "four\nlines\nof\ntext")]
        await self.go(page, "approvals", "four")
        for each in (first, second):
            await self.use(page, f"input[data-id='{each}']", "Space")
        self.assertTrue(await page.evaluate(f"document.querySelector(\"input[data-id='{long}']\").disabled"))
        await page.shows("Approve 2 selected")
        await self.pause(3)
        self.assertEqual(await page.text("#approve-ticked"), "Approve 2 selected")
        await self.use(page, "#approve-ticked")
        await page.shows("2 of 2 approved.")
        await self.posted(3)
        self.assertEqual(sorted(each.text for each in self.workspace.messages), ["Dark mode, at last", "one", "two"])
        self.assertEqual((await self.outcome(other))[0], "pending_approval")
        self.assertEqual(page.problems, [])

    async def test_allowed_and_later(self) -> None:
        """Similar calls are allowed and that is revoked; another call is approved for later and taken back.

        Without a time nothing is approved for later; what was taken back is cancelled and never sent.
        """
        run_id = await self.ask("Release 1")
        page = await self.entered(f"/approvals/{run_id}")
        await self.ready(page)
        await self.use(page, "#grant summary")
        await self.reach(page, "select[data-argument=summary]")
        await page.press("a")  # chooses "anything"
        self.assertEqual(await page.evaluate("document.activeElement.value"), "any")
        await self.use(page, "#allow")
        await self.stands(page, "completed")
        await self.go(page, "grants", GATED)
        await self.use(page, "button[id^=revoke-]")
        await page.shows("Revoked")
        await self.recorded("grant.issued", "grant.revoked")
        other = await self.ask("Release 2")
        await page.open(f"{self.url}/approvals/{other}")
        await self.ready(page)
        await self.use(page, "#later summary")
        await self.use(page, "#approve-later")
        await page.shows("Choose a start time.")
        await self.use(page, "#later .chip[data-days]")
        await self.keep(page, "later")
        await self.use(page, "#approve-later")
        await page.shows("Starts in")
        await self.use(page, ".undo")
        await self.stands(page, "cancelled")
        self.assertEqual((await self.outcome(other))[0], "cancelled")
        self.assertEqual([each.text for each in self.workspace.messages], ["Release 1"])
        self.assertEqual(page.problems, [])

    async def test_trust(self) -> None:
        """A changed file is read and trusted, that is taken back, and an action is switched off and on."""
        page = await self.entered()
        await self.go(page, "actions", GATED)
        await self.use(page, f"#switch-{UNGATED}")
        await page.shows("Disabled")
        await self.use(page, f"#switch-{UNGATED}")
        await page.until("!document.body.innerText.includes('Disabled')")
        file = self.state.actions / f"{GATED}.md"
        file.write_text(file.read_text().replace("Tells a channel something.", "Tells a channel much."))
        await self.go(page, "trust", "+Tells a channel much.")
        await self.use(page, "button.trust")
        await page.shows("No new or changed files")
        await self.use(page, f"#distrust-action-{GATED}")
        await page.shows("New. Not active until you trust it.")
        await self.recorded("trust.given", "trust.taken")
        self.assertEqual(page.problems, [])

    async def test_sessions_and_limits(self) -> None:
        """A session is paused, resumed and ended; a limit is set and removed; everything is paused and resumed.

        The limit holds while it is there, and a session that was ended opens nothing.
        """
        page = await self.entered()
        await self.use(page, "#pause")
        await page.shows("Paused")
        await self.use(page, "#pause")
        await page.until("document.querySelector('#pause').textContent === 'Pause everything'")
        await self.go(page, "grants", "No limits set")
        for name, value in (("cap-per_hour", "1"), ("cap-action", UNGATED)):
            await self.reach(page, f"#{name}")
            await page.write(value)
        await self.use(page, "#set-cap")
        await page.shows("1 per hour")
        self.assertEqual([await self.refusal() for _ in range(2)], [None, "limit_exceeded"])
        await self.confirm(page, "main table button")
        await page.shows("No limits set")
        self.assertEqual(await self.refusal(), None)
        await self.go(page, "sessions", "opencode")
        await self.use(page, 'main a[href^="/sessions/"]')
        await self.use(page, "#pause-session")
        await page.shows("Paused")
        await self.use(page, "#resume-session")
        await page.shows("Active")
        await self.confirm(page, "#end-session")
        await page.shows("Ended")
        self.assertEqual((await self.post()).status, 401)
        await self.recorded("session.ended")
        self.assertEqual(page.problems, [])

    async def post(self) -> Reply:
        """What an agent is told that runs an ungated action."""
        return await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "x"})

    async def refusal(self) -> Any:
        """Why an ungated action is refused, if it is."""
        return (await self.post()).body.get("error", {}).get("class")

    async def test_records(self) -> None:
        """A run without an outcome is settled, the audit log is verified and saved, and the history is searched.

        What the filters of a list say is in its address, which shows the same when it is loaded anew.
        """
        self.workspace.next = [slack.drop(applied=False)]
        await self.post()
        page = await self.entered()
        await self.go(page, "runs", "Outcome unknown")
        await self.use(page, "main a[href^='/runs/']")
        await page.shows("no response says whether it happened")
        await self.reach(page, "#note-did_not_happen")
        await page.write("It is not in the channel.")
        await self.use(page, "#did_not_happen")
        await page.shows("Failed")
        await page.shows("It is not in the channel.")
        await self.go(page, "audit", "Signed up to record")
        await self.use(page, "#verify")
        await page.shows("Verified: all")
        await self.use(page, "#export")
        await page.shows("Saved as aileron-record.ndjson")
        await self.post()
        await page.shows("execution.succeeded")
        await page.shows("Saved as aileron-record.ndjson", seconds=0.5)
        await self.filter(page, "#filter-type", "session.started")
        await page.until("location.search === '?type=session.started'")
        await page.until("document.querySelectorAll('tbody tr').length === 1")
        await self.use(page, 'main a[href^="/audit/"]')
        await page.shows("Hash chain")
        await self.go(page, "history", "Outcome recorded")
        await page.evaluate("document.querySelector('#filter-kind').value = 'runs'")
        await self.filter(page, "#filter-text", "succeeded")
        await page.until("location.search === '?text=succeeded&kind=runs'")
        await page.until("document.querySelectorAll('.history li').length === 1")
        await page.reload()
        await page.until("document.querySelectorAll('.history li').length === 1")
        self.assertIn("Completed", await page.text(".history li"))
        await self.use(page, ".history a[href^='/runs/']")
        await page.shows(UNGATED)
        await self.recorded("run.settled")
        self.assertEqual(page.problems, [])

    async def filter(self, page: Page, field: str, words: str) -> None:
        """Open a list's form, and write into one of its fields."""
        await self.use(page, "#filters summary")
        await self.reach(page, field)
        await page.write(words)
        await page.press("Enter")

    async def test_locked(self) -> None:
        """A credential is revoked, and the vault is locked, which ends this login too."""
        page = await self.entered()
        await self.go(page, "connectors", "Connected")
        await self.use(page, 'main a[href$="me%2Fslack"]')
        await page.shows("api_key/slack")
        await self.confirm(page, "button[data-act^=DELETE]")
        await page.shows("Needs a credential")
        await self.recorded("binding.revoked")
        await self.go(page, "settings", "Unlocked")
        await self.confirm(page, "#lock")
        await page.shows("You are not logged in")
        self.assertEqual((await self.status())["vault_state"], "locked")
        self.assertEqual([each for each in page.problems if "401" not in each], [])
