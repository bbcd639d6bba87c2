"""Each thing that an operator does on the pages, done in a real browser without a mouse, and what then is so.

What has a module of its own is done so there: an action is written (`test_writing`), a connection is tested and a
credential rebound (`test_connector_page`), a host is decided (`test_egress_page`), a passkey is added and used
(`test_passkey`), and a run is undone (`test_other_pages`).
"""

from typing import Any

from tests.extent import seldom
from tests.functional import slack
from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import GATED, UNGATED, kinds
from tests.functional.reactor import until
from tests.functional.web import Reply


class KeyboardTests(PagesTestCase):
    """A person who cannot use a mouse."""

    async def go(self, page: Page, name: str, shows: str) -> None:
        """Follow a link of the navigation."""
        await self.use(page, f'nav a[href="/{name}"]')
        await page.shows(shows)

    async def recorded(self, *wanted: str) -> None:
        """Fail unless all of these are on record."""
        self.assertLessEqual(set(wanted), set(kinds(await self.audit())))

    async def test_approvals(self) -> None:
        """A request is opened from the list, edited and approved; two are selected and approved; others are denied.

        What is changed is shown anew with the difference, and that is what is sent. What is selected is approved, each
        by its own digest, and nothing else; what is not shown whole cannot be selected. A denial tells the agent the
        reason, and the last one ends its session.
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
        await self.use(page, f'a[href="/approvals/{other}"]')
        await self.ready(page)
        await self.use(page, "button[data-reason^=Wrong]")
        await self.use(page, "#deny")
        await page.shows("Denied: ")
        self.assertEqual(await self.outcome(other), ("denied", "Wrong recipient"))
        await self.go(page, "approvals", "four")
        await page.until(f"document.querySelector('article[data-id=\"{long}\"]:not([data-left])') !== null")
        await self.confirm(page, ".deny-all")
        await self.stands(page, "denied")
        self.assertEqual((await self.post()).status, 401)
        self.assertEqual(page.problems, [])

    async def test_allowed_and_later(self) -> None:
        """Similar calls are allowed and that is revoked; one is approved for later and taken back; one is cancelled.

        Without a time nothing is approved for later; what was taken back is cancelled and never sent.
        """
        run_id = await self.ask("Release 1")
        page = await self.entered(f"/approvals/{run_id}")
        await self.ready(page)
        await self.use(page, "#grant summary")
        await self.reach(page, "select[data-argument=summary]")
        await page.press("a")  # chooses "anything"
        self.assertEqual(await page.evaluate("document.activeElement.value"), "any")
        self.assertEqual(await page.text("#approve > span"), "Approve and allow similar calls")
        await self.use(page, "#approve")
        await self.stands(page, "completed")
        await self.go(page, "grants", GATED)
        await self.use(page, "button[id^=revoke-]")
        await page.shows("Revoked")
        await self.recorded("grant.issued", "grant.revoked")
        other = await self.ask("Release 2")
        await page.open(f"{self.url}/approvals/{other}")
        await self.ready(page)
        await self.use(page, "#later summary")
        await page.shows("Choose a start time, or close")
        await self.pause(1)
        self.assertTrue(await page.evaluate("document.querySelector('#approve').disabled"))
        await self.use(page, "#later .chip[data-days]")
        await self.keep(page, "later")
        await page.shows("Approve for tomorrow")
        await self.use(page, "#approve")
        await page.shows("Starts in")
        await self.use(page, ".undo")
        await self.stands(page, "cancelled")
        self.assertEqual((await self.outcome(other))[0], "cancelled")
        third = await self.ask("Release 3")
        await self.go(page, "runs", "Waiting for your approval")
        await self.use(page, f'main a[href="/approvals/{third}"]')
        await self.use(page, "#cancel summary")
        await self.use(page, "#withdraw")
        await page.shows("Cancelled")
        self.assertEqual((await self.outcome(third))[0], "cancelled")
        self.assertEqual([each.text for each in self.workspace.messages], ["Release 1"])
        self.assertEqual(page.problems, [])

    async def test_trust(self) -> None:
        """Changed files are read and trusted, one and all; that is taken back; an action is switched off and on."""
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
        other = self.state.actions / f"{UNGATED}.md"
        other.write_text(other.read_text().replace("Tells a channel something.", "Tells a channel more."))
        await self.go(page, "trust", "+Tells a channel more.")
        await self.reach(page, ".typed-name")
        await page.write(UNGATED)
        await self.use(page, "#trust-all")
        await page.shows("No new or changed files")
        await self.recorded("trust.given", "trust.taken")
        self.assertEqual(page.problems, [])

    async def test_sessions_and_limits(self) -> None:
        """A session is paused, resumed and ended; a limit is set and removed; everything is paused and resumed.

        The limit holds while it is there, and a session that was ended opens nothing. Sound is switched off, and the
        list of keys is opened and closed.
        """
        page = await self.entered()
        await self.use(page, "#sound")
        await page.until("document.querySelector('#sound').ariaPressed === 'false'")
        await self.use(page, "#show-keys")
        await page.shows("No key decides by itself.")
        await self.use(page, "#hide-keys")
        await page.until("!document.querySelector('#keys').open")
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
        looked = f"{self.url}/v1/runs/{await page.evaluate('location.pathname.slice(6)')}/reconcile"
        await self.use(page, "#reconcile")
        await until(self.reactor, lambda: ("POST", looked) in page.requests, 30, "a look at the outcome")
        await page.shows("Looked up step")
        await self.keep(page, "run-looked-up")
        await self.reach(page, "#note")
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
        await self.go(page, "runs", "Runs, newest first")
        await self.use(page, "main a[href='/history']")
        await page.shows("Outcome recorded")
        await page.evaluate("document.querySelector('#filter-kind').value = 'runs'")
        await self.reach(page, "#filter-text")
        await page.write("succeeded")
        await page.press("Enter")
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

    @seldom
    async def test_notifications(self) -> None:
        """Test notifications are sent to the channels that are configured."""
        told, program = self.home.root / "told", self.home.root / "desktop"
        program.write_text(f'#!/bin/sh\necho "$@" >> {told}\n')
        program.chmod(0o700)
        await self.set_config(f"notifications:\n  desktop: {{command: {program}}}\n")
        page = await self.entered("/settings")
        await self.use(page, "#try-channels")
        await until(self.reactor, told.exists, 30, "a test notification")
        await page.until("document.querySelector('#try-channels:not(:disabled)') !== null")
        self.assertEqual(page.problems, [])

    async def test_locked(self) -> None:
        """A credential is revoked, logins are ended, and the vault is locked, which ends this login too."""
        page = await self.entered()
        await self.go(page, "connectors", "Connected")
        await self.use(page, 'main a[href$="me%2Fslack"]')
        await page.shows("api_key/slack")
        await self.confirm(page, "button[data-act^=DELETE]")
        await page.shows("Needs a credential")
        await self.recorded("binding.revoked")
        await self.go(page, "settings", "Unlocked")
        for _ in range(2):
            await self.operator_token()
        await page.until("document.querySelectorAll('td button[id^=end-]').length > 1")
        await self.reach(page, "td button[id^=end-]")
        button = await page.evaluate("document.activeElement.id")
        await page.press("Enter")
        await page.until(f"document.getElementById('{button}') === null")
        await self.use(page, "#end-others")
        await page.until("document.querySelector('td button[id^=end-]') === null")
        await self.confirm(page, "#lock")
        await page.shows("The vault is locked, so nothing runs. You can watch")
        self.assertEqual((await self.status())["vault_state"], "locked")
        self.assertEqual([each for each in page.problems if "401" not in each], [])
