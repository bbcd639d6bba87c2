"""The live view at work: it follows what waits, draws it, and does what the keys ask."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click
from twisted.internet.defer import CancelledError, Deferred

from aileron.cli._context import CliContext
from aileron.cli._errors import CommandError, lines_of
from aileron.cli._output import written
from aileron.cli.approvals.deciding import DecisionRequest, cast, deny_all_of, look, outcome, refuse_decided
from aileron.cli.approvals.edit import rewritten
from aileron.cli.approvals.grant import moment_of
from aileron.cli.approvals.live_model import Command, LiveModel, Opened, render
from aileron.cli.approvals.live_screen import TerminalScreen
from aileron.cli.approvals.review import show_review
from aileron.client import DaemonError, DaemonFault, DaemonUnreachable, Operator
from aileron.values import timestamp, utc

POLL_SECONDS, HEARING_POLL_SECONDS, LISTEN_AGAIN_SECONDS = 1.0, 30.0, 15.0
_OUTCOME_SECONDS = 3.0
_MOST = 200


class LiveView:
    """One person's view.

    :param bell: ring when something new waits.
    """

    def __init__(self, cli: CliContext, screen: TerminalScreen, operator: Operator, *, bell: bool) -> None:
        self._cli = cli
        self._screen = screen
        self._operator = operator
        self._bell = bell
        self._model = LiveModel(screen.size())
        self._due = cli.seconds()
        self._away = ""
        self._poll_seconds = POLL_SECONDS

    async def run(self) -> None:
        """Show and do, until the person leaves or the terminal is gone.

        :raises DaemonFault: the login has ended.
        """
        await self._follow(first=True)
        listening = Deferred.fromCoroutine(self._listen())
        try:
            while await self._step():
                pass
        finally:
            listening.addErrback(lambda failure: failure.trap(CancelledError)).cancel()

    async def _listen(self) -> None:
        """Hear of what is put on record, as long as the daemon tells; else the view asks by itself more often."""
        while True:
            with suppress(DaemonError):
                await self._operator.follow(self._hear)
            self._poll_seconds = POLL_SECONDS
            await self._cli.pause(LISTEN_AGAIN_SECONDS)

    def _hear(self) -> None:
        self._poll_seconds = HEARING_POLL_SECONDS
        self._due = self._cli.seconds()
        self._screen.wake()

    async def _step(self) -> bool:
        """Draw, and do what is typed next; whether the view goes on."""
        self._model.resize(self._screen.size())  # what is counted as read is what fits now
        self._screen.draw(render(self._model, self._cli.wall()))
        keys = await self._screen.typed(max(0.0, self._due - self._cli.seconds()))
        if keys is None:
            return False
        self._model.resize(self._screen.size())
        asked = self._model.press(keys)
        if asked:
            if asked[0] is Command.QUIT:
                return False
            await self._act(*asked)
        elif self._cli.seconds() >= self._due:
            await self._follow()
        return True

    async def _follow(self, *, first: bool = False) -> None:
        """Ask what waits now; a daemon that is away for a moment, or busy, is asked again."""
        away, self._away = self._away, ""
        try:
            await self._look_around(first)
        except (DaemonUnreachable, DaemonFault) as error:
            _refuse_ended(error)
            self._away = self._model.news = f"{error.message} It is asked again."
        if away and not self._away and self._model.news == away:
            self._model.news = ""
        self._due = self._cli.seconds() + self._poll_seconds

    async def _look_around(self, first: bool) -> None:
        found = await self._operator.approvals({"limit": _MOST})
        agents = self._model.agents
        for session in {item["run"].get("session_id") for item in found["items"]} - {None, *agents}:
            agents[session] = str((await self._operator.session(session))["agent"])
        if self._model.replace_items(found["items"], more=bool(found.get("cursor"))) and self._bell and not first:
            self._screen.ring()
        opened = self._model.opened
        if opened is not None and not opened.changed:
            self._model.compare(await self._operator.approval(opened.shown["id"]))

    async def _act(self, command: Command, text: str) -> None:
        """Do it; what goes wrong is said, and the view goes on."""
        model = self._model
        try:
            if command is Command.OPEN:
                await self._open(text)
            elif command is Command.TAKE_BACK:
                await self._operator.withdraw(text)
                model.undoable, model.news = None, "Taken back; nothing was sent."
            elif model.opened is not None:
                await self._decide(command, model.opened, text)
        except (DaemonFault, DaemonUnreachable, CommandError) as error:
            _refuse_ended(error)
            model.news = " ".join(lines_of(error))
        except click.UsageError as error:
            model.news = f"{error.format_message()} Nothing was decided."
        # What was typed while this went on was not typed at what stands there now.
        self._screen.forget()
        self._due = self._cli.seconds()

    async def _open(self, approval_id: str) -> None:
        shown, session = await look(self._operator, approval_id)
        self._model.opened = None
        refuse_decided(shown)
        self._model.resize(self._screen.size())
        self._model.open(shown, written(lambda: show_review(shown, session)))

    async def _decide(self, command: Command, opened: Opened, text: str) -> None:
        if command is Command.APPROVE:
            self._model.news = await self._approve(opened, text)
            self._model.opened = None
        elif command is Command.EDIT:
            await self._edit(opened.shown)
        else:
            self._model.news = await self._deny(opened, text, end=command is Command.END_SESSION)
            self._model.opened = None

    async def _approve(self, opened: Opened, when: str) -> str:
        not_before = timestamp(moment_of(when, utc(self._cli.wall()))) if when else None
        decided = await self._cast(opened, approved=True, not_before=not_before)
        begins = decided["run"].get("start_after")
        result = await self._operator.result(decided["id"], 0.0 if begins else _OUTCOME_SECONDS)
        self._model.undoable = decided["id"] if begins else None
        return outcome(decided, result)

    async def _deny(self, opened: Opened, reason: str, *, end: bool) -> str:
        await self._cast(opened, approved=False, reason=reason or None)
        session = opened.session
        if not end or session is None:
            return "Denied; nothing was sent."
        others = await deny_all_of(self._operator, session, None)
        return f"Denied, with {others} more; the session {session} is ended."

    async def _cast(self, opened: Opened, **decision: Any) -> Mapping[str, Any]:
        """Decide what was shown; where it is another by now, that is told at once."""
        request = DecisionRequest(opened.shown["id"], sure=True, as_json=True, **decision)
        try:
            return await cast(self._operator, request, opened.shown)
        except DaemonFault as fault:
            if fault.fault.kind in ("approval_stale", "conflict"):
                self._model.compare(await self._operator.approval(opened.shown["id"]))
            raise

    async def _edit(self, shown: Mapping[str, Any]) -> None:
        with self._screen.aside(), rewritten(self._cli, shown["run"]["arguments"]) as wanted:
            await self._operator.edit(shown["id"], wanted, str(shown["digest"]))
        await self._open(shown["id"])
        self._model.news = "Edited; nothing is decided yet."


def _refuse_ended(error: Exception) -> None:
    """Raise C{error} again if it says that the login has ended, so that nothing more can be done here.

    :raises DaemonFault: the login has ended.
    """
    if isinstance(error, DaemonFault) and error.fault.kind == "unauthorized":
        raise error
