"""Writes of an agent's own tool amid all that others ask for: in each life a new session repeats what has no answer."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from aileron.features.own_tools.action_file import name_action
from aileron.home.discovery import Discovery
from aileron.home.paths import Home
from aileron.model.runs import Run, RunState
from tests.matrix.tools.home import bind, unsound_claims, write_service
from tests.matrix.tools.tool import SERVICE, Got, ProxyRefused, SessionOver, ToolSession, enter

from .book import DOUBLED, LOST, UNASKED, WRONG, Broken
from .sites import GoneError, Site
from .world import World

TOOL = name_action(SERVICE)
"""The action of these writes."""

NEW = 3
"""Writes of one life, beside those that are repeated."""

_CONNECTOR = "tools"
_PAUSED = "Aileron is paused"
_HOLD_SECONDS = 1
_MOST_REPEATED = 4
_WORDS = ("approve",) * 5 + ("deny",)
_TAKEN = (401, 409, 410, 423, 503)  # another was faster, it is paused, or the vault is being locked
_AGAIN = frozenset(("", "pending_approval", "in_progress", "paused", "vault_locked", "limit_exceeded"))
_BEGUN = (RunState.EXECUTING, RunState.COMPLETED, RunState.FAILED, RunState.UNKNOWN)


@define(eq=False)
class ToolUse:
    """A tool of one home, over all lives of its daemon.

    :ivar world: its service.
    :ivar broke: told of each promise that is broken.
    :ivar owed: the texts of writes that have no answer yet.
    :ivar told: the texts of runs that a tool was told of, by their ids.
    :ivar approved: the runs that a yes was said to, answered or not, by the texts of their writes.
    :ivar denied: the runs whose denial was confirmed.
    """

    chance: random.Random
    kill: Callable[[], None]
    broke: Callable[[str, str], None]
    world: World = field(init=False)
    owed: list[str] = field(factory=list, init=False)
    told: dict[str, str] = field(factory=dict, init=False)
    approved: defaultdict[str, set[str]] = field(factory=lambda: defaultdict(set), init=False)
    denied: set[str] = field(factory=set, init=False)
    answered: int = field(default=0, init=False)
    writes: int = field(default=0, init=False)
    hold_seconds: int = field(default=_HOLD_SECONDS, init=False)
    _session: ToolSession | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.world = World(self.chance, self.kill)
        self.world.heard = self._heard

    async def furnish(self, root: Path) -> None:
        """Listen, and add the service to a home."""
        await self.world.open()
        write_service(Home(root), self.world.port, hold_seconds=self.hold_seconds, name=_CONNECTOR)

    async def settle_in(self, operator: Site) -> None:
        """Bind the service's credential."""
        await bind(operator, _CONNECTOR)

    async def run(self, found: Discovery) -> None:
        """Open a session in a new life, and have two commands at once send what is new or has no answer."""
        repeated = self.chance.sample(self.owed, min(_MOST_REPEATED, len(self.owed)))
        texts = [*repeated, *(f"w{self.writes + number}" for number in range(NEW))]
        self.writes += NEW
        self.owed += texts[len(repeated) :]
        self.chance.shuffle(texts)
        with suppress(GoneError):
            await self._leave(found)
            self._session = await enter(found, self.world.port)
            await asyncio.gather(self._send(texts[::2]), self._send(texts[1::2]))

    async def _leave(self, found: Discovery) -> None:
        before, self._session = self._session, None
        if before is not None:
            with suppress(SessionOver):
                await before.at(found).end()

    async def _send(self, texts: Iterable[str]) -> None:
        session = self._session
        assert session is not None
        for text in texts:
            try:
                self._note(text, await session.send(text))
            except GoneError:
                return
            except ProxyRefused as refused:
                if _PAUSED not in str(refused):
                    raise

    def _note(self, text: str, got: Got) -> None:
        if got.run:
            self.told[got.run] = text
        if got.body.get("done") and not self.world.steps_of(text):
            self.broke(WRONG, f"{text}: its tool was told that it happened")
        if got.code not in _AGAIN or (got.run and not got.code):
            self.settle(text)

    def settle(self, text: str) -> None:
        """A write has its answer."""
        self.owed.remove(text)
        self.answered += 1

    async def decide(self, operator: Site, item: Mapping[str, Any], word: str = "") -> None:
        """Say yes or no to an approval of a tool's write."""
        word = word or self.chance.choice(_WORDS)
        run_id, text = str(item["run"]["id"]), _text_of(item["run"]["arguments"])
        if word == "approve":
            self.approved[text].add(run_id)
        body = {"approved": word == "approve", "digest": item["digest"]}
        said = await operator.post(f"/v1/action-approvals/{run_id}/decide", body)
        assert said.well or said.status in _TAKEN, said
        if said.well and word == "deny":
            self.denied.add(run_id)

    def _heard(self, text: str) -> None:
        count, approved = self.world.effects[(text, "only")], len(self.approved[text])
        if not approved:
            self.broke(UNASKED, f"{text} of a tool: it happened, and nobody had approved it")
        elif count > approved:
            self.broke(DOUBLED, f"{text} of a tool: it happened {count} times by {approved} approvals")

    def hold(self, root: Path, runs: Iterable[Run]) -> Iterator[Broken]:
        """Yield what does not hold of the runs of a home that nobody serves."""
        yield from ((WRONG, each) for each in unsound_claims(root))
        yield from self.hold_runs(runs)

    def hold_runs(self, runs: Iterable[Run]) -> Iterator[Broken]:
        """Yield what does not hold of runs that nobody serves."""
        own = {run.id: run for run in runs if run.action == TOOL}
        yield from ((LOST, f"{text} of a tool: the run is gone") for run, text in self.told.items() if run not in own)
        done, doubtful = Counter[str](), Counter[str]()
        for run in own.values():
            text = _text_of(run.arguments)
            done[text] += run.state is RunState.COMPLETED
            doubtful[text] += run.state is RunState.UNKNOWN
            if run.state in _BEGUN and run.id not in self.approved[text]:
                yield UNASKED, f"{text} of a tool is {run.state.value}, and nobody had approved it"
            if run.id in self.denied and run.state is not RunState.DENIED:
                yield LOST, f"{text} of a tool is {run.state.value}: it was denied"
        for text in {_text_of(run.arguments) for run in own.values()}:
            happened = self.world.effects[(text, "only")]
            if not done[text] <= happened <= done[text] + doubtful[text]:
                promise = LOST if happened < done[text] else WRONG
                yield promise, f"{text} of a tool: {done[text]} done, {doubtful[text]} in doubt, {happened} happened"


def _text_of(arguments: Mapping[str, Any]) -> str:
    return str(json.loads(arguments["body"])["text"])
