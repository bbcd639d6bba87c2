"""One home, and the many lives of the daemon on it: each ends by a kill, and the next must keep every promise."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from aileron.vault.keys import DataKey

from .beyond import Beyond
from .book import BY_NAME, Book
from .furnished import furnish, limit, trust_all
from .governing import Governing
from .lives import Life, Nursery
from .load import Load
from .model import Model
from .nursery import Birth
from .record import read, unsound
from .sites import GoneError, Site, agent, every_run, operator
from .tally import SOUND, STUCK, Tally
from .tooling import TOOL, ToolUse
from .world import World

AT_RANDOM, SHORTLY_AFTER, IN_SERVICE = "at random", "shortly after a point", "during a request"
_LOAD_SECONDS = 1.5
_DRAIN_SECONDS = 30.0
_START_SECONDS = 0.8
_MOST_SECONDS = 60.0  # of a life, whatever it waits for
_SETTLED_SECONDS, _SLOWEST = 1.5, 8.0
"""How long the first life takes on a quiet machine; where it is slower, all lives get as many times more."""

_LOCKED, _EARLY = 0.15, 0.3


@define(eq=False)
class Points:
    """Which points there are, how often a life comes to each, and which ended the fewest lives.

    :ivar hit: how many lives each has ended.
    """

    chance: random.Random
    reached: Counter[str] = field(factory=Counter)
    hit: Counter[str] = field(factory=Counter)
    tried: Counter[str] = field(factory=Counter)

    def saw(self, points: tuple[str, ...]) -> None:
        """A life came to these."""
        self.reached = Counter(points) | self.reached

    def next(self) -> tuple[str, int]:
        """Where to end the next life, and how many times to let it pass there before."""
        least = min(self.reached, key=lambda point: (self.tried[point], self.hit[point], self.chance.random()))
        self.tried[least] += 1
        return least, self.chance.randint(1, max(1, min(3, self.reached[least] // 5)))


@define(eq=False)
class Trial:
    """A home under trial.

    :ivar pace: how much longer everything takes than on a quiet machine.
    """

    root: Path
    nursery: Nursery
    points: Points
    tally: Tally
    chance: random.Random
    world: World = field(init=False)
    model: Model = field(factory=Model, init=False)
    tool: ToolUse = field(init=False)
    book: Book = field(init=False)
    key: DataKey = field(init=False)
    agent: Site = field(init=False)
    life: Life | None = field(init=False, default=None)
    died: str = field(init=False, default=AT_RANDOM)
    pace: float = field(init=False, default=1.0)

    def __attrs_post_init__(self) -> None:
        self.world = World(self.chance, self._kill)
        self.tool = ToolUse(self.chance, self._kill, lambda *what: self.tally.broke(self.died, *what))
        self.book = Book(self.world)
        self.world.heard = self.book.heard

    def _kill(self) -> None:
        if self.life is not None:
            self.life.end()

    async def run(self, kills: int) -> None:
        """Furnish the home, end its daemon C{kills} times, let what is left end, and look at the record."""
        await self.world.open()
        await self.model.open()
        self.key = furnish(self.root, self.world.port)
        await self.tool.furnish(self.root)
        await self._settle_in()
        for _ in range(kills):
            await self._one(self._birth())
        await self._end_well()
        for what in unsound(self.root):
            self.tally.broke(self.died, SOUND, what)
        runs, events = read(self.root)
        by_tool = {run.id for run in runs if run.action == TOOL}
        others = [run for run in runs if run.id not in by_tool], [each for each in events if each.run_id not in by_tool]
        for promise, how in (*Beyond(self.book, BY_NAME, *others).all(), *self.tool.hold(self.root, runs)):
            self.tally.broke(self.died, promise, how)
        self.tally.told.update(event.type for event in events)
        for each in (self.world, self.model, self.tool.world):
            each.close()
        self.tally.count(len(self.book.calls) + self.tool.writes, self.world, self.tool.world)

    async def _settle_in(self) -> None:
        """The first life: nothing is killed, everything is trusted, and all actions are called once."""
        self.world.calm = True
        life = self.life = await self.nursery.begin(self._plain())
        found = await life.found()
        assert found is not None, "the daemon does not start"
        who = await operator(found, self.key)
        await trust_all(who)
        await limit(who)
        await self.tool.settle_in(who)
        self.agent, began = await agent(found), time.monotonic()
        await self._load(self.agent, who, new=20).run()
        self.pace = min(_SLOWEST, max(1.0, (time.monotonic() - began) / _SETTLED_SECONDS))
        life.end(signal.SIGTERM)
        self.points.saw(tuple(point for point in (await life.death).points if "trust" not in point))
        self.world.calm = False

    def _load(self, asking: Site, who: Site | None, new: int = 12) -> Load:
        broke = partial(self.tally.broke, self.died)
        return Load(self.book, self.chance, asking, who, Governing(self.book, self.chance, broke), self.tool, new)

    def _plain(self) -> Birth:
        return self._born(spelled(self.key))

    def _birth(self) -> Birth:
        """How the next life will end, if it comes to that."""
        dice = self.chance.random() if self.points.reached else 1.0
        if dice < 0.7:
            point, times = self.points.next()
            return self._born(spelled(self.key), point, times)
        locked = self.chance.random() < _LOCKED
        key = None if locked else spelled(self.key)
        if dice < 0.85:
            delay = self.chance.random() * 0.004
            return self._born(key, self.chance.choice(sorted(self.points.reached)), 1, delay)
        return self._born(key)

    def _born(self, key: str | None, point: str = "", times: int = 1, delay: float = -1.0) -> Birth:
        model = f"http://127.0.0.1:{self.model.port}"
        return Birth(str(self.root), key, point, times, delay, model=model, tools=True)

    async def _one(self, birth: Birth) -> None:
        """A life, from what it finds to its end by force."""
        if birth.key is not None:
            self.book.words.unlocking()
        before, life = self.world.kills, await self.nursery.begin(birth)
        self.life = life
        early = not birth.point and self.chance.random() < _EARLY
        self._end_in(life, self.chance.random() * _START_SECONDS * self.pace if early else _MOST_SECONDS)
        found = await life.found()
        if found is not None:
            with suppress(GoneError):
                await self._use(birth, evolve(self.agent, url=found.url), found)
        life.end()
        death = await life.death
        self.points.saw(death.points)
        self.points.hit[birth.point] += death.points.count(birth.point) >= birth.times
        self.died = _where(birth, death.points, self.world.kills > before)
        self.tally.rows[self.died].kills += 1
        if death.status != -signal.SIGKILL:
            self.tally.broke(self.died, STUCK, f"the daemon ended by itself: {death.status}")

    async def _use(self, birth: Birth, asking: Site, found: Any) -> None:
        who = None if birth.key is None else await operator(found, self.key)
        await self._hold(asking)
        assert self.life is not None
        seconds = _LOAD_SECONDS * self.pace
        self._end_in(self.life, seconds if birth.point else self.chance.random() * seconds)
        await asyncio.gather(self._load(asking, who).run(), *([] if who is None else [self.tool.run(found)]))

    def _end_in(self, life: Life, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, life.end)

    async def _hold(self, asking: Site) -> dict[str, Mapping[str, Any]]:
        """Whether everything holds that was promised in the lives before."""
        doubtful = {text for text, call in self.book.calls.items() if call.state == "unknown"}
        before = self.book.happened()
        runs = await every_run(asking)
        for promise, how in self.book.hold(runs, before):
            self.tally.broke(self.died, promise, how)
        now = {text for text, call in self.book.calls.items() if call.state == "unknown"}
        self.tally.rows[self.died].unknown += len(now - doubtful)
        return runs

    async def _end_well(self) -> None:
        """The last life: whatever is left comes to an end."""
        self.world.calm = True
        self.book.words.unlocking()
        life = self.life = await self.nursery.begin(self._plain())
        found = await life.found()
        assert found is not None, "the daemon does not start"
        asking, who = evolve(self.agent, url=found.url), await operator(found, self.key)
        until = asyncio.get_running_loop().time() + _DRAIN_SECONDS * self.pace
        load = self._load(asking, who, new=0)
        await load.governing.resume(who)
        while left := await self._left(asking):
            if asyncio.get_running_loop().time() > until:
                for run in left:
                    self.tally.broke(self.died, STUCK, f"{run['id']} is {run['state']}")
                break
            await self._press(load, who)
        life.end(signal.SIGTERM)
        await life.death

    async def _left(self, asking: Site) -> list[Mapping[str, Any]]:
        await asyncio.sleep(0.05)
        runs = await self._hold(asking)
        return [
            run
            for run in runs.values()
            if run["state"] not in ("completed", "failed", "denied", "cancelled", "expired")
        ]

    async def _press(self, load: Load, who: Site) -> None:
        for item in (await who.get("/v1/action-approvals?limit=100")).body["items"]:
            run = item["run"]
            if run["action"] == TOOL:
                await self.tool.decide(who, item, "approve")
                continue
            call = self.book.of(run["id"], run["arguments"]["text"], run["parent_id"])
            full = call.kind.is_limited and call.approvals
            await load.decide(item, "deny" if full or run["parent_id"] is not None else "approve")
        for call in self.book.by_run().values():
            if call.state == "unknown":
                await load.settle(who, call)


def spelled(key: DataKey) -> str:
    """A key in hexadecimal, as the nursery is told it."""
    reading, writing = os.pipe()
    key.send(writing)
    with open(reading, "rb") as pipe:
        return pipe.read().hex()


def _where(birth: Birth, points: tuple[str, ...], in_service: bool) -> str:
    came = birth.point and points.count(birth.point) >= birth.times
    if came:
        return birth.point if birth.delay < 0 else SHORTLY_AFTER
    return IN_SERVICE if in_service else AT_RANDOM
