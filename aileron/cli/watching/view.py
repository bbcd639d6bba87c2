"""The view at work: it follows what waits, draws it, and does what the keys ask, by the door of C{approval approve}."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from aileron.cli._errors import Trouble, lines_of
from aileron.cli._output import written
from aileron.cli._surroundings import Surroundings
from aileron.cli.approvals.deciding import Ballot, cast, look, outcome
from aileron.cli.approvals.edit import rewritten
from aileron.cli.approvals.flooding import deny_all_of
from aileron.cli.approvals.moments import moment_of
from aileron.cli.approvals.review import show_review
from aileron.values import from_timestamp, timestamp, utc

from . import model
from .drawing import drawn
from .keys import Keyboard
from .model import Opened, State, Undoable, Waiting
from .pressing import Approve, Deny, Edit, Effect, Open, Quit, TakeBack, press_all

if TYPE_CHECKING:
    from aileron.client import Operator

    from .screen import Screen

POLL_SECONDS, HEARING_POLL_SECONDS, LISTEN_AGAIN_SECONDS = 1.0, 30.0, 15.0
_OUTCOME_SECONDS = 3.0
_MOST = 200
_NOBODY = "you"


class View:
    """One person's view.

    :param bell: ring when something new waits.
    """

    def __init__(self, around: Surroundings, screen: Screen, operator: Operator, *, bell: bool) -> None:
        self._around = around
        self._screen = screen
        self._operator = operator
        self._bell = bell
        self._keyboard = Keyboard()
        self._agents: dict[str, str] = {}
        self._state = State(screen.size())
        self._due = around.seconds()
        self._away = ""
        self._poll_seconds = POLL_SECONDS

    async def run(self) -> None:
        """Show and do, until the person leaves or the terminal is gone.

        :raises DaemonFault: the login has ended.
        """
        await self._follow(first=True)
        listening = Deferred.fromCoroutine(self._listen())
        try:
            await self._converse()
        finally:
            listening.addErrback(_cancelled).cancel()

    async def _listen(self) -> None:
        """Hear of what is put on record, as long as the daemon tells; else the view asks by itself more often."""
        from aileron.client import DaemonError

        while True:
            with suppress(DaemonError):
                await self._operator.follow(self._hear)
            self._poll_seconds = POLL_SECONDS
            await self._around.pause(LISTEN_AGAIN_SECONDS)

    def _hear(self) -> None:
        self._poll_seconds = HEARING_POLL_SECONDS
        self._due = self._around.seconds()
        self._screen.wake()

    async def _converse(self) -> None:
        while True:
            self._draw()
            typed = await self._screen.typed(max(0.0, self._due - self._around.seconds()))
            self._state = model.resized(self._state, self._screen.size())
            if typed is None:
                return
            self._state, effect = press_all(self._state, self._keyboard.keys(typed))
            if isinstance(effect, Quit):
                return
            if effect is not None:
                await self._act(effect)
            if self._around.seconds() >= self._due:
                await self._follow()

    def _draw(self) -> None:
        self._screen.draw(drawn(self._state, self._around.wall()))

    async def _follow(self, *, first: bool = False) -> None:
        """Ask what waits now; a daemon that is away for a moment, or busy, is asked again."""
        from aileron.client import DaemonFault, DaemonUnreachable

        away, self._away = self._away, ""
        try:
            await self._look_around(first)
        except (DaemonUnreachable, DaemonFault) as error:
            self._refuse_ended(error)
            self._away = f"{error.message} It is asked again."
            self._say(self._away)
        if away and not self._away and self._state.news == away:
            self._say("")
        self._due = self._around.seconds() + self._poll_seconds

    async def _look_around(self, first: bool) -> None:
        found = await self._operator.approvals({"limit": _MOST})
        waiting = [await self._waiting(item) for item in found["items"]]
        if self._bell and not first and model.newcomers(self._state, waiting):
            self._screen.ring()
        self._state = model.listed(self._state, waiting, more=bool(found.get("cursor")))
        opened = self._state.opened
        if opened is not None and not opened.changed:
            self._state = model.compared(self._state, await self._operator.approval(opened.id))

    async def _waiting(self, item: Mapping[str, Any]) -> Waiting:
        run = item["run"]
        session = run.get("session_id")
        asked_at = from_timestamp(item["requested_at"]).timestamp()
        return Waiting(
            item["id"], run["action"], await self._agent(session), asked_at, session, bool(item.get("stale"))
        )

    async def _agent(self, session: str | None) -> str:
        if session is None:
            return _NOBODY
        if session not in self._agents:
            self._agents[session] = str((await self._operator.session(session))["agent"])
        return self._agents[session]

    async def _act(self, effect: Effect) -> None:
        """Do it; what goes wrong is said, and the view goes on."""
        from aileron.client import DaemonFault, DaemonUnreachable

        try:
            await self._do(effect)
        except (DaemonFault, DaemonUnreachable, Trouble) as error:
            self._refuse_ended(error)
            self._say(" ".join(lines_of(error)))
        except click.UsageError as error:
            self._say(f"{error.format_message()} Nothing was decided.")
        # What was typed while this went on was not typed at what stands there now.
        self._screen.forget()
        self._due = self._around.seconds()

    async def _do(self, effect: Effect) -> None:
        if isinstance(effect, Open):
            await self._open(effect.id)
        elif isinstance(effect, Approve):
            await self._approve(effect)
        elif isinstance(effect, Deny):
            await self._deny(effect)
        elif isinstance(effect, Edit):
            await self._edit(effect.what)
        elif isinstance(effect, TakeBack):
            await self._operator.withdraw(effect.id)
            self._state = evolve(self._state, undoable=None, news="Taken back; nothing was sent.")

    async def _open(self, approval_id: str) -> None:
        shown, session = await look(self._operator, approval_id)
        state = shown["run"]["state"]
        if state != "pending_approval":
            self._state = evolve(self._state, opened=None)
            raise Trouble(f"This is {state} already.", f"See: aileron runs show {approval_id}")
        self._state = model.opened(self._state, shown, written(lambda: show_review(shown, session)))

    async def _approve(self, effect: Approve) -> None:
        when = moment_of(effect.when, utc(self._around.wall())) if effect.when else None
        not_before = None if when is None else timestamp(when)
        ballot = Ballot(effect.what.id, approved=True, sure=True, as_json=True, not_before=not_before)
        decided = await self._cast(ballot, effect.what)
        begins = decided["run"].get("start_after")
        result = await self._operator.result(ballot.approval_id, 0.0 if begins else _OUTCOME_SECONDS)
        undoable = Undoable(ballot.approval_id, str(begins)) if begins else None
        self._state = evolve(self._state, undoable=undoable, opened=None, news=outcome(decided, result))

    async def _deny(self, effect: Deny) -> None:
        ballot = Ballot(effect.what.id, approved=False, sure=True, as_json=True, reason=effect.reason or None)
        await self._cast(ballot, effect.what)
        news, session = "Denied; nothing was sent.", effect.what.session
        if effect.flood and session is not None:
            others = await deny_all_of(self._operator, session, None)
            news = f"Denied, with {others} more; the session {session} is ended."
        self._state = evolve(self._state, opened=None, news=news)

    async def _cast(self, ballot: Ballot, what: Opened) -> Mapping[str, Any]:
        """Decide what was shown; where it is another by now, that is told at once."""
        from aileron.client import DaemonFault

        try:
            return await cast(self._operator, ballot, what.shown)
        except DaemonFault as fault:
            if fault.fault.kind in ("approval_stale", "conflict"):
                self._state = model.compared(self._state, await self._operator.approval(what.id))
            raise

    async def _edit(self, what: Opened) -> None:
        with self._screen.aside(), rewritten(self._around, what.shown["run"]["arguments"]) as wanted:
            await self._operator.edit(what.id, wanted, str(what.shown["digest"]))
        await self._open(what.id)
        self._say("Edited; nothing is decided yet.")

    def _refuse_ended(self, error: Exception) -> None:
        """:raises DaemonFault: the login has ended, so nothing more can be done here."""
        from aileron.client import DaemonFault

        if isinstance(error, DaemonFault) and error.fault.kind == "unauthorized":
            raise error

    def _say(self, news: str) -> None:
        self._state = evolve(self._state, news=news)


def _cancelled(failure: Failure) -> None:
    failure.trap(CancelledError)
