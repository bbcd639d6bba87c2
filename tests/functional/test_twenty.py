"""Twenty mixed requests are decided by keys alone, two for each routine one."""

from __future__ import annotations

from time import monotonic

from twisted.logger import Logger

from tests.functional.browsed import PagesTestCase
from tests.functional.operated import AgentSession

_log = Logger()
_HERE = "document.querySelector('article.split')?.dataset.id"
_STATE = "document.querySelector('article.split').dataset.state"
_OPEN = "!document.querySelector('#approve').disabled"


class TwentyTests(PagesTestCase):
    """Four agents, five requests each, so that none floods."""

    async def test_keys(self) -> None:
        """The next request is shown after each decision; no request takes more than two keys."""
        ids: list[tuple[AgentSession, str]] = []
        for agent in ("goose", "codex", "claude", "pi"):
            self.agent = await self.session(agent)
            ids += [(self.agent, await self.ask(f"Release {each} by {agent}", "#general")) for each in range(5)]
        page = await self.entered()
        await page.look(width=1440, height=900)
        if not await page.evaluate(f"!!{_HERE}"):
            await page.until("!!document.querySelector('.asks .row-link')")
            await page.press("j", "Enter")
        await page.until(_HERE)
        began, keys, denied = monotonic(), 0, 0
        for number in range(len(ids)):
            shown = await page.evaluate(_HERE)
            await page.until(_OPEN)
            deny = number % 4 == 3
            await page.press("d" if deny else "a")
            await page.press("Enter")
            keys, denied = keys + 2, denied + deny
            await page.until(f"{_HERE} !== '{shown}' || {_STATE} !== 'pending_approval'")
        seconds = monotonic() - began
        _log.info("{keys} keys, {seconds:.1f} s", keys=keys, seconds=seconds)
        states = []
        for session, run_id in ids:
            self.agent = session
            states.append((await self.outcome(run_id, wait=30))[0])
        self.assertEqual((states.count("completed"), states.count("denied"), keys), (20 - denied, denied, 40))
