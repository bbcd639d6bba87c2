"""Agents' own tools at several daemons: what is held open at one is decided and done at another."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from attrs import define
from twisted.trial.unittest import SynchronousTestCase

from tests.extent import seldom
from tests.functional.postgresql import start_server
from tests.matrix.crash.sites import Site, operator
from tests.matrix.crash.tally import Tally
from tests.matrix.crash.tooling import TOOL
from tests.matrix.daemons.people import DaemonTool
from tests.matrix.daemons.strikes import Disk
from tests.matrix.daemons.trial import Trial
from tests.matrix.tools.tool import ToolSession, enter

_HOLD_SECONDS, _PATIENCE_SECONDS = 20, 60


@define(eq=False)
class _Two(Trial):
    """Two daemons that nobody uses but the test."""

    def make_tool(self, number: int) -> DaemonTool:
        tool = super().make_tool(number)
        tool.hold_seconds = _HOLD_SECONDS
        return tool

    async def enter(self, number: int) -> ToolSession:
        """A session of the agent at one daemon."""
        return await enter(await self.begin(self.places[number]), self.places[0].tool.world.port)

    async def operator(self, number: int) -> Site:
        """The operator at one daemon."""
        return await operator(await self.begin(self.places[number]), self.key)

    async def pending(self, who: Site, count: int = 1) -> list[Any]:
        """The requests of tools that wait, as one daemon shows them, once there are so many."""
        until = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
        while True:
            items = (await who.get("/v1/action-approvals?limit=100")).body["items"]
            found = [each for each in items if each["run"]["action"] == TOOL]
            if len(found) >= count or asyncio.get_running_loop().time() > until:
                return found
            await asyncio.sleep(0.1)


class ToolsTests(SynchronousTestCase):
    def with_two(self, work: Callable[[_Two], Coroutine[Any, Any, None]]) -> None:
        """Have two daemons on one database, whose service answers well."""
        root = Path(self.mktemp()).absolute()
        root.mkdir()
        trial = _Two(root, start_server(), Tally(), random.Random(1), Disk(), count=2, busy=False)
        asyncio.run(self.use_two(trial, work))

    async def use_two(self, trial: _Two, work: Callable[[_Two], Coroutine[Any, Any, None]]) -> None:
        await trial.world.open()
        await trial.model.open()
        await trial.settle_in()
        tool = trial.places[0].tool
        tool.world.calm = True
        tool.world.heard = lambda _: None
        try:
            for place in trial.places:
                await trial.begin(place)
            await work(trial)
        finally:
            await trial.end_all()
            tool.world.close()
            trial.world.close()
            trial.model.close()

    @seldom
    def test_held(self) -> None:
        """A request that is held open at one daemon gets the answer of the run that is decided and done at another."""

        async def work(two: _Two) -> None:
            session, who = await two.enter(0), await two.operator(1)
            sent = asyncio.create_task(session.send("w0"))
            (item,) = await two.pending(who)
            self.assertFalse(sent.done())
            self.assertEqual(item["id"], item["run"]["id"])
            await two.places[1].tool.decide(who, item, "approve")
            got = await sent
            self.assertEqual((got.status, got.body.get("done"), got.run), (200, True, item["id"]))
            self.assertEqual(dict(two.places[0].tool.world.effects), {("w0", "only"): 1})

        self.with_two(work)

    @seldom
    def test_repeated(self) -> None:
        """A tool that repeats at another daemon what was asked for at one asks no second time, and it is done once."""

        async def work(two: _Two) -> None:
            first, one, other = await two.enter(0), await two.operator(0), await two.operator(1)
            sent = asyncio.create_task(first.send("w0"))
            (item,) = await two.pending(other)
            await first.end()
            again = asyncio.create_task((await two.enter(1)).send("w0"))
            await asyncio.sleep(2)
            self.assertEqual([each["id"] for each in await two.pending(other)], [item["id"]])
            await two.places[0].tool.decide(one, item, "approve")
            got = await again
            self.assertEqual((got.status, got.body.get("done"), got.run), (200, True, item["id"]))
            self.assertEqual(dict(two.places[0].tool.world.effects), {("w0", "only"): 1})
            self.assertEqual(await two.pending(one, 0), [])
            sent.cancel()

        self.with_two(work)
