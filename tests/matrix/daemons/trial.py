"""Some homes whose daemons share one database, their kills, and the promises that must hold for all of them."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from aileron.home.discovery import Discovery
from aileron.home.paths import Home
from aileron.store import read_address
from aileron.vault.keys import DataKey
from tests.functional.postgresql import Server
from tests.matrix.crash.beyond import Beyond
from tests.matrix.crash.book import BY_NAME, LOST, Book, Call
from tests.matrix.crash.furnished import KINDS, furnish, trust_all
from tests.matrix.crash.lives import Life, Nursery
from tests.matrix.crash.load import Load
from tests.matrix.crash.nursery import Birth
from tests.matrix.crash.record import read_store, unsound_store
from tests.matrix.crash.sites import GoneError, Site, agent, every_run, operator
from tests.matrix.crash.tally import SOUND, STUCK, Tally
from tests.matrix.crash.trial import AT_RANDOM, Points, spelled
from tests.matrix.crash.world import World

LEASE_SECONDS = 2
_ROUND_SECONDS = (0.3, 2.5)
_DRAIN_SECONDS = 90.0
_SERVER, _STOPPED = "the server restarted", "stopped for longer than its lease"
_KINDS = tuple(kind for kind in KINDS if not kind.is_limited)


class _Quiet:
    """An operator who only decides."""

    locked = False

    async def run(self, operator: Site, more: Any) -> None:
        """Do nothing."""


@define(eq=False)
class _Load(Load):
    """Agents and the operator at one of the daemons."""

    def _fresh(self) -> Call:
        text = f"t{len(self.book.calls)}"
        key = None if self.chance.random() < 0.3 else f"key-{text}"
        call = self.book.calls[text] = Call(text, self.chance.choice(_KINDS), key)
        return call


@define(eq=False)
class _Place:
    """One home, and the present life of its daemon."""

    root: Path
    nursery: Nursery
    life: Life | None = None
    using: asyncio.Task[None] | None = None


@define(eq=False)
class Trial:
    """Homes under trial.

    :param count: how many daemons there are.
    """

    root: Path
    server: Server
    tally: Tally
    chance: random.Random
    count: int = 3
    database: str = field(init=False)
    points: Points = field(init=False)
    world: World = field(init=False)
    book: Book = field(init=False)
    key: DataKey = field(init=False)
    agent: Site = field(init=False)
    places: list[_Place] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.points = Points(self.chance)
        self.world = World(self.chance, self._kill_any)
        self.book = Book(self.world)
        self.world.heard = self.book.heard
        self.database = self.server.make_database()

    @property
    def url(self) -> str:
        return self.server.url(self.database)

    async def run(self, kills: int) -> None:
        """Furnish, end daemons C{kills} times, let all that is left end, and look at the record."""
        await self.world.open()
        await self._settle_in()
        for place in self.places:
            await self._begin(place)
        for number in range(kills):
            await self._one(number)
        await self._end_well()
        for what in unsound_store(read_address(self.url)):
            self.tally.broke(AT_RANDOM, SOUND, what)
        runs, events = read_store(read_address(self.url))
        for promise, how in Beyond(self.book, BY_NAME, runs, events).all():
            self.tally.broke(AT_RANDOM, promise, how)
        self.tally.told.update(event.type for event in events)
        self.world.close()
        self.tally.calls += len(self.book.calls)
        self.tally.effects += sum(self.world.effects.values())
        self.tally.requests += sum(self.world.requests.values())

    # the homes ---------------------------------------------------------------------------------------------------

    async def _settle_in(self) -> None:
        """One home is furnished, trusted, and moved to the server; the others are copies of it."""
        first = self.root / "home-0"
        self.key = furnish(first, self.world.port, _KINDS)
        config = Home(first).config
        config.write_text(f"store:\n  url: {self.url}\n  daemons: several\n  lease_seconds: {LEASE_SECONDS}\n")
        config.chmod(0o600)
        nursery = await Nursery.open()
        life = await nursery.begin(self._born(first))
        found = await life.found()
        assert found is not None, "the daemon does not start"
        await trust_all(await operator(found, self.key))
        life.end(signal.SIGTERM)
        await life.death
        command = (sys.executable, "-m", "aileron", "store", "migrate", "--to", self.url)
        subprocess.run(
            command,
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "AILERON_HOME": str(first)},
            cwd=self.root,
        )
        self.places = [_Place(first, nursery)]
        for number in range(1, self.count):
            root = self.root / f"home-{number}"
            shutil.copytree(first, root, ignore=shutil.ignore_patterns("daemon.*", "run", "ports.json", "log"))
            self.places.append(_Place(root, await Nursery.open()))
        found = await self._begin(self.places[0])
        self.agent = await agent(found)

    def _born(self, root: Path, point: str = "", times: int = 1, delay: float = -1.0) -> Birth:
        return Birth(str(root), spelled(self.key), point, times, delay)

    async def _begin(self, place: _Place, *, fated: bool = False) -> Discovery:
        """Begin a life, perhaps one that ends at a point, and let it be used.

        :raises AssertionError: if it does not come so far, unless it was to end before.
        """
        if place.life is not None and not place.life.death.done():
            found = await place.life.found()
            assert found is not None
            return found
        birth = self._born(place.root)
        if fated and self.points.reached and self.chance.random() < 0.6:
            birth = self._born(place.root, *self.points.next())
        place.life = await place.nursery.begin(birth)
        found = await place.life.found()
        if found is None:
            self.points.saw((await place.life.death).points)
            return await self._begin(place)
        place.using = asyncio.create_task(self._use(place.life, found))
        return found

    async def _use(self, life: Life, found: Discovery) -> None:
        """What agents and the operator do at one daemon, until it is gone."""
        while not life.death.done():
            try:
                if not hasattr(self, "agent"):
                    await asyncio.sleep(0.05)
                    continue
                who = await operator(found, self.key)
                await self._load(evolve(self.agent, url=found.url), who, new=4).run()
            except GoneError:
                await asyncio.sleep(0.05)
            except KeyError:  # it could not even be logged in, while the server is away
                await asyncio.sleep(0.2)
            except AssertionError as error:
                self.tally.broke(AT_RANDOM, LOST, f"{error}")
                await asyncio.sleep(0.2)

    def _load(self, asking: Site, who: Site, new: int) -> _Load:
        """The agents and the operator at one daemon: he only decides, and there is no tool of their own."""
        quiet: Any = _Quiet()
        tool: Any = None
        return _Load(self.book, self.chance, asking, who, quiet, tool, new)

    # kills -------------------------------------------------------------------------------------------------------

    def _kill_any(self) -> None:
        """End the daemon that is at the service, which is not known: any."""
        self._end(self.chance.choice(self.places), signal.SIGKILL)

    def _end(self, place: _Place, how: int) -> None:
        if place.life is not None and not place.life.death.done():
            place.life.end(how)

    async def _one(self, number: int) -> None:
        """Kill one daemon, or stop one for a while, or restart the server; then all are there again."""
        place = self.chance.choice(self.places)
        await asyncio.sleep(self.chance.uniform(*_ROUND_SECONDS))
        what = AT_RANDOM
        if number % 10 == 4:
            what = _SERVER
            await self._restart_server()
        elif number % 10 == 8:
            what = _STOPPED
            self._end(place, signal.SIGSTOP)
            await asyncio.sleep(3 * LEASE_SECONDS)
            self._end(place, signal.SIGCONT)
        self._end(place, signal.SIGKILL) if what == AT_RANDOM else await asyncio.sleep(0.5)
        self.tally.rows[what].kills += 1
        for each in self.places:
            if each.life is not None and (each.life.death.done() or (each is place and what == AT_RANDOM)):
                death = await each.life.death
                self.points.saw(tuple(point for point in death.points if "trust" not in point))
                if death.status != -signal.SIGKILL:
                    self.tally.broke(what, STUCK, f"a daemon ended by itself: {death.status}")
                if each.using is not None and not each.using.done():
                    each.using.cancel()
                elif each.using is not None:
                    each.using.result()
                await self._begin(each, fated=True)
        print(f"{number + 1} kills, {len(self.tally.faults)} faults", file=sys.stderr, flush=True)

    async def _restart_server(self) -> None:
        how = self.chance.choice(("immediate", "fast"))
        control = partial(asyncio.get_running_loop().run_in_executor, None, self.server.control)
        await control("stop", "-m", how)
        await asyncio.sleep(self.chance.random() * 2 * LEASE_SECONDS)
        await control("start")

    # the end -----------------------------------------------------------------------------------------------------

    async def _end_well(self) -> None:
        """All daemons are killed, and one more life, which nothing kills, brings what is left to its end."""
        self.world.calm = True
        last = self.places[0]
        for place in self.places:
            self._end(place, signal.SIGKILL)
            if place.life is not None:
                await place.life.death
        found = await self._begin(last)
        for place in self.places:
            if place.using is not None:
                place.using.cancel()
        asking, who = evolve(self.agent, url=found.url), await operator(found, self.key)
        await self._drain(asking, self._load(asking, who, new=0))
        self._end(last, signal.SIGTERM)
        assert last.life is not None
        await last.life.death
        for place in self.places:
            await place.nursery.close()

    async def _drain(self, asking: Site, load: _Load) -> None:
        """Decide and settle until every run has ended."""
        assert load.operator is not None
        until = asyncio.get_running_loop().time() + _DRAIN_SECONDS
        while left := [run async for run in self._left(asking)]:
            if asyncio.get_running_loop().time() > until:
                for run in left:
                    self.tally.broke(AT_RANDOM, STUCK, f"{run['id']} is {run['state']}")
                break
            for item in (await load.operator.get("/v1/action-approvals?limit=100")).body["items"]:
                await load.decide(item, "approve")
            for call in self.book.by_run().values():
                if call.state == "unknown":
                    await load.settle(load.operator, call)

    async def _left(self, asking: Site) -> Any:
        await asyncio.sleep(0.2)
        before = self.book.happened()
        runs = await every_run(asking)
        for promise, how in self._hold(runs, before):
            self.tally.broke(AT_RANDOM, promise, how)
        for run in runs.values():
            if run["state"] not in ("completed", "failed", "denied", "cancelled", "expired"):
                yield run

    def _hold(self, runs: Any, before: Any) -> Iterator[tuple[str, str]]:
        """The broken promises. Of a request that several daemons decided in different ways at once, any may count."""
        for call in self.book.calls.values():
            if len(call.asked & {"approve", "deny", "withdraw", "edit"}) > 1:
                call.asked.add("resume")
        yield from self.book.hold(runs, before)


async def _run(kills: int, seed: int, server: Server, root: Path, tally: Tally) -> None:
    with suppress(asyncio.CancelledError):
        await Trial(root, server, tally, random.Random(seed)).run(kills)


def strike_daemons(kills: int, seed: int, root: Path) -> Tally:
    """Kill so often, and return what came of it."""
    from tests.functional.postgresql import start_server

    tally = Tally()
    asyncio.run(_run(kills, seed, start_server(), root, tally))
    return tally
