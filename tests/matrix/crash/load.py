"""What agents and the operator do during one life: everything that they may, at once, until it ends."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from attrs import define

from .book import Book, Call
from .furnished import KINDS, UNDO_SECONDS
from .governing import Governing
from .model import PATHS, request
from .sites import GoneError, Said, Site, every_run
from .tooling import TOOL, ToolUse

_WORDS = ("approve",) * 7 + ("deny", "withdraw", "edit", "approve twice", "contradict", "approve and withdraw")
_CALLED = KINDS + tuple(kind for kind in KINDS if kind.granted) * 3
_PUT_OFF_SECONDS = 0.4
_TAKEN_ANEW = (409, 410, 503)  # another was faster, or it is paused
_AT_ONCE = {
    "approve twice": ("approve", "approve"),
    "contradict": ("approve", "deny"),
    "approve and withdraw": ("approve", "withdraw"),
}
_PAUSE_SECONDS = 0.02
_IN_BAND = 0.3
"""How many of the calls that have a key a model makes: there the key is what the daemon makes of the request."""


@define(eq=False)
class Load:
    """Who asks.

    :ivar operator: L{None} while the vault is locked: nobody can log in.
    :ivar governing: what the operator does beside deciding.
    :ivar tool: the agent's own tool, whose writes are decided too.
    """

    book: Book
    chance: random.Random
    agent: Site
    operator: Site | None
    governing: Governing
    tool: ToolUse
    new: int = 12

    async def run(self) -> None:
        """All of them, until the daemon is gone or each has done its part."""
        tasks = [self._agent(), self._agent(), self._agent(), self._waiter()]
        if self.operator is not None:
            tasks += [self._decider(self.operator), self._decider(self.operator)]
            tasks += [self.governing.run(self.operator, lambda: self.new > 0)]
        await asyncio.gather(*tasks)

    # agents --------------------------------------------------------------------------------------------------

    async def _agent(self) -> None:
        with suppress(GoneError):
            for call in self.book.again():
                if not call.is_with_model:  # an SDK repeats a request only once the one before has failed
                    await self._call(call)
            while self.new > 0:
                self.new -= 1
                await self._call(self._fresh())
                await asyncio.sleep(self.chance.random() * _PAUSE_SECONDS)

    def _fresh(self) -> Call:
        text = f"t{len(self.book.calls)}"
        key = None if self.chance.random() < 0.3 else f"key-{text}"
        path = self.chance.choice([*PATHS]) if key is not None and self.chance.random() < _IN_BAND else ""
        call = self.book.calls[text] = Call(text, self.chance.choice(_CALLED), key, path=path)
        return call

    async def _call_by_model(self, call: Call) -> None:
        """Have a model make the call, as an SDK does: what was not answered is asked again, and counted.

        What the client is told is words; whether there is a run, the agent's list tells.
        """
        tries, call.tries = call.tries, call.tries + 1
        body = request(call.path, call.kind.name.replace("-", "_"), call.text)
        call.is_with_model = True
        try:
            said = await self.agent.ask_model(call.path, body, tries)
        finally:
            call.is_with_model = False
        locked = self.operator is None or self.governing.locked
        assert said.well or locked, f"in-band, {call.kind.name}: {said}"
        for run_id, run in (await every_run(self.agent)).items():
            if run["arguments"].get("text") == call.text and run.get("parent_id") is None:
                call.run_id, call.promised = run_id, True

    async def _call(self, call: Call) -> None:
        if call.path:
            await self._call_by_model(call)
            return
        body: dict[str, Any] = {"args": {"text": call.text}}
        if call.key is not None:
            body["idempotency_key"] = call.key
        wait = self.chance.choice((0, 0, 1)) if call.kind.gated else None
        said = await self.agent.post(f"/v1/actions/{call.kind.name}/run", body, wait)
        told = said.body.get("run_id") or said.body.get("error", {}).get("run_id")
        if told is not None:
            call.run_id, call.promised = str(told), True
        else:
            locked = self.operator is None or self.governing.locked
            paused_or_full = (429, 503)  # or too much was denied
            assert said.status in ((404, 423, *paused_or_full) if locked else paused_or_full), (
                f"{call.kind.name}: {said}"
            )

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
            while not self.governing.locked and (self.new > 0 or self.chance.random() < 0.9):
                await self._settle_one(operator)
                items = (await operator.get("/v1/action-approvals?limit=50")).body.get("items", [])
                for item in self.chance.sample(items, min(3, len(items))):
                    if item["run"]["action"] == TOOL:
                        await self.tool.decide(operator, item)
                    else:
                        await self.decide(item, self.chance.choice(_WORDS))
                await asyncio.sleep(self.chance.random() * _PAUSE_SECONDS)

    async def decide(self, item: dict[str, Any], word: str) -> None:
        """Say one word, or two at once, to what an approval shows."""
        assert self.operator is not None
        run = item["run"]
        call = self.book.of(run["id"], run["arguments"]["text"], run["parent_id"])
        if call.done_again or run["parent_id"] is not None:
            word = word if word in ("deny", "withdraw") else "approve"
        words = _AT_ONCE.get(word, (word,))
        asked = [self._ask(call, each, self.operator, item) for each in words]
        answers = await asyncio.gather(*asked)
        decided = [said for said in answers if said.well]
        if word == "edit" and decided:
            await self._ask(call, "approve", self.operator, dict(decided[0].body))
        assert word == "approve and withdraw" or len(decided) <= 1, (
            f"two decisions of one approval were confirmed: {answers}"
        )

    async def _ask(self, call: Call, word: str, who: Site, item: dict[str, Any] | None = None) -> Said:
        call.asked.add(word)
        call.run_id = call.run_id or (item or {})["id"]
        path = f"/v1/action-approvals/{call.run_id}"
        if word == "withdraw":
            said = await who.post(f"{path}/withdraw", {})
        elif word == "edit":
            said = await who.post(f"{path}/edit", {"args": {"text": call.text, "note": f"to {call.text}"}})
        else:
            said = await who.post(f"{path}/decide", self._decision(call, word, item or {}))
        assert said.well or said.status in _TAKEN_ANEW or (self.governing.locked and said.status in (401, 423)), said
        if said.well:
            call.confirmed.add(word)
        return said

    def _decision(self, call: Call, word: str, item: dict[str, Any]) -> dict[str, Any]:
        """What is said: perhaps for later, or with a grant."""
        body: dict[str, Any] = {"approved": word == "approve", "digest": item["digest"]}
        if word == "approve":
            now, later = time.time(), call.kind.name == "put-off"
            call.approvals += 1
            call.begins = min(call.begins, now + (_PUT_OFF_SECONDS if later else UNDO_SECONDS))
            if later:
                body["not_before"] = _moment(now + _PUT_OFF_SECONDS)
            if call.kind.granted and not call.children and self.chance.random() < 0.5:
                body["grant"] = self._grant(str(item["id"]), now)
        return body

    def _grant(self, run_id: str, now: float) -> dict[str, Any]:
        uses = self.chance.randint(1, 4)
        self.book.words.uses.setdefault(run_id, []).append(uses)
        predicates = [{"argument": "text", "kind": "any"}]
        return {"uses": uses, "not_after": _moment(now + 3600.0), "session": True, "predicates": predicates}

    async def _settle_one(self, operator: Site) -> None:
        """Say of a run that is in doubt what is true."""
        unknown = [call for call in self.book.calls.values() if call.state == "unknown" and "settle" not in call.asked]
        unknown = [call for call in unknown if not call.done_again]
        if unknown and self.chance.random() < 0.5:
            await self.settle(operator, self.chance.choice(unknown))

    async def settle(self, operator: Site, call: Call) -> None:
        """As the service counted it."""
        call.asked.add("settle")
        happened = self.book.world.steps_of(call.text) == set(call.kind.steps)
        outcome = "happened" if happened else "did_not_happen"
        said = await operator.post(f"/v1/runs/{call.run_id}/resolve", {"outcome": outcome, "note": ""})
        assert said.well or said.status == 409 or (self.governing.locked and said.status in (401, 423)), said
        if said.well:
            call.confirmed.add("settle")


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
