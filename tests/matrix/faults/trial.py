"""One home, one fault: everything is under way, it strikes, it ends, and every promise must stand."""

from __future__ import annotations

import asyncio
import random
import signal
from functools import partial
from pathlib import Path

from attrs import define, field

from aileron.home.discovery import Discovery
from aileron.home.paths import Home
from aileron.vault.keys import DataKey
from tests.matrix.crash.book import Book
from tests.matrix.crash.furnished import furnish, trust_all
from tests.matrix.crash.lives import Life, Nursery
from tests.matrix.crash.nursery import Birth
from tests.matrix.crash.record import told, unsound
from tests.matrix.crash.sites import agent, operator
from tests.matrix.crash.tally import SOUND
from tests.matrix.crash.trial import spelled
from tests.matrix.crash.wall import Wall
from tests.matrix.crash.world import World

from .faults import FOREIGN, NONE, OWN, Fault
from .ground import Ground
from .person import UNCLEAR, People
from .reckoning import Reckoning
from .report import Sheet
from .situation import KINDS, ONCE, OPEN_ONCE, Situation

_AFTERWARDS = {"after-0": ONCE, "after-1": OPEN_ONCE}


@define(eq=False)
class Trial:
    """A home under trial."""

    root: Path
    nursery: Nursery
    fault: Fault
    sheet: Sheet
    chance: random.Random
    world: World = field(init=False)
    wall: Wall = field(init=False)
    ground: Ground = field(init=False)
    people: People = field(init=False)
    reckoning: Reckoning = field(init=False)
    life: Life = field(init=False)

    async def run(self) -> None:
        """All of it."""
        self.wall = Wall(self.root.parent / "wall")
        self.world = World(self.chance, lambda: None, calm=True, heard=self._heard)
        await self.world.open()
        try:
            situation = await self._settle_in()
            await situation.bring_about()
            await asyncio.sleep(self.chance.random() * 0.3)
            await self._strike(situation)
            await self._afterwards()
        finally:
            self.world.close()
            self.life.end()
            await self.life.death
        for what in unsound(self.root):
            self.reckoning.broke("", SOUND, what)
        events = told(self.root)
        for type_ in self.fault.on_record:
            if not events[type_]:
                self.reckoning.broke("", SOUND, f"it does not tell of {type_}")

    async def _settle_in(self) -> Situation:
        key = furnish(self.root, self.world.port, KINDS)
        self.ground = Ground(Home(self.root), self.wall, key)
        found = await self._begin(key)
        who = await operator(found, key, self.wall.seconds)
        await trust_all(who)
        self.ground.older = self.ground.home.secrets.read_bytes()
        people = self.people = People(
            Book(self.world), self.wall, key, await agent(found), partial(self.sheet.broke, self.fault.name), found, who
        )
        self.reckoning = Reckoning(self.fault, people, self.sheet)
        return Situation(people)

    async def _begin(self, key: DataKey | None) -> Discovery:
        self.life = await self.nursery.begin(Birth(str(self.root), _spelled(key), wall=str(self.root.parent / "wall")))
        self.ground.pid = self.life.pid
        found = await self.life.found()
        assert found is not None, "the daemon does not start"
        return found

    def _heard(self, text: str) -> None:
        self.reckoning.heard(text)

    # the fault ---------------------------------------------------------------------------------------------

    async def _strike(self, situation: Situation) -> None:
        fault, people = self.fault, self.people
        people.refusals = fault.refusals
        if fault.next_key is not None:
            await self._kill()
        people.old = {text for text, call in people.book.calls.items() if fault.voids and call.kind.gated}
        if fault.next_key is None:
            fault.strike(self.ground)
        else:
            await self._between()
        if self.life.death.done():
            await self._restored()
        else:
            await self._last(situation)
        people.refusals = frozenset()

    async def _last(self, situation: Situation) -> None:
        """The fault lasts, and everybody goes on asking."""
        bursts = asyncio.gather(situation.burst(), situation.decide(), self._second(situation), situation.over())
        await asyncio.sleep(self.fault.seconds)
        if self.fault.stays:
            await bursts
            await self.reckoning.first_look()
            if self.fault.end is not None:
                await self.reckoning.drain()
        await self._restored()
        await bursts

    async def _second(self, situation: Situation) -> None:
        await asyncio.sleep(self.fault.seconds / 2)
        await situation.burst()

    async def _between(self) -> None:
        """The life ends, the fault strikes, and the next life begins, if it does."""
        self.fault.strike(self.ground)
        keys = {NONE: None, FOREIGN: self.ground.foreign, OWN: self.ground.own}
        key = keys[self.fault.next_key or NONE]
        if self.fault.starts:
            found = await self._begin(key)
            self.people.meet(found, key or self.ground.own)
            return
        self.life = await self.nursery.begin(Birth(str(self.root), _spelled(key)))
        death = await self.life.death
        log = (self.ground.home.log / "aileron.log").read_text()
        if death.status != 1 or "aileron cannot start" not in log:
            self.reckoning.broke("", UNCLEAR, f"the daemon was to refuse to start, and ended with {death.status}")

    async def _restored(self) -> None:
        """The fault ends; where it befell a life's beginning, with that life."""
        if self.fault.end is not None:
            if self.fault.next_key is not None:
                await self._kill()
            self.people.old.clear()
            self.fault.end(self.ground)
            if self.fault.next_key is not None:
                self.people.meet(await self._begin(self.ground.own), self.ground.own)

    async def _kill(self) -> None:
        self.life.end(signal.SIGKILL)
        await self.life.death

    # what came of it ---------------------------------------------------------------------------------------

    async def _afterwards(self) -> None:
        """What was refused may be said again; new calls do as ever; everything ends."""
        if not self.fault.stays:
            await self.reckoning.first_look()
        if self.fault.on_record:  # what was trusted under the vault of then is no more
            await trust_all(await operator(self.people.found, self.people.key))
        for call in self.people.book.again():
            await self.people.call_again(call)
        for text, kind in _AFTERWARDS.items():
            await self.people.call(text, kind)
        await self.reckoning.drain()


def _spelled(key: DataKey | None) -> str | None:
    return None if key is None else spelled(key)
