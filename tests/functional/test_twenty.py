"""Twenty requests are decided by keys alone, two for each routine one."""

from __future__ import annotations

from time import monotonic

from twisted.logger import Logger

from tests.functional.browsed import PagesTestCase
from tests.functional.mixed import AGENTS, SHOWN, MixedTestCase, Person
from tests.functional.operated import AgentSession

_log = Logger()


class TwentyTests(PagesTestCase):
    """Four agents, five requests each, so that none floods."""

    async def test_keys(self) -> None:
        """The next request is shown after each decision; no request takes more than two keys."""
        ids: list[tuple[AgentSession, str]] = []
        for agent in AGENTS:
            self.agent = await self.session(agent)
            ids += [(self.agent, await self.ask(f"Release {each} by {agent}", f"#team-{each}")) for each in range(5)]
        page = await self.entered("/home")
        await page.look(width=1440, height=900)
        await page.open(f"{self.url}/approvals")
        await page.until(SHOWN)
        person, ways = Person(page), ["approve", "approve", "approve", "deny"] * 5
        for way in ways:
            await person.decide(way)
        states = []
        for session, run_id in ids:
            self.agent = session
            states.append((await self.outcome(run_id, wait=30))[0])
        self.assertEqual((states.count("completed"), states.count("denied")), (15, 5))
        self.assertEqual(person.keys, {"approve": [2] * 15, "deny": [2] * 5})


class MixedTests(MixedTestCase):
    """Twenty requests of all kinds."""

    async def test_keys(self) -> None:
        """Each is decided as the person wants, the red ones with one key more, and an edited one as it was edited."""
        await self.ask_all()
        page = await self.entered("/home")
        await page.look(width=1440, height=900)
        await page.open(f"{self.url}/approvals")
        await page.until(SHOWN)
        person, began = Person(page), monotonic()
        for _ in self.asked:
            await person.decide(self.asked[await page.evaluate(SHOWN)][1].way)
        _log.info("{keys} in {seconds:.1f} s", keys=person.keys, seconds=monotonic() - began)
        for run_id, (session, wanted) in self.asked.items():
            self.agent = session
            state = (await self.outcome(run_id, wait=30))[0]
            self.assertEqual(state, "denied" if wanted.way == "deny" else "completed", wanted)
        self.assertIn("Incident 17 is over. <!channel> Thank you.", [each.text for each in self.workspace.messages])
        self.assertEqual((set(person.keys["deny"]), person.keys["confirm"]), ({2}, [3]))
        *routine, identical, long = sorted(person.keys["approve"])
        self.assertEqual(routine, [2] * len(routine), person.keys)
        # Above the first of two identical requests stands that there are two, so its end has to be scrolled to.
        self.assertEqual((identical, long), (4, 6), person.keys)
