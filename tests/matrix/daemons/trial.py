"""Some homes whose daemons share one database, what strikes them, and the promises that must hold for all of them."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from aileron.home.discovery import Discovery
from aileron.home.paths import Home
from aileron.model.audit import Event
from aileron.store import read_address
from aileron.vault.keys import DataKey
from tests.functional.postgresql import Server
from tests.matrix.crash.beyond import Beyond
from tests.matrix.crash.book import BY_NAME, LOST, UNASKED, WRONG, Book
from tests.matrix.crash.furnished import furnish, limit, trust_all
from tests.matrix.crash.lives import Life, Nursery
from tests.matrix.crash.model import Model
from tests.matrix.crash.nursery import Birth
from tests.matrix.crash.record import read_store, unsound_store
from tests.matrix.crash.sites import GoneError, Site, agent, every_run, operator
from tests.matrix.crash.tally import SOUND, STUCK, Tally
from tests.matrix.crash.tooling import TOOL
from tests.matrix.crash.trial import AT_RANDOM, Points, spelled
from tests.matrix.crash.wall import Wall
from tests.matrix.crash.world import World
from tests.matrix.tools.home import CLAIMS, unsound_rows

from .logs import FAILED, read_failures
from .people import DaemonGoverning, DaemonLoad, DaemonTool, Deciding, Quiet, allow, is_about_time
from .strikes import Disk, Strikes

LEASE_SECONDS = 2
STOPPED, WRONG_CLOCK = "stopped for longer than its lease", "a clock one hour off"
_ROUND_SECONDS = (0.3, 2.5)
_DRAIN_SECONDS = 120.0
_NEW_CALLS, _TURN_SECONDS = 4, 1.0
_OFF_SECONDS, _FAR_SECONDS = 3600.0, 600.0
_KILLED_MEANWHILE = 0.4
_ENDED = ("completed", "failed", "denied", "cancelled", "expired")
_MOST_BIRTHS = 50
_PASSING = ("received", "executing")
_COPIED_NOT = ("daemon.*", "run", "ports.json", "log")


@define(eq=False)
class _Place:
    """One home, and the present life of its daemon.

    :ivar who: the operator's login there.
    :ivar clock_set: how often its daemon's clock was set.
    """

    root: Path
    nursery: Nursery
    tool: DaemonTool
    wall: Path | None = None
    life: Life | None = None
    using: asyncio.Task[None] | None = None
    who: Site | None = None
    clock_set: int = 0

    @property
    def lives(self) -> bool:
        """Whether its daemon runs."""
        return self.life is not None and not self.life.death.done()

    def seconds(self) -> float:
        """The time by its daemon's clock."""
        return time.time() if self.wall is None else Wall(self.wall).seconds()

    def set_clock(self, wrong_by: float) -> None:
        """Let its daemon's clock be wrong."""
        assert self.wall is not None
        Wall(self.wall).set(wrong_by)
        self.clock_set += 1

    def end(self, how: int) -> None:
        """Send its daemon a signal, if it runs."""
        if self.life is not None and self.lives:
            self.life.end(how)


@define(eq=False)
class Trial:
    """Homes under trial.

    :param count: how many daemons there are. The last one's clock is sometimes wrong.
    :param busy: whether agents and the operator use the daemons by themselves.
    """

    root: Path
    server: Server
    tally: Tally
    chance: random.Random
    disk: Disk
    count: int = 3
    busy: bool = True
    database: str = field(init=False)
    strikes: Strikes = field(init=False)
    points: Points = field(init=False)
    world: World = field(init=False)
    model: Model = field(factory=Model, init=False)
    book: Book = field(init=False)
    governing: DaemonGoverning = field(init=False)
    deciding: Deciding = field(factory=Deciding, init=False)
    key: DataKey = field(init=False)
    agent: Site | None = field(default=None, init=False)
    places: list[_Place] = field(factory=list, init=False)
    is_stopped: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.points = Points(self.chance)
        self.world = World(self.chance, self._kill_any)
        self.book = Book(self.world)
        self.world.heard = self.book.heard
        self.database = self._make_database()
        self.strikes = Strikes(self.server, self.database, self.disk, self.chance, 2.0 * LEASE_SECONDS)
        self.governing = DaemonGoverning(
            self.book, self.chance, partial(self.tally.broke, AT_RANDOM), self._sites, self.deciding
        )

    @property
    def url(self) -> str:
        return self.server.url(self.database)

    async def run(self, strikes: int) -> None:
        """Furnish, strike C{strikes} times, let all that is left end, and look at the record, whatever happened.

        After L{stop} there are no more strikes.
        """
        await self.world.open()
        await self.model.open()
        await self.settle_in()
        try:
            await self._strike_all(strikes)
            await self._end_well()
        except Exception as error:  # noqa: BLE001 - the rim: the record tells more
            self.tally.broke(AT_RANDOM, STUCK, f"the trial itself failed: {error!r}")
        finally:
            await self.end_all()
            self._look_at_logs(AT_RANDOM)
            self._look_at_record()
        tools = [place.tool for place in self.places]
        for world in (self.world, tools[0].world, self.model):
            world.close()
        self.tally.count(len(self.book.calls) + sum(tool.writes for tool in tools), self.world, tools[0].world)

    def stop(self) -> None:
        """Strike no more, and wait only for what is being done. The record is looked at as always."""
        self.is_stopped = True

    async def _strike_all(self, strikes: int) -> None:
        for place in self.places:
            await self.begin(place)
        governing = asyncio.create_task(self.governing.run_at_any())
        for number in range(strikes):
            if self.is_stopped:
                break
            await self._one(number)
        while not governing.done():  # asyncio.wait_for of Python 3.11 loses a cancellation that comes with the answer
            governing.cancel()
            await asyncio.wait((governing,), timeout=1)
        if not governing.cancelled():
            self.tally.broke(AT_RANDOM, LOST, f"{governing.exception()!r}")

    def _look_at_logs(self, what: str) -> None:
        for place in self.places:
            for failure in read_failures(place.root):
                self.tally.broke(what, FAILED, failure)

    def _look_at_record(self) -> None:
        address = read_address(self.url)
        for what in unsound_store(address):
            self.tally.broke(AT_RANDOM, SOUND, what)
        runs, events = read_store(address)
        by_tool = {run.id for run in runs if run.action == TOOL}
        others = [run for run in runs if run.id not in by_tool], [each for each in events if each.run_id not in by_tool]
        found = (
            *Beyond(self.book, BY_NAME, *others).all(),
            *self.places[0].tool.hold_runs(runs),
            *self.governing.hold(events),
            *_begun_elsewhen(events),
            *((WRONG, each) for each in self._unsound_claims()),
        )
        for promise, how in found:
            self.tally.broke(AT_RANDOM, promise, how)
        self.tally.told.update(event.type for event in events)

    def _unsound_claims(self) -> Sequence[str]:
        with self.server.connect(self.database) as connection:
            return list(unsound_rows(connection.execute(CLAIMS).fetchall()))

    # the homes ---------------------------------------------------------------------------------------------------

    def _make_database(self) -> str:
        if self.disk.path is None:
            return self.server.make_database()
        with self.server.connect() as admin:
            admin.execute(f"CREATE TABLESPACE small LOCATION '{self.disk.path}'")
        return self.server.make_database("TABLESPACE small")

    async def settle_in(self) -> None:
        """One home is furnished, trusted, and moved to the server; the others are copies of it."""
        first, nursery, tool = self.root / "home-0", await Nursery.open(), self.make_tool(0)
        self.key = furnish(first, self.world.port)
        await tool.furnish(first)
        with Home(first).config.open("a") as config:
            config.write(f"store:\n  url: {self.url}\n  daemons: several\n  lease_seconds: {LEASE_SECONDS}\n")
        life = await nursery.begin(self._born(first))
        found = await life.found()
        assert found is not None, "the daemon does not start"
        who = await operator(found, self.key)
        await trust_all(who)
        await limit(who)
        await tool.settle_in(who)
        life.end(signal.SIGTERM)
        await life.death
        self._migrate(first)
        self.places = [_Place(first, nursery, tool)]
        for number in range(1, self.count):
            root = self.root / f"home-{number}"
            shutil.copytree(first, root, ignore=shutil.ignore_patterns(*_COPIED_NOT))
            other = self.make_tool(number)
            other.share(tool)
            self.places.append(_Place(root, await Nursery.open(), other))
        self.places[-1].wall = self.root / "wall"
        Wall(self.root / "wall")
        self.agent = await agent(await self.begin(self.places[0]))

    def make_tool(self, number: int) -> DaemonTool:
        return DaemonTool(self.chance, self._kill_any, partial(self.tally.broke, AT_RANDOM), number)

    def _migrate(self, home: Path) -> None:
        command = (sys.executable, "-m", "aileron", "store", "migrate", "--to", self.url)
        environment = {**os.environ, "AILERON_HOME": str(home)}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment, cwd=self.root)

    def _born(
        self, root: Path, point: str = "", times: int = 1, delay: float = -1.0, wall: Path | None = None
    ) -> Birth:
        model = f"http://127.0.0.1:{self.model.port}"
        at = "" if wall is None else str(wall)
        return Birth(str(root), spelled(self.key), point, times, delay, wall=at, model=model, tools=True)

    async def begin(self, place: _Place, *, fated: bool = False) -> Discovery:
        """Begin a life, perhaps one that ends at a point, and let it be used.

        :raises AssertionError: if it does not come so far, unless it was to end before.
        """
        if place.life is not None and place.lives:
            found = await place.life.found()
            assert found is not None
            return found
        birth = self._born(place.root, wall=place.wall)
        if fated and self.points.reached and self.chance.random() < 0.6:
            birth = self._born(place.root, *self.points.next(), wall=place.wall)
        for _ in range(_MOST_BIRTHS):
            place.life = await place.nursery.begin(birth)
            found = await place.life.found()
            if found is not None:
                if self.busy:
                    place.using = asyncio.create_task(self._use(place, place.life, found))
                return found
            self._saw((await place.life.death).points)
            birth = self._born(place.root, wall=place.wall)
        raise AssertionError(f"the daemon of {place.root.name} does not start")

    def _saw(self, points: tuple[str, ...]) -> None:
        self.points.saw(tuple(point for point in points if "trust" not in point))

    async def _use(self, place: _Place, life: Life, found: Discovery) -> None:
        """What agents, their tools and the operator do at one daemon, until it is gone."""
        while not life.death.done():
            clock_set = place.clock_set
            try:
                if self.agent is None:
                    await asyncio.sleep(0.05)
                    continue
                place.who = who = await operator(found, self.key, place.seconds)
                load = self._load(evolve(self.agent, url=found.url), who, place.tool, _NEW_CALLS)
                await asyncio.gather(load.run(), place.tool.run(found), asyncio.sleep(_TURN_SECONDS))
            except GoneError:
                await asyncio.sleep(0.05)
            except KeyError:  # it could not even be logged in, while the server is away
                await asyncio.sleep(0.2)
            except AssertionError as error:
                # It was made by the clock before that was set, or after: it is refused, and asked for again.
                if not (is_about_time(error) and place.clock_set > clock_set):
                    self._judge(error)
                await asyncio.sleep(0.2)

    def _judge(self, error: AssertionError) -> None:
        """Note what broke, unless the database was away."""
        try:
            allow(error, (503,))
        except AssertionError:
            self.tally.broke(AT_RANDOM, LOST, f"{error}")

    def _load(self, asking: Site, who: Site, tool: DaemonTool, new: int) -> DaemonLoad:
        """The agents and the operator at one daemon: he only decides there."""
        quiet: Any = Quiet()
        return DaemonLoad(self.book, self.chance, asking, who, quiet, tool, new, self.deciding)

    def _sites(self) -> Sequence[Site]:
        return [place.who for place in self.places if place.who is not None and place.lives]

    # what strikes ------------------------------------------------------------------------------------------------

    def _kill_any(self) -> None:
        """End the daemon that is at the service, which is not known: any."""
        self.chance.choice(self.places).end(signal.SIGKILL)

    async def _one(self, number: int) -> None:
        """Kill one daemon, or strike one or the database; then all are there again."""
        place = self.chance.choice(self.places)
        await asyncio.sleep(self.chance.uniform(*_ROUND_SECONDS))
        what = self._choose(number)
        if what == AT_RANDOM:
            place.end(signal.SIGKILL)
            if place.life is not None:
                await place.life.death
        else:
            meanwhile = [self._kill_meanwhile(place)] if self.chance.random() < _KILLED_MEANWHILE else []
            await asyncio.gather(self._strike(what, place), *meanwhile)
            await asyncio.sleep(0.5)
        self.tally.rows[what].kills += 1
        for each in self.places:
            if each.life is not None and each.life.death.done():
                await self._begin_again(each, what)
        self._look_at_logs(what)
        print(f"{number + 1} strikes ({what}), {len(self.tally.faults)} faults", file=sys.stderr, flush=True)

    def _choose(self, number: int) -> str:
        names = self.strikes.names()
        if number % 5 == 4:
            return names[number // 5 % len(names)]
        return {3: STOPPED, 8: WRONG_CLOCK}.get(number % 10, AT_RANDOM)

    async def _strike(self, what: str, place: _Place) -> None:
        if what == STOPPED:
            place.end(signal.SIGSTOP)
            await asyncio.sleep(3 * LEASE_SECONDS)
            place.end(signal.SIGCONT)
        elif what == WRONG_CLOCK:
            await self._set_clock()
        else:
            await self.strikes.strike(what)

    async def _kill_meanwhile(self, place: _Place) -> None:
        await asyncio.sleep(self.chance.uniform(0.0, LEASE_SECONDS))
        place.end(signal.SIGKILL)
        self.tally.rows[AT_RANDOM].kills += 1

    async def _set_clock(self) -> None:
        """The last daemon's clock goes wrong for some leases."""
        last = self.places[-1]
        last.set_clock(self.chance.choice((_OFF_SECONDS, -_OFF_SECONDS)))
        try:
            await asyncio.sleep(self.chance.uniform(1, 2 * LEASE_SECONDS))
        finally:
            last.set_clock(0.0)

    async def _begin_again(self, place: _Place, what: str) -> None:
        assert place.life is not None
        death = await place.life.death
        self._saw(death.points)
        if death.status != -signal.SIGKILL:
            self.tally.broke(what, STUCK, f"a daemon ended by itself: {death.status}")
        place.who = None
        if place.using is not None and not place.using.done():
            place.using.cancel()
        elif place.using is not None:
            place.using.result()
        await self.begin(place, fated=True)

    # the end -----------------------------------------------------------------------------------------------------

    async def _end_well(self) -> None:
        """All daemons are killed, and one more life, which nothing kills, brings what is left to its end."""
        self.world.calm = self.places[0].tool.world.calm = True
        last = self.places[0]
        for place in self.places:
            if place.using is not None:
                place.using.cancel()
            place.end(signal.SIGKILL)
            if place.life is not None:
                await place.life.death
        found = await self.begin(last)
        assert last.using is not None
        last.using.cancel()
        assert self.agent is not None
        asking, who = evolve(self.agent, url=found.url), await operator(found, self.key)
        if self.book.words.is_paused and not (await who.get("/v1/status")).body["paused"]:
            self.tally.broke(AT_RANDOM, LOST, "it was paused, and nobody resumed it")
        await self.governing.resume(who)
        await self._drain(asking, self._load(asking, who, last.tool, new=0))
        last.end(signal.SIGTERM)
        assert last.life is not None
        await last.life.death

    async def end_all(self) -> None:
        """No daemon is left, also if the trial failed."""
        for place in self.places:
            if place.using is not None:
                place.using.cancel()
            place.end(signal.SIGKILL)
            if place.life is not None:
                await place.life.death
            await place.nursery.close()

    async def _drain(self, asking: Site, load: DaemonLoad) -> None:
        """Decide and settle until every run has ended."""
        clock = asyncio.get_running_loop().time
        until = clock() + _DRAIN_SECONDS
        while left := [run async for run in self._left(asking)]:
            if self.is_stopped and not any(run["state"] in _PASSING for run in left):
                break
            if clock() > until:
                for run in left:
                    self.tally.broke(AT_RANDOM, STUCK, f"{run['id']} is {run['state']}")
                break
            await self._press(load)

    async def _press(self, load: DaemonLoad) -> None:
        assert load.operator is not None
        for item in (await load.operator.get("/v1/action-approvals?limit=100")).body["items"]:
            run = item["run"]
            if run["action"] == TOOL:
                await load.tool.decide(load.operator, item, "approve")
                continue
            call = self.book.of(run["id"], run["arguments"]["text"], run["parent_id"])
            full = call.kind.is_limited and call.approvals
            await load.decide(item, "deny" if full or run["parent_id"] is not None else "approve")
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
            if run["state"] not in _ENDED:
                yield run

    def _hold(self, runs: Mapping[str, Any], before: Mapping[str, set[str]]) -> Iterator[tuple[str, str]]:
        """The broken promises. Of a request that several daemons decided in different ways at once, any may count."""
        for call in self.book.calls.values():
            if len(call.asked & {"approve", "deny", "withdraw", "edit"}) > 1:
                call.asked.add("resume")
        yield from self.book.hold(runs, before)


def _begun_elsewhen(events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    """Yield what a daemon began whose clock was wrong. The record is in the order of what happened."""
    latest = 0.0
    for event in events:
        if event.type == "execution.started":
            at = event.at.timestamp()
            if latest and abs(at - latest) > _FAR_SECONDS:
                yield UNASKED, f"{event.run_id} was begun by a daemon whose clock was wrong"
            else:
                latest = at


async def _run(strikes: int, seed: int, server: Server, root: Path, tally: Tally, disk: Disk) -> None:
    trial = Trial(root, server, tally, random.Random(seed), disk)
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, trial.stop)
    await trial.run(strikes)


def strike_daemons(strikes: int, seed: int, root: Path) -> Tally:
    """Strike so often, and return what came of it."""
    from tests.functional.postgresql import start_server

    tally, disk = Tally(), Disk.mount()
    server = start_server()
    if disk.path is None:
        print("nothing can be mounted here, so no disk gets full", file=sys.stderr)
    try:
        asyncio.run(_run(strikes, seed, server, root, tally, disk))
    finally:
        disk.unmount()
    return tally
