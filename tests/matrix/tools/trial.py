"""One write of a tool, the lives of the daemon in which it is asked for and repeated, and what must hold afterwards."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path

from attrs import define, field, frozen

from aileron.home.discovery import Discovery
from aileron.model.runs import Run, RunState
from aileron.vault.keys import DataKey
from tests.matrix.crash.furnished import trust_all
from tests.matrix.crash.lives import Life, Nursery
from tests.matrix.crash.nursery import Birth
from tests.matrix.crash.record import read, unsound
from tests.matrix.crash.sites import GoneError, Site, operator
from tests.matrix.crash.trial import spelled
from tests.matrix.crash.world import World

from .home import bind, claims, furnish, unsound_claims
from .tool import Got, SessionOver, ToolSession, enter

_MOST_SECONDS = 60.0
_LOOK_SECONDS = 0.03
RESTARTED = "launch the agent again"
_WAITING = (RunState.PENDING, RunState.APPROVED)
UNASKED, TWICE, ASKED_AGAIN, NOT_GIVEN, NOT_SAID, UNSOUND, STUCK = (
    "sent without approval",
    "sent twice",
    "asked for again",
    "a recorded answer was not given",
    "an unknown outcome was not said",
    "a record is broken",
    "it did not end",
)
PROMISES = (UNASKED, TWICE, ASKED_AGAIN, NOT_GIVEN, NOT_SAID, UNSOUND, STUCK)


@frozen
class End:
    """The end of one life.

    :ivar point: the daemon ends by itself there; empty: the service ends it, or nobody does.
    :ivar habit: of the service: C{kills after} it did what it was told, or C{kills before}.
    :ivar waits: whether the operator decides only once a tool was told that its write waits.
    :ivar delay: the seconds from the point to the end.
    """

    point: str = ""
    habit: str = ""
    waits: bool = False
    delay: float = -1.0

    def __str__(self) -> str:
        when = "" if self.delay < 0 else "shortly after: "
        return f"{when}{self.point or self.habit}{', after it was told to wait' if self.waits else ''}"


@frozen
class Before:
    """What the database has of a write between two lives.

    :ivar waiting: the run that was stored and not sent yet, or None.
    :ivar owed: the run whose answer is recorded and was not given to any tool, or None.
    :ivar doubtful: the run that was being sent, or None.
    """

    runs: frozenset[str]
    waiting: Run | None
    owed: Run | None
    doubtful: Run | None
    requests: int


@define(eq=False)
class ToolTrial:
    """A home under trial.

    :ivar faults: each broken promise, with where it broke and how.
    :ivar asked: how often each write was approved, from the moment before it was said.
    :ivar not_reached: ends that did not come, since the life was not led there.
    """

    root: Path
    nursery: Nursery
    world: World
    faults: list[tuple[str, str, str]] = field(factory=list)
    asked: Counter[str] = field(factory=Counter)
    answers: Counter[str] = field(factory=Counter)
    not_reached: list[str] = field(factory=list)
    kills: int = 0
    key: DataKey = field(init=False)
    life: Life | None = field(init=False, default=None)
    _where: str = field(init=False, default="")

    def __attrs_post_init__(self) -> None:
        self.world.kill, self.world.heard, self.world.calm = self._kill, self._heard, True

    def _kill(self) -> None:
        if self.life is not None:
            self.life.end()

    def _heard(self, text: str) -> None:
        """Judge an effect at the moment when it happens."""
        count = self.world.effects[(text, "only")]
        if not self.asked[text]:
            self._broke(UNASKED, text)
        elif count > self.asked[text]:
            self._broke(TWICE, f"{text}: {count} times by {self.asked[text]} approvals")

    def _broke(self, promise: str, how: str) -> None:
        self.faults.append((self._where, promise, how))

    async def settle_in(self) -> None:
        """Lead the first lives: what lies in the home is trusted, and the credential bound."""
        self.key = furnish(self.root, self.world.port)
        for step in (trust_all, bind):  # the configuration holds from the next start on
            found = await self._begin(End())
            await step(await operator(found, self.key))
            await self._finish(signal.SIGTERM)

    async def run(self, text: str, ends: tuple[End, ...]) -> None:
        """Have a tool ask for a write, end so many lives, and have a new session repeat it until it has an answer."""
        self._where = "; then ".join(map(str, ends))
        session: ToolSession | None = None
        before: Before | None = None
        got: Got | None = None
        for end in (*ends, End()):
            found = await self._begin(end)
            if end.habit:
                self.world.habits[text] = end.habit
            got = None
            with suppress(GoneError):  # what was approved before may begin and end the life at once
                if session is not None:
                    await self._leave(session.at(found))
                    session = None
                session = await enter(found, self.world.port)
                got = await self._lead(session, found, text, end)
            before = await self._judge(text, end, before, got)
        if got is None:
            self._broke(STUCK, f"{text}: the last repetition got no answer")
        else:
            self.answers[got.code or str(got.status)] += 1
        for what in (*unsound(self.root), *unsound_claims(self.root)):
            self._broke(UNSOUND, what)

    async def _judge(self, text: str, end: End, before: Before | None, got: Got | None) -> Before:
        """End a life, judge what the tool got in it, and return what the database has afterwards."""
        last = end == End()
        if got is not None and not last:
            await asyncio.sleep(0.2)  # what follows the answer
        await self._finish(signal.SIGTERM if last else signal.SIGKILL, end)
        self.world.habits.pop(text, None)
        if before is not None and got is not None:
            self._compare(text, before, got)
        return self._look(text)

    # lives -------------------------------------------------------------------------------------------------------

    async def _begin(self, end: End) -> Discovery:
        birth = Birth(str(self.root), spelled(self.key), end.point, 1, end.delay, tools=True)
        self.life = await self.nursery.begin(birth)
        asyncio.get_running_loop().call_later(_MOST_SECONDS, self.life.end)
        found = await self.life.found()
        assert found is not None, f"the daemon does not start: {self._where}"
        return found

    async def _finish(self, how: int, end: End | None = None) -> None:
        """End the life. If it should have ended by itself and did not, note that."""
        assert self.life is not None
        alive = not self.life.death.done()
        self.life.end(how)
        death = await self.life.death
        by_itself = end is not None and end.point != "" and end.delay < 0
        if end is not None and by_itself and end.point not in death.points:
            self.not_reached.append(f"{self._where}: {end}")
        self.kills += not alive or how == signal.SIGKILL

    async def _leave(self, session: ToolSession) -> None:
        """End the session of the life before, whose tools are refused from then on."""
        try:
            refused = await session.is_refused()
        except SessionOver:  # a life ended it and could not say so
            return
        if RESTARTED not in refused:
            self._broke(NOT_SAID, f"after a restart the session's tools read: {refused}")
        await session.end()

    async def _lead(self, session: ToolSession, found: Discovery, text: str, end: End) -> Got | None:
        """Have the tool ask until it has an answer, while the operator decides, or until the daemon is gone."""
        told = asyncio.Event()
        if not end.waits:
            told.set()
        deciding = asyncio.create_task(self._decide(found, told))
        try:
            got = await session.send(text)
            while got.waits:
                told.set()
                got = await session.send(text)
            return got
        except GoneError:
            return None
        finally:
            deciding.cancel()
            with suppress(asyncio.CancelledError, GoneError):
                await deciding

    async def _decide(self, found: Discovery, told: asyncio.Event) -> None:
        """Approve whatever waits."""
        await told.wait()
        who: Site = await operator(found, self.key)
        while True:
            for item in (await who.get("/v1/action-approvals?limit=100")).body["items"]:
                self.asked[_text_of(item["run"]["arguments"]["body"])] += 1
                await who.post(
                    f"/v1/action-approvals/{item['id']}/decide", {"approved": True, "digest": item["digest"]}
                )
            await asyncio.sleep(_LOOK_SECONDS)

    # judging -----------------------------------------------------------------------------------------------------

    def _look(self, text: str) -> Before:
        """Return what the database has of a write, and judge what was sent against it."""
        runs, events = read(self.root)
        mine = {run.id: run for run in runs if _text_of(str(run.arguments["body"])) == text}
        begun = sum(event.type == "execution.started" and event.run_id in mine for event in events)
        approved = sum(event.type == "approval.approved" and event.run_id in mine for event in events)
        requests = self.world.requests[(text, "only")]
        if not requests <= begun <= approved:
            self._broke(TWICE, f"{text}: {requests} requests, {begun} begun, {approved} approved")
        noted = claims(self.root)
        recorded = {event.run_id for event in events if event.type == "own_tools.answered"}
        for run_id in mine.keys() & {each for each, given in noted.items() if given} ^ recorded & mine.keys():
            self._broke(UNSOUND, f"{text}: the answer of {run_id} was noted as given, or recorded, and not both")
        for run_id in mine.keys() - noted.keys():
            self._broke(UNSOUND, f"{text}: the run {run_id} has no claim")
        waiting = [each for each in mine.values() if each.state in _WAITING]
        owed = [each for each in mine.values() if each.state is RunState.COMPLETED and noted.get(each.id) is False]
        doubtful = [
            each
            for each in mine.values()
            if each.state in (RunState.EXECUTING, RunState.UNKNOWN) and noted.get(each.id) is False
        ]
        return Before(
            frozenset(mine), next(iter(waiting), None), next(iter(owed), None), next(iter(doubtful), None), requests
        )

    def _compare(self, text: str, before: Before, got: Got) -> None:
        """Judge the answer to a repetition by what the database had before."""
        now = self.world.requests[(text, "only")]
        if before.owed is not None and (got.status, got.run, now) != (200, before.owed.id, before.requests):
            self._broke(NOT_GIVEN, f"{text}: {before.owed.id} was recorded, and the tool got {got}")
        if before.doubtful is not None and (got.code, now) != ("outcome_unknown", before.requests):
            self._broke(NOT_SAID, f"{text}: {before.doubtful.id} was being sent, and the tool got {got}")
        if before.waiting is not None and got.run != before.waiting.id:
            self._broke(ASKED_AGAIN, f"{text}: {before.waiting.id} waited, and the tool got {got}")
        if before.owed is None and before.doubtful is None and got.status != 200:
            self._broke(NOT_GIVEN, f"{text}: nothing was in doubt, and the tool got {got}")


def _text_of(body: str) -> str:
    return body.partition('"text": "')[2].rstrip('"}')
