"""What agents and the operator do during one life: everything that they may, at once, until it ends."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Any

from attrs import define

from .book import Book, Call
from .furnished import KINDS
from .sites import GoneError, Said, Site

_WORDS = ("approve",) * 7 + ("deny", "withdraw", "edit", "approve twice", "contradict")
_PAUSE_SECONDS = 0.02


@define(eq=False)
class Load:
    """Who asks.

    :ivar operator: L{None} while the vault is locked: nobody can log in.
    """

    book: Book
    chance: random.Random
    agent: Site
    operator: Site | None
    new: int = 12

    async def run(self) -> None:
        """All of them, until the daemon is gone or each has done its part."""
        tasks = [self._agent(), self._agent(), self._agent(), self._waiter()]
        if self.operator is not None:
            tasks += [self._decider(self.operator), self._decider(self.operator)]
        await asyncio.gather(*tasks)

    # agents --------------------------------------------------------------------------------------------------

    async def _agent(self) -> None:
        with suppress(GoneError):
            for call in self.book.again():
                await self._call(call)
            while self.new > 0:
                self.new -= 1
                await self._call(self._fresh())
                await asyncio.sleep(self.chance.random() * _PAUSE_SECONDS)

    def _fresh(self) -> Call:
        text = f"t{len(self.book.calls)}"
        key = None if self.chance.random() < 0.3 else f"key-{text}"
        call = self.book.calls[text] = Call(text, self.chance.choice(KINDS), key)
        return call

    async def _call(self, call: Call) -> None:
        body: dict[str, Any] = {"args": {"text": call.text}}
        if call.key is not None:
            body["idempotency_key"] = call.key
        wait = self.chance.choice((0, 0, 1)) if call.kind.gated else None
        said = await self.agent.post(f"/v1/actions/{call.kind.name}/run", body, wait)
        told = said.body.get("run_id") or said.body.get("error", {}).get("run_id")
        if told is not None:
            call.run_id, call.promised = str(told), True
        elif said.status not in ((404, 423) if self.operator is None else (429,)):  # too much was denied
            raise AssertionError(f"{call.kind.name}: {said}")

    async def _waiter(self) -> None:
        """Waits for runs, and now and then takes one back."""
        with suppress(GoneError):
            for _ in range(6):
                known = [call for call in self.book.calls.values() if call.run_id and not call.end]
                if known:
                    call = self.chance.choice(known)
                    await self.agent.get(f"/v1/action-approvals/{call.run_id}/result?wait=1")
                    if self.chance.random() < 0.2:
                        await self._ask(call, "withdraw", self.agent)
                await asyncio.sleep(_PAUSE_SECONDS)

    # the operator --------------------------------------------------------------------------------------------

    async def _decider(self, operator: Site) -> None:
        with suppress(GoneError):
            while self.new > 0 or self.chance.random() < 0.9:
                await self._settle_one(operator)
                items = (await operator.get("/v1/action-approvals?limit=50")).body["items"]
                for item in self.chance.sample(items, min(3, len(items))):
                    await self.decide(item, self.chance.choice(_WORDS))
                await asyncio.sleep(self.chance.random() * _PAUSE_SECONDS)

    async def decide(self, item: dict[str, Any], word: str) -> None:
        """Say one word, or two at once, to what an approval shows."""
        assert self.operator is not None
        call = self.book.calls[item["run"]["arguments"]["text"]]
        words = {"approve twice": ("approve", "approve"), "contradict": ("approve", "deny")}.get(word, (word,))
        asked = [self._ask(call, each, self.operator, item) for each in words]
        answers = await asyncio.gather(*asked)
        decided = [said for said in answers if said.well]
        if word == "edit" and decided:
            await self._ask(call, "approve", self.operator, dict(decided[0].body))
        assert len(decided) <= 1, f"two decisions of one approval were confirmed: {answers}"

    async def _ask(self, call: Call, word: str, who: Site, item: dict[str, Any] | None = None) -> Said:
        call.asked.add(word)
        path = f"/v1/action-approvals/{call.run_id or (item or {})['id']}"
        if word == "withdraw":
            said = await who.post(f"{path}/withdraw", {})
        elif word == "edit":
            said = await who.post(f"{path}/edit", {"args": {"text": call.text, "note": f"to {call.text}"}})
        else:
            body = {"approved": word == "approve", "digest": (item or {})["digest"]}
            said = await who.post(f"{path}/decide", body)
        assert said.well or said.status in (409, 410), said
        if said.well:
            call.confirmed.add(word)
        return said

    async def _settle_one(self, operator: Site) -> None:
        """Say of a run that is in doubt what is true."""
        unknown = [call for call in self.book.calls.values() if call.state == "unknown" and "settle" not in call.asked]
        if unknown and self.chance.random() < 0.5:
            await self.settle(operator, self.chance.choice(unknown))

    async def settle(self, operator: Site, call: Call) -> None:
        """As the service counted it."""
        call.asked.add("settle")
        happened = self.book.world.steps_of(call.text) == set(call.kind.steps)
        outcome = "happened" if happened else "did_not_happen"
        said = await operator.post(f"/v1/runs/{call.run_id}/resolve", {"outcome": outcome, "note": ""})
        assert said.well or said.status == 409, said
        if said.well:
            call.confirmed.add("settle")
