"""The full screen of C{aileron watch}: it shows pending approvals, and decides them with single keys."""

from __future__ import annotations

import asyncio
import errno
import signal
import termios
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import click
from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.output import ColorDepth, Output
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from aileron.base.json import JSON, timestamp, utc
from aileron.base.text import visible
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError, lines_of
from aileron.cli.output import capture_lines, when
from aileron.client import DaemonFault, DaemonUnreachable, Operator
from aileron.model.features import WatchOffer

from . import deciding, offers
from .edit import edit_shown, rewritten
from .grant import moment_of
from .identical import cast_together, join_identical, list_members, name_requesters
from .reading import PROMPTS, OpenedApproval, Question, question_of
from .review import show_review
from .rows import LOOK_CLOSELY, approval_row, key_hints, shorten, sort_closely, wrap

TOGETHER_SECONDS = 0.03
"""Input that arrives within this time after a key arrived with it: an escape sequence, or a paste."""
POLL_SECONDS = 1.0
_OUTCOME_SECONDS = 3.0
_HOLD_SECONDS = 5.0
"""The time for which an approval of several requests can be undone."""
_FRAME_ROWS, _MOST_NEWS_ROWS = 2, 4
_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1}
_ENTER = ("c-m", "c-j")
_UNDECIDED = "Nothing was decided; it is still pending."

Work: TypeAlias = Coroutine[Deferred[Any], Any, None] | None
"""The request to the daemon that a key triggers, or None."""


class LiveScreen:
    """The full screen of C{aileron watch}, for one person.

    :param bell: whether to ring for a new approval.
    """

    def __init__(self, cli: CliContext, operator: Operator, typed: Input, shown: Output, *, bell: bool) -> None:
        self._cli, self._operator, self._bell = cli, operator, bell
        self._items: Sequence[Mapping[str, Any]] = ()
        self._pending = frozenset[str]()
        self._busy = False
        self._agents: dict[str, str] = {}
        self._chosen: str | None = None  # by its ID, so that a new approval does not replace it
        self._opened: OpenedApproval | None = None
        self._together: Sequence[Mapping[str, Any]] = ()  # the identical approvals that the next decision covers
        self._question: Question | None = None
        self._offers = offers.OfferList(operator, cli.features.watch_offers())
        self._undoable: Sequence[str] = ()
        self._news = self._away = ""
        self._typed: list[str] = []
        self._under_way: dict[str, Deferred[None]] = {}
        self._app = self._application(typed, shown)

    def _application(self, typed: Input, shown: Output) -> Application[None]:
        keys = KeyBindings()
        keys.add(Keys.Any)(self._gather)
        keys.add(Keys.BracketedPaste)(self._gather)
        keys.add("c-c")(lambda _: signal.raise_signal(signal.SIGINT))
        rows = [
            Window(FormattedTextControl(lambda: self._cut(self._title()), style="bold"), height=1),
            Window(FormattedTextControl(lambda: list(self._body())), always_hide_cursor=True),
            Window(FormattedTextControl(lambda: "\n".join(self._bottom()), style="bold"), height=self._bottom_height),
            Window(FormattedTextControl(self._hints), height=1),
        ]
        app: Application[None] = Application(
            Layout(HSplit(rows), rows[1]),
            key_bindings=keys,
            full_screen=True,
            erase_when_done=True,
            color_depth=ColorDepth.DEPTH_1_BIT,
            max_render_postpone_time=None,
            before_render=self._begin_drawing,
            after_render=self._note_read,
            input=typed,
            output=shown,
        )
        app.ttimeoutlen = app.timeoutlen = TOGETHER_SECONDS
        return app

    async def run(self) -> None:
        """Run the screen until the person quits or the terminal is closed.

        :raises DaemonFault: if the login has ended.
        """
        await self._follow(first=True)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._leave)
        shown = loop.create_task(self._app.run_async(handle_sigint=False, set_exception_handler=False))
        self._forget()
        self._start("polling", self._poll())
        try:
            await Deferred.fromFuture(shown)
        except (EOFError, OSError) as error:
            if isinstance(error, OSError) and error.errno != errno.EIO:
                raise  # an error other than a closed terminal
        finally:
            loop.remove_signal_handler(signal.SIGHUP)
            for each in tuple(self._under_way.values()):
                each.cancel()

    def _start(self, name: str, work: Coroutine[Deferred[Any], Any, None]) -> None:
        """Run C{work} in the background, and cancel earlier work of the same name. A failure of it ends the screen."""
        if before := self._under_way.pop(name, None):
            before.cancel()
        self._under_way[name] = Deferred.fromCoroutine(work).addErrback(self._fail)

    def _fail(self, failure: Failure) -> None:
        if not failure.check(CancelledError):
            self._leave(failure.value)

    def _leave(self, error: BaseException | None = None) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit(exception=error) if error else self._app.exit()

    async def _poll(self) -> None:
        while True:
            await self._follow()
            self._app.invalidate()
            await self._cli.pause(POLL_SECONDS)

    async def _follow(self, *, first: bool = False) -> None:
        """Fetch the pending approvals once. If the daemon does not respond or is busy, show that until the next poll.

        :raises DaemonFault: if the login has ended.
        """
        try:
            await self._look_around(first)
            self._away = ""
        except (DaemonUnreachable, DaemonFault) as error:
            deciding.refuse_ended(error)
            self._away = f"{error.message} Retrying."

    async def _look_around(self, first: bool) -> None:
        answer = await self._operator.get("action-approvals", query={"limit": deciding.MOST})
        found = sort_closely(join_identical(answer["items"]))
        for session in {item["run"].get("session_id") for item in answer["items"]} - {None, *self._agents}:
            self._agents[session] = str((await self._operator.get("sessions", session))["agent"])
        position, before = self._position(), self._pending
        ids = [item["id"] for item in found]
        self._items, self._pending = found, frozenset(item["id"] for item in answer["items"])
        if self._chosen not in ids:  # the chosen approval was removed: choose a neighbour
            self._chosen = ids[min(position, len(ids) - 1)] if ids else None
        if self._bell and not first and not before.issuperset(self._pending):
            self._app.output.bell()
        if self._opened and not self._opened.changed:
            await self._compare(self._opened)
        if await self._offers.fetch() and self._bell and not first:
            self._app.output.bell()

    async def _compare(self, opened: OpenedApproval) -> None:
        """Compare the open approval with the daemon's. If it differs, disable deciding.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        opened.compare(await self._operator.get("action-approvals", opened.shown["id"]))
        if opened.changed and opened is self._opened:
            self._question = None

    def _find_members(self, approval_id: str) -> Sequence[Mapping[str, Any]]:
        """Return the approvals of the row that represents this one, itself included; empty if it is not listed."""
        rows = map(list_members, self._items)
        return next((row for row in rows if any(each["id"] == approval_id for each in row)), ())

    def _position(self) -> int:
        return next((number for number, item in enumerate(self._items) if item["id"] == self._chosen), 0)

    def _gather(self, event: KeyPressEvent) -> None:
        """Record typed keys. While a request is in progress, discard them: they were not meant for the next screen."""
        if self._busy:
            return
        if not self._typed:
            self._start("typing", self._settle())
        for press in event.key_sequence:
            self._typed += [*press.data, ""] if press.key == Keys.BracketedPaste else [press.key]

    async def _settle(self) -> None:
        await self._cli.pause(TOGETHER_SECONDS)
        keys, self._typed = self._typed, []
        if "escape" in keys[:-1]:  # the beginning of an unknown escape sequence
            del keys[keys.index("escape") :]
        self._press(keys)
        self._app.invalidate()

    def _press(self, keys: Sequence[str]) -> None:
        """Process keys that arrived together, up to the first that sends a request.

        Keys that arrived together, as from a paste, confirm nothing.
        """
        for key in keys:
            if self._question and self._question.confirms and len(keys) > 1:
                self._question, self._news = None, "Several keys arrived at once, so nothing was decided."
                return
            self._news = ""
            if self._question and self._question.offer:
                work = self._answer_offer(self._question.offer, key)
            elif self._question and self._opened:
                work = self._answer(self._opened, self._question, key)
            elif key == "u" and self._undoable:
                work = self._take_back(self._undoable)
            else:
                work = self._press_in_list(key) if self._opened is None else self._press_in_opened(self._opened, key)
            if work:
                self._busy = True
                self._start("doing", self._do(work))
            if work or self._app.is_done:
                return

    def _press_in_list(self, key: str) -> Work:
        height = max(1, self._app.output.get_size().rows - _FRAME_ROWS - self._bottom_height())
        steps = {"pageup": -height, "pagedown": height, "home": -len(self._items), **_STEPS}
        if key == "q":
            self._leave()
        elif key in _ENTER and self._chosen:
            return self._open(self._chosen)
        elif key == offers.KEY:
            self._ask_about(self._offers.find_next(None))
        elif key in steps and self._items:
            position = max(0, min(self._position() + steps[key], len(self._items) - 1))
            self._chosen = self._items[position]["id"]
        return None

    def _ask_about(self, offer: WatchOffer | None) -> None:
        """Show the question whether to accept an offer. Do nothing if C{offer} is None."""
        if offer:
            self._question = Question(offers.KEY, question_of(offer), offer=offer)

    def _answer_offer(self, offer: WatchOffer, key: str) -> Work:
        """Accept an offer after C{y}, ask about the next one after the key of offers, or else change nothing.

        An offer whose question does not fit on the screen is not accepted.
        """
        rows = wrap(question_of(offer), self._app.output.get_size().columns, len(offer.question), grows=False)
        self._question = None
        if key in ("y", "Y") and len(rows) <= self._most_bottom_rows():
            return self._accept(offer)
        if key in ("y", "Y"):
            self._news = "The terminal is too small to show the whole question. Nothing was changed."
        elif key == offers.KEY and len(self._offers.items) > 1:
            self._ask_about(self._offers.find_next(offer))
        else:
            self._news = "Nothing was changed."
        return None

    async def _accept(self, offer: WatchOffer) -> None:
        self._news = await self._offers.accept(offer)

    def _press_in_opened(self, opened: OpenedApproval, key: str) -> Work:
        page = max(1, opened.height - 1)
        steps = {"pageup": -page, "b": -page, "pagedown": page, " ": page, "home": -opened.top, **_STEPS}
        if key in steps:
            opened.scroll(steps[key])
        elif key in ("q", "escape"):
            self._opened = None
        elif key == "r":
            return self._open(opened.shown["id"])
        elif key == "t":
            self._toggle_together(opened)
        elif key in (*PROMPTS, "e"):
            return self._ask(opened, key)
        return None

    def _toggle_together(self, opened: OpenedApproval) -> None:
        """Switch the next decision between all identical approvals that are listed now and the open one alone."""
        members = () if self._together else self._find_members(opened.shown["id"])
        # guard of signing: the list shows the open one as it is open
        #    -> cli.test_live.DecideTests.test_together_changed
        if not any((each["id"], each["digest"]) == (opened.shown["id"], opened.shown["digest"]) for each in members):
            members = ()
        if self._together or len(members) > 1:
            self._together = members
        words = f"y and d decide {len(members)} together, for {name_requesters(members, self._agents)}."
        self._news = words if self._together else "y and d decide this request alone."

    def _say_times(self) -> str:
        many = len(self._together)
        return f", {many} times, for {name_requesters(self._together, self._agents)}" if many else ""

    def _ask(self, opened: OpenedApproval, key: str) -> Work:
        if opened.changed:
            self._news = f"{opened.changed} Press r to reload."
        elif key == "e":
            return self._edit(opened.shown)
        elif key in ("y", "l") and not opened.all_read:
            self._news = "Scroll to the end first (Space)."
        elif key == "x" and opened.session is None:
            self._news = "This was not requested in an agent session, so there is none to end."
        else:
            session, times = visible(str(opened.session)), self._say_times()
            self._question = Question(key, PROMPTS[key].format(session=session, when="", times=times))
        return None

    def _answer(self, opened: OpenedApproval, question: Question, key: str) -> Work:
        self._question = None
        if key == "escape" or (question.confirms and key not in ("y", "Y")):
            self._news = _UNDECIDED
        elif question.key == "y":
            return self._approve(opened, question.text)
        elif question.key == "x":
            return self._deny(opened, "", end=True)
        elif key not in _ENTER:
            text = question.text[:-1] if key == "c-h" else question.text + key * (len(key) == 1 and key.isprintable())
            self._question = Question(question.key, question.prompt, text)
        elif question.key == "d":
            return self._deny(opened, question.text.strip(), end=False)
        else:
            self._question = self._ask_when(question.text.strip(), self._say_times())
        return None

    def _ask_when(self, text: str, times: str) -> Question | None:
        """Return the question with the start time that the text names. If it is invalid, print that and return None."""
        try:
            begins = timestamp(moment_of(text, utc(self._cli.wall()))) if text else ""
        except click.BadParameter as error:
            begins, self._news = "", f"{error.message} {_UNDECIDED}"
        else:
            self._news = "" if begins else _UNDECIDED
        return (
            Question("y", PROMPTS["y"].format(when=f", starting {when(begins)}", times=times), begins)
            if begins
            else None
        )

    async def _do(self, work: Coroutine[Deferred[Any], Any, None]) -> None:
        """Await C{work}, then discard the keys typed meanwhile. If it fails, show the error and keep the screen open.

        :raises DaemonFault: if the login has ended.
        """
        try:
            await work
        except (DaemonFault, DaemonUnreachable, CommandError) as error:
            deciding.refuse_ended(error)
            self._news = " ".join(lines_of(error))
        except click.UsageError as error:
            self._news = f"{error.format_message()} Nothing was decided."
        self._forget()
        self._busy = False
        self._start("polling", self._poll())

    def _forget(self) -> None:
        """Discard typed keys that were not processed yet."""
        self._typed = []
        self._app.input.flush_keys()
        with suppress(termios.error):
            termios.tcflush(self._app.input.fileno(), termios.TCIFLUSH)

    async def _take_back(self, approval_ids: Sequence[str]) -> None:
        for each in approval_ids:
            await self._operator.withdraw(each)
        self._undoable, self._news = (), "Undone; nothing was sent."

    async def _open(self, approval_id: str) -> None:
        shown, session = await deciding.read_approval(self._operator, approval_id)
        self._opened, self._together = None, ()
        deciding.refuse_decided(shown)
        self._opened, self._chosen = (
            OpenedApproval(shown, capture_lines(lambda: show_review(shown, session))),
            approval_id,
        )

    async def _approve(self, opened: OpenedApproval, not_before: str) -> None:
        if self._together:
            held = not_before or timestamp(utc(self._cli.wall() + _HOLD_SECONDS))
            await self._decide_together({"approved": True, "not_before": held})
            return
        decided = await self._cast(opened, approved=True, not_before=not_before or None)
        begins = decided["run"].get("start_after")
        is_pending = deciding.lacks_others(decided)
        result = await self._operator.result(decided["id"], 0.0 if begins or is_pending else _OUTCOME_SECONDS)
        self._undoable = (decided["id"],) if begins else ()
        self._news, self._opened = deciding.outcome(decided, result), None

    async def _decide_together(self, decision: Mapping[str, JSON]) -> None:
        """Decide the identical approvals that the question named, and show how many were decided."""
        results = await cast_together(self._operator, self._together, decision)
        done = [each["id"] for each in results if isinstance(each, Mapping)]
        refused = next((each.message for each in results if not isinstance(each, Mapping)), "")
        self._undoable = done if decision["approved"] else ()
        word = "approved" if decision["approved"] else "denied"
        self._news, self._opened = f"{len(done)} of {len(results)} {word}. {refused}".rstrip(), None

    async def _deny(self, opened: OpenedApproval, reason: str, *, end: bool) -> None:
        if self._together and not end:
            await self._decide_together({"approved": False, "reason": reason or None})
            return
        await self._cast(opened, approved=False, reason=reason or None)
        self._news = "Denied; nothing was sent."
        if end:
            others = await deciding.deny_all_of(self._operator, str(opened.session), None)
            self._news = f"Denied. Session {opened.session} ended. Other requests denied: {others}."
        self._opened = None

    async def _cast(self, opened: OpenedApproval, **decision: Any) -> Mapping[str, Any]:
        """Decide what was shown, and return the decided approval. If the approval has changed, show that at once."""
        request = deciding.DecisionRequest(opened.shown["id"], sure=True, as_json=True, **decision)
        try:
            return await deciding.cast(self._operator, request, opened.shown)
        except DaemonFault as fault:
            if fault.fault.kind in ("approval_stale", "conflict"):
                await self._compare(opened)
            raise

    async def _edit(self, shown: Mapping[str, Any]) -> None:
        async def aside() -> None:
            async with in_terminal():
                with rewritten(self._cli, shown["run"]["arguments"]) as wanted:
                    edited = edit_shown(self._operator, shown, wanted)
                    await Deferred.fromCoroutine(edited).asFuture(asyncio.get_running_loop())

        with set_app(self._app):
            editing = asyncio.get_running_loop().create_task(aside())
        await Deferred.fromFuture(editing)
        await self._open(shown["id"])
        self._news = "Edited. Nothing is decided yet."

    def _begin_drawing(self, app: Application[None]) -> None:
        """Redraw the whole screen, each row from the terminal's edge, because terminals disagree about widths."""
        app.renderer.reset(leave_alternate_screen=False)
        app.output.hide_cursor()
        app.output.cursor_goto(0, 0)
        if self._opened:
            size = app.output.get_size()
            self._opened.fit(size.columns, size.rows - _FRAME_ROWS - self._bottom_height())

    def _note_read(self, _app: Application[None]) -> None:
        if self._opened:
            self._opened.read = max(self._opened.read, self._opened.end)

    def _title(self) -> str:
        opened = self._opened
        if opened is None:
            closely = sum(len(list_members(item)) for item in self._items if item.get("group") == LOOK_CLOSELY)
            return f"Aileron: {len(self._pending)} pending" + (f", {closely} to look at closely" if closely else "")
        total = len(opened.rows)
        read = "read to the end" if max(opened.read, opened.end) >= total else "Space for more"
        place = f"{self._position() + 1} of {len(self._items)}"
        return f"{place}, rows {opened.top + 1} to {opened.end} of {total}: {read}"

    def _body(self) -> Iterator[tuple[str, str]]:
        if self._opened:
            yield "", "\n".join(self._opened.rows[self._opened.top : self._opened.end])
        elif not self._items:
            yield "", "No pending approvals."
        for item in () if self._opened else self._items:
            selected = item["id"] == self._chosen
            yield "[SetCursorPosition]" if selected else "", ""
            sessions = dict.fromkeys(each["run"].get("session_id") for each in list_members(item))
            agent = ", ".join(dict.fromkeys(self._agents.get(each, "you") for each in sessions))
            width = self._app.output.get_size().columns
            row = f"{'>' if selected else ' '} {approval_row(item, agent, self._cli.wall(), width - 2)}"
            yield "reverse" if selected else "", row + "\n" * (item is not self._items[-1])

    def _bottom(self) -> Sequence[str]:
        """Return the rows of the question or message at the bottom, as many as needed and available."""
        size, asks = self._app.output.get_size(), self._question is not None and self._question.offer is None
        text = visible(self._news or self._away or self._offers.describe() * (self._opened is None))
        if self._question:
            text = self._question.prompt + visible(self._question.text) * (not self._question.confirms)
        elif self._opened and self._opened.changed and not text:
            text = f"{self._opened.changed} Press r to reload before you decide."
        return wrap(text, size.columns, self._most_bottom_rows(), grows=asks)

    def _most_bottom_rows(self) -> int:
        return max(1, min(_MOST_NEWS_ROWS, self._app.output.get_size().rows - _FRAME_ROWS - 1))

    def _bottom_height(self) -> int:
        return len(self._bottom())

    def _hints(self) -> str:
        identical = self._opened is not None and len(self._find_members(self._opened.shown["id"])) > 1
        offer = f"{offers.KEY} {self._offers.items[0].label}" if self._offers.items and not self._opened else ""
        width = self._app.output.get_size().columns
        return key_hints(self._opened is not None, bool(self._undoable), identical, width, offer)

    def _cut(self, text: str) -> str:
        return shorten(text, self._app.output.get_size().columns)
