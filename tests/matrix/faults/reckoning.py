"""What came of a fault: whether every promise stands, and whether everything ends."""

from __future__ import annotations

import asyncio
from time import monotonic

from attrs import define

from tests.matrix.crash.book import ENDS, UNASKED
from tests.matrix.crash.sites import every_run
from tests.matrix.crash.tally import STUCK

from .faults import Fault
from .person import KEPT, People
from .report import Sheet
from .situation import UNDO_SECONDS

_DRAIN_SECONDS = 20.0
_LOOK_SECONDS = 1.0
_TICK_SECONDS = 0.05


@define(eq=False)
class Reckoning:
    """Of one fault."""

    fault: Fault
    people: People
    sheet: Sheet

    async def first_look(self) -> None:
        """What can be seen once the fault is over, or has lasted: the first look, which is what the table tells."""
        await asyncio.sleep(_LOOK_SECONDS)
        await self._hold()
        self.sheet.saw(self.fault.name, self.people.book, self.people.refused)

    async def drain(self) -> None:
        """Let everything end."""
        until = monotonic() + _DRAIN_SECONDS
        while left := await self._hold():
            if monotonic() > until:
                for text in left:
                    self.broke(text, STUCK, f"{text} is {self.people.book.calls[text].state}")
                return
            for item in (await self.people.asked()).values():
                await self.people.say("approve", item)
            for call in list(self.people.book.calls.values()):
                if call.state == "unknown":
                    await self.people.settle(call)
            await asyncio.sleep(_TICK_SECONDS)

    async def _hold(self) -> list[str]:
        """Whether everything holds; the texts of the runs that have not ended."""
        book, before = self.people.book, self.people.book.happened()
        runs = await every_run(self.people.agent)
        states = {run["arguments"]["text"]: str(run["state"]) for run in runs.values()}
        for text, state in states.items():
            book.calls[text].state = state
            if state == "pending_approval":
                self._asked_anew(text)
        for promise, how in book.hold(runs, before):
            self.broke(how, promise, how)
        for text, how in self.people.kept(set(states)):
            self.broke(text, KEPT, f"{text}: {how}")
        return [text for text, state in states.items() if state not in ENDS]

    def _asked_anew(self, text: str) -> None:
        """A yes that counts no more: whatever happens from here on without another one is unasked."""
        call = self.people.book.calls[text]
        if "approve" in call.confirmed and self.fault.asks_anew and not self.people.book.world.steps_of(text):
            call.confirmed.discard("approve")
            call.asked.discard("approve")
            self.sheet.asked_anew(self.fault.name, text)

    def heard(self, text: str) -> None:
        """An effect: not before its time."""
        call, people = self.people.book.calls[text], self.people
        if text in people.old:
            self.broke(text, UNASKED, f"{text} began on a word that does not count now")
        if call.kind.name == "held" and monotonic() < people.approved.get(text, 0.0) + UNDO_SECONDS:
            self.broke(text, UNASKED, f"{text} began within its undo seconds")
        if people.wall.seconds() < people.put_off.get(text, 0.0):
            self.broke(text, UNASKED, f"{text} began before the time that it was put off to")

    def broke(self, text: str, promise: str, how: str) -> None:
        """A promise was broken."""
        self.sheet.broke(self.fault.name, text, promise, how)
