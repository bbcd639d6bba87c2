"""Agents, their tools and the operator at several daemons: everybody may be at any of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from attrs import Factory, define, field

from aileron.home.discovery import Discovery
from aileron.model.audit import Event
from tests.matrix.crash.book import LOST, UNASKED, Broken, Call
from tests.matrix.crash.governing import Governing
from tests.matrix.crash.load import Load
from tests.matrix.crash.model import request
from tests.matrix.crash.sites import GoneError, Said, Site, every_run
from tests.matrix.crash.tooling import ToolUse
from tests.matrix.tools.tool import Got, ProxyRefused, SessionOver, ToolSession, enter

_REST_SECONDS, _PAUSED_SECONDS = 2.0, 0.3
_WRITES = 2
_AWAY = (409, 410, 429, 503)  # another was faster, too much waits or was denied, or the database is away
_CLOSED = ("Aileron is paused", "the audit log cannot be written", " 503 ")
_UNAVAILABLE = frozenset({"store_unavailable"})


def allow(error: AssertionError, statuses: Collection[int]) -> None:
    """Raise C{error} again unless it is about an answer with one of these statuses."""
    said = error.args[0] if error.args else None
    if not (isinstance(said, Said) and said.status in statuses):
        raise error


def is_about_time(error: AssertionError) -> bool:
    """Return whether C{error} is about something that was made at another time by the daemon's clock.

    That is a signature of a decision, or the ticket of a connection.
    """
    said = error.args[0] if error.args else None
    if isinstance(error, ProxyRefused):
        return "Aileron: the session has ended" in str(error)
    if not isinstance(said, Said) or said.status != 403:
        return False
    return "signature" in said.body.get("error", {}).get("details", {})


@define(eq=False)
class Deciding:
    """What is being decided now, at any daemon."""

    runs: list[str] = field(factory=list)


class Quiet:
    """Stands in a load for what the operator does beside deciding, which one person does for all daemons."""

    locked = False

    async def run(self, operator: Site, more: Any) -> None:
        """Do nothing."""


@define(eq=False)
class DaemonLoad(Load):
    """Agents and the operator at one of the daemons."""

    deciding: Deciding = field(factory=Deciding)

    async def _call_by_model(self, call: Call) -> None:
        tries, call.tries = call.tries, call.tries + 1
        body = request(call.path, call.kind.name.replace("-", "_"), call.text)
        call.is_with_model = True
        try:
            said = await self.agent.ask_model(call.path, body, tries)
        finally:
            call.is_with_model = False
        assert said.well or said.status in _AWAY, f"in-band, {call.kind.name}: {said}"
        for run_id, run in (await every_run(self.agent)).items():
            if run["arguments"].get("text") == call.text and run.get("parent_id") is None:
                call.run_id, call.promised = run_id, True

    async def _ask(self, call: Call, word: str, who: Site, item: dict[str, Any] | None = None) -> Said:
        run_id = str(call.run_id or (item or {})["id"])
        self.deciding.runs.append(run_id)
        try:
            return await self._ask_here(call, word, who, item)
        finally:
            self.deciding.runs.remove(run_id)

    async def _ask_here(self, call: Call, word: str, who: Site, item: dict[str, Any] | None) -> Said:
        try:
            return await super()._ask(call, word, who, item)
        except AssertionError as error:
            allow(error, (401,))
            raise GoneError from None  # log in again


@define(eq=False)
class DaemonGoverning(Governing):
    """The one person who pauses, resumes, limits and ends grants, each time at any of the daemons.

    :param sites: returns the operator's logins at the daemons that are there.
    :ivar resumed: when it was asked that things begin again.
    """

    sites: Callable[[], Sequence[Site]] = Factory(lambda: lambda: ())
    deciding: Deciding = field(factory=Deciding)
    resumed: list[float] = field(factory=list, init=False)

    async def run_at_any(self) -> None:
        """Act now and then, until cancelled."""
        while True:
            await asyncio.sleep(self.chance.random() * _REST_SECONDS)
            sites = self.sites()
            if not sites:
                continue
            act = self.chance.choice((self._pause_all, self._pause_all, self._limit, self._revoke, self._again))
            try:
                await act(self.chance.choice(sites))
            except (GoneError, IndexError, KeyError):
                continue
            except AssertionError as error:
                try:
                    allow(error, (401, 503))
                except AssertionError:
                    self.broke(LOST, f"{error!r}")

    async def _pause_all(self, operator: Site) -> None:
        """Pause at one daemon; once that is saved nothing begins at any, until it is resumed at another."""
        paused = (await operator.get("/v1/status")).body["paused"]
        if not paused:
            said = await operator.post("/v1/pause", {"reason": "look at this"})
            assert said.well, said
            if not said.body["saved"]:
                return
            self.book.words.paused()
            await asyncio.sleep(self.chance.random() * _PAUSED_SECONDS)
        await self.resume(self.chance.choice(self.sites()))

    async def resume(self, operator: Site) -> None:
        """Let things begin again, as at one daemon; what is just being decided somewhere may count."""
        said_before = {run_id: call.approvals for run_id, call in self.book.by_run().items()}
        for run_id in self.deciding.runs:
            said_before.pop(run_id, None)
        for call in self.book.all():
            call.asked.add("resume")
        self.book.words.resuming()
        self.resumed.append(time.time())
        self.book.resuming = True
        try:
            said = await operator.post("/v1/resume", {})
        finally:
            self.book.resuming = False
        if not self._went(said):
            return
        anew = {run["id"] for run in said.body["asked_anew"]} - {*self.deciding.runs}
        for run_id, call in self.book.by_run().items():
            if run_id in anew and call.approvals == said_before.get(run_id):
                call.asked.discard("approve")
                call.confirmed.discard("approve")

    def hold(self, events: Sequence[Event]) -> Iterator[Broken]:
        """Yield what began after a pause was on record, and before anybody asked that things begin again."""
        until: float | None = None
        for event in events:
            at = event.at.timestamp()
            if event.type == "pause.begun" and event.session_id is None:
                until = min((each for each in self.resumed if each > at), default=float("inf"))
            elif event.type == "pause.ended":
                until = None
            elif event.type == "execution.started" and until is not None and at < until:
                yield UNASKED, f"{event.run_id} began after a pause was on record"


@define(eq=False)
class DaemonTool(ToolUse):
    """The agent's own tool at one of the daemons; writes without an answer are sent again at any.

    :ivar number: of the daemon.
    """

    number: int = 0

    def share(self, other: DaemonTool) -> None:
        """Know what another one knows: it is one tool."""
        self.world, self.owed, self.told = other.world, other.owed, other.told
        self.approved, self.denied = other.approved, other.denied

    async def run(self, found: Discovery) -> None:
        """Open a session, have two commands at once send what is new or has no answer, and end the session."""
        repeated = self.chance.sample(self.owed, min(2, len(self.owed)))
        fresh = [f"w{self.number}-{self.writes + number}" for number in range(_WRITES)]
        self.writes += _WRITES
        self.owed += fresh
        texts = [*repeated, *fresh]
        self.chance.shuffle(texts)
        session = await enter(found, self.world.port)
        self._session = session
        try:
            await asyncio.gather(self._send(texts[::2]), self._send(texts[1::2]))
        finally:
            await self._end(session)

    async def _end(self, session: ToolSession) -> None:
        try:
            await session.end()
        except (SessionOver, GoneError):
            return
        except AssertionError as error:
            allow(error, (503,))

    async def _send(self, texts: Iterable[str]) -> None:
        session = self._session
        assert session is not None
        for text in texts:
            try:
                self._note(text, await session.send(text))
            except GoneError:
                return
            except ProxyRefused as refused:
                if not any(each in str(refused) for each in _CLOSED):
                    raise
            except AssertionError as error:
                allow(error, (503,))

    def _note(self, text: str, got: Got) -> None:
        if got.code not in _UNAVAILABLE:
            super()._note(text, got)

    def settle(self, text: str) -> None:
        """Its answer was given, perhaps a second time: to two commands that sent the same at two daemons."""
        if text in self.owed:
            self.owed.remove(text)
        self.answered += 1
