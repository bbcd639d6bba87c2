"""Several people at the public name, each in a browser of their own, over real TLS."""

from __future__ import annotations

import re
from typing import Any

from twisted.internet.defer import Deferred

from tests.extent import seldom
from tests.functional import canary
from tests.functional.chromium import Page
from tests.functional.operated import GATED, AgentSession, kinds
from tests.functional.phoned import PhonedTestCase, config

PASSPHRASE = "marmot velvet canyon thirty"
RULE = f"approvals:\n  rules:\n    - {{action: {GATED}, count: 2}}\n"


class PeopleCase(PhonedTestCase):
    """A daemon with a public name, and people with accounts."""

    def setUp(self) -> Any:
        """Start the daemon."""
        super().setUp()
        return Deferred.fromCoroutine(self.begin())

    async def join(self, name: str, role: str = "approver") -> Page:
        """Add an account, and return its person's tab, in which the passphrase was set by the link."""
        shown = (await self.operator("people", "add", name, "--role", role)).stdout
        [link] = re.findall(rf"{re.escape(self.public)}/join#[\w-]+", shown)
        page = await self.phone.apart()
        await page.open(link)
        for field in ("passphrase", "again"):
            await page.click(f"#{field}")
            await page.write(PASSPHRASE)
        await page.click("button.yes")
        await page.until("document.querySelector('#main > [data-title]') !== null")
        return page

    async def go(self, page: Page, path: str) -> None:
        """Show a page of the public name."""
        await page.open(f"{self.public}{path}")
        await page.until("document.querySelector('#main > [data-title]') !== null")


class ApprovalTests(PeopleCase):
    """An action that needs the approvals of two people."""

    def text(self) -> str:
        """The configuration, with a rule."""
        return config(self.tls) + RULE

    async def test_two(self) -> None:
        """The first person's approval begins nothing and everybody sees it; the second one's has one effect."""
        alice, bob = await self.join("alice"), await self.join("bob")
        run_id = await self.ask("Two decide")
        await self.go(alice, f"/approvals/{run_id}")
        await alice.shows("0 of 2 approvals")
        await self.ready(alice)
        await alice.click("#approve:not(:disabled)")
        await alice.shows("You approved this. 1 of 2 approvals: alice. Somebody else must approve it too.")
        self.assertTrue(await alice.evaluate("document.querySelector('#approve').disabled"))
        await self.go(bob, "/approvals")
        await bob.shows("1 of 2 approvals: alice")
        await self.keep(bob, "people-one-of-two")
        self.assertEqual((self.workspace.messages, (await self.outcome(run_id))[0]), ([], "pending_approval"))
        await self.go(bob, f"/approvals/{run_id}")
        await self.ready(bob)
        await bob.click("#approve:not(:disabled)")
        await self.stands(bob, "completed")
        await self.stands(alice, "completed")
        self.assertEqual([each.text for each in self.workspace.messages], ["Two decide"])
        self.assertEqual(kinds(await self.audit("--run", run_id)).count("execution.started"), 1)
        self.assertEqual((await self.command("audit", "verify")).exit_code, 0)
        self.assertEqual((alice.problems, bob.problems), ([], []))

    @seldom
    async def test_forced(self) -> None:
        """An administrator approves alone with a reason, by keyboard; an approver is not offered it."""
        alice, root = await self.join("alice"), await self.join("root", "administrator")
        run_id = await self.ask("One decides")
        for page in (alice, root):
            await self.go(page, f"/approvals/{run_id}")
            await self.ready(page)
        self.assertFalse(await alice.evaluate("document.querySelector('#alone, #force') !== null"))
        await self.look_at(root, "people-force-button")
        await self.use(root, "#alone")
        await root.shows("Approve alone?")
        self.assertEqual(await root.evaluate("document.activeElement.id"), "force-reason")
        await root.press("Escape")
        await root.until("document.activeElement.id === 'alone'")
        await root.press("Enter")
        await root.until("document.activeElement.id === 'force-reason'")
        await root.write("…!")
        await self.pause(0.7)
        self.assertTrue(await root.evaluate("document.querySelector('#force-approve').disabled"))
        await root.write(" The site is down, bob is on a plane")
        await self.look_at(root, "people-force")
        await self.use(root, "#force-approve")
        await self.stands(root, "completed")
        self.assertEqual([each.text for each in self.workspace.messages], ["One decides"])
        self.assertEqual((await self.command("audit", "verify")).exit_code, 0)
        await self.go(root, f"/runs/{run_id}")
        await root.shows("The site is down")
        await self.look_at(root, "people-force-run")
        self.assertEqual(root.problems, [])
        desk = await self.desk()
        await desk.open(f"{self.url}/audit")
        await desk.shows("The site is down")
        self.assertEqual(await desk.text(".chip.bad"), "Approved alone")
        await self.look_at(desk, "people-force-audit")

    @seldom
    async def test_forced_at_desk(self) -> None:
        """The operator approves alone at the desk."""
        run_id = await self.ask("The operator decides")
        desk = await self.desk()
        await desk.open(f"{self.url}/approvals/{run_id}")
        await self.ready(desk)
        await desk.click("#alone:not(:disabled)")
        await desk.click("#force-reason")
        await desk.write("Nobody else is here")
        await desk.click("#force-approve:not(:disabled)")
        await self.stands(desk, "completed")
        self.assertIn("approval.forced", kinds(await self.audit("--run", run_id)))
        self.assertEqual(desk.problems, [])

    async def desk(self) -> Page:
        """A tab at the desk that is logged in."""
        page = await self.phone.apart()
        await self.log_in(page)
        return page


class AccountTests(PeopleCase):
    """The page of a person's account."""

    @seldom
    async def test_agent(self) -> None:
        """A person connects an agent by keyboard, which requests in the person's name until the session is ended."""
        alice = await self.join("alice")
        await self.go(alice, "/settings/account")
        await alice.shows("No agents connected")
        await self.reach(alice, "#agent-name")
        await alice.write("claude-code")
        await self.use(alice, "#connect-agent .yes")
        await alice.until("document.querySelector('#agent-token')?.textContent.startsWith('AILERON_TOKEN=ail_a_')")
        await alice.until("document.querySelector('button[id^=end-]') !== null")
        token = (await alice.text("#agent-token")).partition("=")[2]
        await self.look_at(alice, "people-connected")
        agent = AgentSession("", token, "")
        self.assertEqual((await self.run_action(agent, GATED)).status, 202)
        [request] = (await self.told("approval", "list"))["items"]
        self.assertEqual(request["run"]["owner"]["name"], "alice")
        self.assertEqual([url for _, url in alice.requests if token in url], [])
        self.assertEqual(canary.in_files(self.home.root / "state", token), [])
        await alice.reload()
        await alice.until("document.querySelector('button[id^=end-]') !== null")
        self.assertNotIn(token, await alice.evaluate("document.documentElement.outerHTML"))
        await self.confirm(alice, "button[id^=end-]")
        await alice.shows("No agents connected")
        self.assertEqual((await self.run_action(agent, GATED)).status, 401)
        self.assertEqual(alice.problems, [])
