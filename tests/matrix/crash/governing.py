"""What the operator does beside deciding: pauses, resumes, limits, ends grants, has things done again, locks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from attrs import define, field

from .book import LOST, Book, Call
from .sites import GoneError, Said, Site
from .words import LIMIT

_REST_SECONDS = 0.3
_PAUSED_SECONDS = 0.05
_LOCKED_OF_ALL = 0.04
Act = Callable[[Site], Awaitable[None]]


@define(eq=False)
class Governing:
    """One who does it, as long as it may be.

    :ivar locked: the vault is asked to be locked: nobody may do anything more in this life.
    """

    book: Book
    chance: random.Random
    broke: Callable[[str, str], None]
    locked: bool = field(default=False, init=False)

    async def run(self, operator: Site, busy: Callable[[], bool]) -> None:
        """Act now and then while others are busy."""
        with suppress(GoneError):
            await self._take_up(operator)
            while busy() and not self.locked:
                await asyncio.sleep(self.chance.random() * _REST_SECONDS)
                if self.chance.random() < _LOCKED_OF_ALL:
                    await self._lock(operator)
                else:
                    await self.chance.choice((self._pause, self._limit, self._revoke, self._again))(operator)

    async def _take_up(self, operator: Site) -> None:
        """What was paused in an earlier life is paused now, until somebody resumes it."""
        paused = (await operator.get("/v1/status")).body["paused"]
        if self.book.words.is_paused and not paused:
            self.broke(LOST, "it was paused, and nobody resumed it")
        if paused:
            await asyncio.sleep(self.chance.random() * _PAUSED_SECONDS)
            await self.resume(operator)

    async def _pause(self, operator: Site) -> None:
        said = await operator.post("/v1/pause", {"reason": "look at this"})
        if self._went(said):
            self.book.words.paused()
            await asyncio.sleep(self.chance.random() * _PAUSED_SECONDS)
            if self.chance.random() < 0.9:
                await self.resume(operator)

    async def resume(self, operator: Site) -> None:
        """Let things begin again: what had been approved and had not begun must be approved anew."""
        said_before = {run_id: call.approvals for run_id, call in self.book.by_run().items()}
        for call in self.book.all():  # also those of which nobody was told yet as which run they are kept
            call.asked.add("resume")
        self.book.words.resuming()
        self.book.resuming = True
        try:
            said = await operator.post("/v1/resume", {})
        finally:
            self.book.resuming = False
        if not self._went(said):
            return
        anew = {run["id"] for run in said.body["asked_anew"]}
        for run_id, call in self.book.by_run().items():
            if run_id in anew and call.approvals == said_before.get(run_id):
                call.asked.discard("approve")
                call.confirmed.discard("approve")

    async def _limit(self, operator: Site) -> None:
        """A little more than before."""
        words = self.book.words
        words.most += 1
        self._went(await operator.post("/v1/caps", {"action": LIMIT, "per_hour": words.most}))

    async def _revoke(self, operator: Site) -> None:
        said = await operator.get("/v1/grants")
        if self._went(said):
            live = [grant["id"] for grant in said.body["items"] if grant["state"] == "live"]
            if live and self.chance.random() < 0.3:
                self._went(await operator.delete(f"/v1/grants/{self.chance.choice(live)}"))

    async def _again(self, operator: Site) -> None:
        doubtful = [call for call in self.book.calls.values() if call.state == "unknown" and not call.children]
        if doubtful:
            await self._do_again(operator, self.chance.choice(doubtful))

    async def _do_again(self, operator: Site, call: Call) -> None:
        call.done_again = True
        said = await operator.post(f"/v1/runs/{call.run_id}/resolve", {"outcome": "run_again", "note": ""})
        if self._went(said):
            self.book.child(call, str(said.body["id"])).promised = True

    async def _lock(self, operator: Site) -> None:
        self.locked = True
        if self._went(await operator.post("/v1/vault/lock", {})):
            self.book.words.locked()

    def _went(self, said: Said) -> bool:
        """Whether it was done; it may be refused where another was faster, or the vault is being locked."""
        refused = said.status in (409, 410) or (self.locked and said.status in (401, 423))
        assert said.well or refused, said
        return said.well
