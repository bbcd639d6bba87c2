"""What is under way when a fault strikes, each call named after how it stands: C{waits-1}, C{executes-2}."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from attrs import define, field

from aileron.base.json import timestamp
from tests.matrix.crash.book import Call
from tests.matrix.crash.furnished import Kind

from .person import People

UNDO_SECONDS = 2.0
PUT_OFF_SECONDS = 3.0
ONCE, SAFE = Kind("once", {"only": "post"}), Kind("safe", {"only": "put"})
OPEN_ONCE, OPEN_SAFE = Kind("open-once", {"only": "post"}, None), Kind("open-safe", {"only": "put"}, None)
STEPS = Kind("steps", {"first": "put", "second": "post", "third": "put"})
FOUND = Kind("found", {"only": "send"})
SHOWN = Kind(
    "shown",
    {"only": "post"},
    'required = true\n[approval.preview]\nop = "look"\nargs = { text = "${args.text}" }\nrender = { Seen = "seen" }\n',
)
HELD = Kind("held", {"only": "post"}, f"required = true\nundo_seconds = {UNDO_SECONDS}")
BRIEF = Kind("brief", {"only": "post"}, 'required = true\nexpires_after = "4s"')
KINDS = (ONCE, SAFE, OPEN_ONCE, OPEN_SAFE, STEPS, FOUND, SHOWN, HELD, BRIEF)

WAITING = (ONCE, SHOWN, STEPS, SAFE)
DECIDED = {"approve": (ONCE, SHOWN), "deny": (ONCE,), "withdraw": (ONCE,), "edit": (SAFE,)}
"""What waits, and is decided while the fault lasts."""
_DOUBTFUL = (("cuts after", ONCE), ("cuts before", ONCE), ("cuts after", STEPS))
_EXECUTING = (("answers slowly", ONCE), ("answers slowly", SAFE), ("is silent", ONCE), ("answers slowly", OPEN_ONCE))
_NEW = (ONCE, SHOWN, HELD, OPEN_ONCE, OPEN_SAFE)
_MOST_SECONDS = 15.0


@define(eq=False)
class Situation:
    """Everything that may be under way, brought about.

    :ivar items: as the operator saw them before the fault, by text.
    """

    people: People
    items: dict[str, Any] = field(factory=dict)
    _told: int = 0

    async def bring_about(self) -> None:
        """Have runs that wait, are approved, execute, are in doubt; the last come last, and are under way."""
        people, habits = self.people, self.people.book.world.habits
        for number, (habit, kind) in enumerate(_DOUBTFUL):
            habits[f"in doubt-{number}"] = habit
            await people.call(f"in doubt-{number}", kind)
        for number, kind in enumerate(WAITING):
            await people.call(f"waits-{number}", kind)
        for word, kinds in DECIDED.items():
            for number, kind in enumerate(kinds):
                await people.call(f"is decided-{word}-{number}", kind)
        for text, kind in (("approved-undo", HELD), ("approved-put off", ONCE)):
            await people.call(text, kind)
        for number, (habit, kind) in enumerate(_EXECUTING):
            habits[f"executes-{number}"] = habit
            if kind.gated:
                await people.call(f"executes-{number}", kind)
        self.items = await people.asked()
        await self._approve("in doubt")
        await self._until(lambda: self._states("in doubt") == {"unknown"})
        await people.call("expires-0", BRIEF)
        self.items |= await people.asked()
        await self._approve("approved-undo")
        put_off = timestamp(datetime.fromtimestamp(people.wall.seconds() + PUT_OFF_SECONDS, UTC))
        await people.say("approve", self.items["approved-put off"], not_before=put_off)
        await self._approve("executes")
        self._open = [
            asyncio.create_task(people.call(f"executes-{number}", kind))
            for number, (_, kind) in enumerate(_EXECUTING)
            if not kind.gated
        ]
        await self._until(lambda: all(self._sent(f"executes-{number}") for number in range(len(_EXECUTING))))

    _open: list[asyncio.Task[None]] = field(factory=list)

    async def burst(self) -> None:
        """New calls, all at once."""
        self._told += 1
        calls = [self.people.call(f"is new-{self._told}-{number}", kind) for number, kind in enumerate(_NEW)]
        await asyncio.gather(*calls)

    async def decide(self) -> None:
        """Decisions on what had waited, or has expired, all at once, and the settlement of one that is in doubt."""
        words = [
            self.people.say(word, self.items[f"is decided-{word}-{number}"])
            for word, kinds in DECIDED.items()
            for number in range(len(kinds))
        ]
        late = [self.people.say("approve", item) for item in self.items.values() if self.people.expired(item)]
        await asyncio.gather(*late, *words, self.people.settle(self._calls("in doubt")[0]))

    async def over(self) -> None:
        """Wait for the answers that are outstanding."""
        await asyncio.gather(*self._open)

    async def _approve(self, under: str) -> None:
        wanted = [item for text, item in self.items.items() if text.startswith(under)]
        await asyncio.gather(*(self.people.say("approve", item) for item in wanted))

    def _calls(self, under: str) -> list[Call]:
        return [call for text, call in self.people.book.calls.items() if text.startswith(under)]

    def _states(self, under: str) -> set[str]:
        return {call.state for call in self._calls(under)}

    def _sent(self, text: str) -> bool:
        return any(its == text for its, _ in self.people.book.world.requests)

    async def _until(self, so: Callable[[], bool]) -> None:
        until = asyncio.get_running_loop().time() + _MOST_SECONDS
        while not so():
            assert asyncio.get_running_loop().time() < until, "what was to be under way does not come about"
            await self.people.look()
            await asyncio.sleep(0.02)
