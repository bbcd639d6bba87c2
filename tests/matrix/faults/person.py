"""An agent and the operator, who remember what they were told, and whether a refusal was a clear one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from time import monotonic
from typing import Any

from attrs import define, field

from aileron.home.discovery import Discovery
from aileron.vault.keys import DataKey
from tests.matrix.crash.book import UNASKED, Book, Call
from tests.matrix.crash.furnished import Kind
from tests.matrix.crash.sites import GoneError, Said, Site, every_run, operator
from tests.matrix.crash.wall import Wall

UNCLEAR, KEPT = "unclear", "refused, kept"
_TAKEN_BACK = {
    "approve": ("approved", "awaiting_vault", "awaiting_credential", "executing", "completed", "failed", "unknown"),
    "deny": ("denied",),
    "withdraw": ("cancelled",),
    "settle": ("completed", "failed"),
}
_LATE = (409, 410)
"""Of a decision that came too late."""

Broke = Callable[[str, str, str], None]


@define(eq=False)
class People:
    """Both of them.

    :param broke: told of a broken promise: of which call's text, which, and how.
    :ivar refusals: the statuses that are clear answers now.
    :ivar refused: what was refused so, of each text.
    :ivar old: those whose yes does not count now.
    :ivar approved: when a yes to each text was last said, by the clock that nobody sets.
    """

    book: Book
    wall: Wall
    key: DataKey
    agent: Site
    broke: Broke
    found: Discovery
    who: Site | None = None
    refusals: frozenset[int] = frozenset()
    refused: list[tuple[str, str]] = field(factory=list)
    old: set[str] = field(factory=set)
    approved: dict[str, float] = field(factory=dict)
    put_off: dict[str, float] = field(factory=dict)

    def meet(self, found: Discovery, key: DataKey) -> None:
        """A new life."""
        self.found, self.key, self.who = found, key, None
        self.agent = Site(found.url, self.agent.token)

    async def call(self, text: str, kind: Kind) -> None:
        """Call an action, whatever comes of it."""
        call = self.book.calls[text] = Call(text, kind, f"key-{text.replace(' ', '-')}")
        await self.call_again(call)

    async def call_again(self, call: Call) -> None:
        """Call it once more, under its key."""
        body = {"args": {"text": call.text}, "idempotency_key": call.key}
        wait = 0 if call.kind.gated else None
        try:
            said = await self.agent.post(f"/v1/actions/{call.kind.name}/run", body, wait)
        except GoneError:
            return
        except AssertionError as error:
            self.broke(call.text, UNCLEAR, f"{call.text}: {error}")
            return
        told = said.body.get("run_id") or said.body.get("error", {}).get("run_id")
        if told is None:
            self._refused(call.text, "call", said)
        else:
            call.run_id, call.promised = str(told), True

    async def asked(self) -> dict[str, Any]:
        """What waits for the operator, by text; nothing, if that cannot be told now."""
        said = await self._operate("GET", "/v1/action-approvals?limit=200")
        if not said.well:
            self._clear("the approvals", said)
            return {}
        return {item["run"]["arguments"]["text"]: item for item in said.body["items"]}

    async def say(self, word: str, item: Mapping[str, Any], not_before: str | None = None) -> bool:
        """Say one word to what an approval shows; whether it was confirmed."""
        call = self.book.calls[item["run"]["arguments"]["text"]]
        began, path = monotonic(), f"/v1/action-approvals/{item['id']}"
        new, expired = word not in call.asked, self.expired(item)
        call.asked.add(word)
        self.old.discard(call.text)
        with suppress(GoneError):
            said = await self._speak(word, path, item, not_before)
            if said.well:
                call.confirmed.add(word)
                if word == "approve":
                    self.approved[call.text] = began
                    self.put_off[call.text] = 0.0 if not_before is None else _moment(not_before)
                if expired:
                    self.broke(call.text, UNASKED, f"{word}: confirmed, and it had expired")
                return True
            if new:
                call.asked.discard(word)
            self._refused(call.text, word, said)
        return False

    def expired(self, item: Mapping[str, Any]) -> bool:
        """Whether the time of what an approval shows is over, by the clock as it stands."""
        return _moment(item["expires_at"]) <= self.wall.seconds()

    async def _speak(self, word: str, path: str, item: Mapping[str, Any], not_before: str | None) -> Said:
        if word == "withdraw":
            return await self.agent.post(f"{path}/withdraw", {})
        if word == "edit":
            text = item["run"]["arguments"]["text"]
            return await self._operate("POST", f"{path}/edit", {"args": {"text": text, "note": f"to {text}"}})
        body = {"approved": word == "approve", "digest": item["digest"]}
        return await self._operate("POST", f"{path}/decide", body | ({"not_before": not_before} if not_before else {}))

    async def settle(self, call: Call) -> None:
        """Say of a run that is in doubt what is true."""
        new = "settle" not in call.asked
        call.asked.add("settle")
        happened = self.book.world.steps_of(call.text) == set(call.kind.steps)
        outcome = {"outcome": "happened" if happened else "did_not_happen", "note": ""}
        with suppress(GoneError):
            said = await self._operate("POST", f"/v1/runs/{call.run_id}/resolve", outcome)
            if said.well:
                call.confirmed.add("settle")
                return
            if new:
                call.asked.discard("settle")
            self._refused(call.text, "settle", said)

    async def look(self) -> None:
        """See in what states the runs are, as far as that can be told now."""
        with suppress(GoneError, KeyError):
            for run in (await every_run(self.agent)).values():
                self.book.calls[run["arguments"]["text"]].state = run["state"]

    async def _operate(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Said:
        """As the operator, who logs in anew where that has ended."""
        said = None
        for _ in range(2):
            if self.who is None:
                try:
                    self.who = await operator(self.found, self.key, self.wall.seconds)
                except KeyError:  # it said no
                    return said or await Site(self.found.operator_url, "").get("/v1/action-approvals")
            said = await (self.who.get(path) if method == "GET" else self.who.post(path, body))
            if said.status != 401:
                return said
            self.who = None
        assert said is not None
        return said

    def _refused(self, text: str, word: str, said: Said) -> None:
        self.refused.append((text, word))
        if word == "call" or said.status not in _LATE:
            self._clear(text, said)

    def _clear(self, text: str, said: Said) -> None:
        error = said.body.get("error", {})
        clear = said.status in self.refusals and error.get("class") not in (None, "internal_error")
        if not (clear and error.get("message")):
            self.broke(text, UNCLEAR, f"{text} was answered {said.status}: {dict(said.body)}")

    def kept(self, texts_of_runs: set[str]) -> Iterator[tuple[str, str]]:
        """What was refused, and is there all the same: of which text, and what."""
        for text, word in self.refused:
            call = self.book.calls[text]
            if word == "call" and text in texts_of_runs and not call.promised:
                yield text, "the call was refused, and it was kept"
            elif call.state in _TAKEN_BACK.get(word, ()) and word not in call.asked:
                yield text, f"{word} was refused, and it is {call.state}"


def _moment(told: str | None) -> float:
    return float("inf") if told is None else datetime.fromisoformat(told).timestamp()
