"""The full screen, and the conversation where a terminal can do no more than lines, against a daemon in memory."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import select
import signal
import sys
import termios
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TypeAlias, cast

import attrs
import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.output.vt100 import Vt100_Output
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock, deferLater
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.text import visible
from aileron.cli.approvals import watch
from aileron.cli.approvals.deciding import outcome
from aileron.cli.approvals.live import TOGETHER_SECONDS, LiveScreen
from aileron.cli.approvals.rows import age, approval_row, columns, list_warnings, rows_of, sort_closely, wrap
from aileron.cli.approvals.watch import converse
from aileron.cli.context import Conversation, Links
from aileron.cli.output import when
from aileron.client import DaemonFault, Operator
from aileron.model.errors import ApprovalStale, Conflict, InvalidRequest, NotFound, StoreUnavailable, Unauthorized
from tests.cli.daemon import DECIDE, DIGEST, ONE, OPERATOR_URL, RUN, SESSION, TOKEN, CommandCase, approval

LIST = "/v1/action-approvals?limit=200"
LIMITS = "/v1/gateway/limits"
RAISE = f"{LIMITS}/0123abcd/raise"
PASTE = "\x1b[200~{}\x1b[201~"
SOON = "\0"
"""Between what does not come in one piece, yet all but at once."""


def limit(**changed: Any) -> dict[str, Any]:
    """A spending limit that is reached, as the daemon lists it."""
    kind = {"id": "0123abcd", "unit": "tokens", "per": "day", "provider": None, "model": None, "window": "2026-03-01"}
    return {**kind, "limit": 5000, "most": 5000, "used": 5000, "held": 100, "reached": True, **changed}


Typed: TypeAlias = str | Callable[[], None]
"""What is typed at once, or what happens while nothing is."""


class ScreenCase(CommandCase):
    """One approval waits; a person types a script, then goes away.

    :ivar shown: what stood on the screen before the script and after each part of it.
    :ivar sent: all that came to the terminal.
    """

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.columns, self.rows = 80, 33
        self.waits(approval())
        self.reached()
        self.site.answer("GET", "/v1/sessions/S", {**SESSION, "state": "running"})
        self.site.answer("GET", "/v1/events", NotFound("There is no such stream."))
        self.site.answer("POST", DECIDE, approval(approved=True))
        self.result({"status": "completed", "run_id": RUN, "result": {"output": {}, "steps": {}}})

    def waits(self, *items: dict[str, Any]) -> None:
        """These wait."""
        self.site.answer("GET", LIST, {"items": list(items), "cursor": None})
        for item in items:
            self.site.answer("GET", f"/v1/action-approvals/{item['id']}", item)

    def reached(self, *limits: dict[str, Any]) -> None:
        """These spending limits are there."""
        self.site.answer("GET", LIMITS, {"items": list(limits), "readable": True})
        for each in limits:
            self.site.answer("POST", f"{LIMITS}/{each['id']}/raise", each)

    def result(self, given: dict[str, Any]) -> None:
        """How it ends."""
        self.site.answer("GET", f"{ONE}/result?wait=3", given)
        self.site.answer("GET", f"{ONE}/result", given)

    def view(self, *script: Typed, bell: bool = True) -> Sequence[str]:
        """What stood on the screen, after this script."""
        self.shown: list[str] = []
        self.sent = ""
        self.terminal = pyte.Screen(self.columns, self.rows)
        with redirect_stderr(io.StringIO()):
            asyncio.run(self._play(script, bell))
        return self.shown

    def long(self, lines: int = 60, **changed: Any) -> None:
        """What waits has so many lines more than it usually has."""
        review = approval()["review"]
        text = "\n".join(f"<{number}>" for number in range(lines))
        fields = [{"name": "text", "label": "text", "value": text, "multiline": True}]
        self.waits(approval(review={**review, "fields": fields}, **changed))

    def chosen(self) -> list[str]:
        """The rows that are marked as selected, each time."""
        return [row for shown in self.shown for row in shown.split("\n") if row.startswith(">")]

    async def _play(self, script: Sequence[Typed], bell: bool) -> None:
        loop = asyncio.get_running_loop()
        stream = io.StringIO()
        cli = attrs.evolve(
            self.cli_context(),
            seconds=self.clock.seconds,
            wall=lambda: 1_767_225_700.0,
            pause=lambda seconds: deferLater(self.clock, seconds),
        )
        with create_pipe_input() as keyboard:
            output = Vt100_Output(stream, lambda: Size(self.rows, self.columns), enable_cpr=False)
            screen = LiveScreen(cli, self.site.operator(OPERATOR_URL, TOKEN), keyboard, output, bell=bell)
            running = loop.create_task(_started(screen.run()))
            await self._look(stream)
            for each in script:
                if isinstance(each, str):
                    for piece in each.split(SOON):
                        keyboard.send_text(piece)
                        await _idle()
                    if each.endswith("\x1b"):
                        await asyncio.sleep(2 * TOGETHER_SECONDS)  # which the library's own clock measures
                else:
                    each()
                    self.clock.advance(2.0)
                await self._look(stream)
            if not running.done():
                keyboard.close()
            await running

    async def _look(self, stream: io.StringIO) -> None:
        """Let all be done that can be, and keep what stands on the screen then."""
        await _idle()
        self.clock.advance(TOGETHER_SECONDS)
        await _idle()
        self.sent += stream.getvalue()
        self.terminal.resize(self.rows, self.columns)
        pyte.Stream(self.terminal).feed(stream.getvalue())
        stream.seek(stream.truncate(0))
        self.shown.append("\n".join(line.rstrip() for line in self.terminal.display))

    def decided(self) -> list[Any]:
        """What the daemon was told to decide."""
        return self.site.bodies("POST", DECIDE)


async def _idle() -> None:
    """Let all be done that can be."""
    for _ in range(10):
        await asyncio.sleep(0)


async def _started(work: Coroutine[Any, Any, None]) -> None:
    await Deferred.fromCoroutine(work).asFuture(asyncio.get_running_loop())


class ListTests(ScreenCase):
    def test_list(self) -> None:
        """What waits is listed; what comes is added and rings, what goes is taken away; a busy daemon is asked on."""

        def more() -> None:
            self.waits(approval(), approval(id="02RUN"))

        shown = self.view("", more, self.waits)
        self.assertEqual(shown[0].split("\n")[0], "Aileron: 1 pending")
        self.assertEqual(shown[0].split("\n")[1].split(), [">", "1m", "opencode", "ship-update"])
        self.assertIn("2 pending", shown[2])
        self.assertIn("No pending approvals.", shown[3])
        self.assertEqual(self.sent.count("\a"), 1)
        self.view(more, bell=False)
        self.assertNotIn("\a", self.sent)

        def away() -> None:
            self.site.answer("GET", LIST, StoreUnavailable("The database is busy."))

        shown = self.view(away, lambda: self.waits(approval()))
        self.assertIn("The database is busy. Retrying.", shown[1])
        self.assertNotIn("busy", shown[2])

    def test_select(self) -> None:
        """Arrows, pages and letters select, within the list; the selected one stands out, and is opened by Enter."""
        self.waits(
            *(approval(id=f"{number}", run={**approval()["run"], "action": f"a{number}"}) for number in range(9))
        )
        self.rows = 8
        keys = ("j", "k", "\x1b[A", "\x1bOB", "\x1b[6~", "\x1b[6~", "\x1b[5~", "\x1b[H", "j", "\n")
        shown = self.view(*keys)
        self.assertEqual(
            [row.split()[-1] for row in self.chosen()], [f"a{at}" for at in (0, 1, 0, 0, 1, 6, 8, 3, 0, 1)]
        )
        self.assertIn("2 of 9, rows 1 to 5", shown[-1])
        self.assertIn("\x1b[0;7m> ", self.sent)

    def test_selection_stays(self) -> None:
        """What comes and goes takes nobody's place: the same one stays selected, or a neighbour of one that went."""

        def wait(*ids: str) -> None:
            self.waits(*(approval(id=each, run={**approval()["run"], "action": each}) for each in ids))

        wait("a", "b", "c")
        self.view(
            "j", lambda: wait("b", "c", "d"), lambda: wait("a", "b", "c"), lambda: wait("a", "c"), wait, "j", "\r"
        )
        self.assertEqual([row.split()[-1] for row in self.chosen()], ["a", "b", "b", "b", "c"])

    def test_login_ended(self) -> None:
        """When the login has ended the screen ends with what the daemon says of it, whenever that is."""

        def end() -> None:
            self.site.answer("GET", LIST, Unauthorized("Nobody knows this token."))

        self.assertRaises(DaemonFault, self.view, end)
        self.assertIn("\x1b[?1049l", self.sent)
        self.assertRaises(DaemonFault, self.view)
        self.assertNotIn("\x1b[?1049h", self.sent)

    def test_signals(self) -> None:
        """Ctrl-C interrupts the command, and a terminal that hangs up ends it; other controls are no keys."""
        heard: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, _frame: heard.append(number))
        self.addCleanup(signal.signal, signal.SIGINT, before)
        self.view("\x1a\x1c", "\x03")
        self.assertEqual(heard, [signal.SIGINT])
        self.view(lambda: signal.raise_signal(signal.SIGHUP), "\r")
        self.assertNotIn("rows 1", self.sent)


class ReadTests(ScreenCase):
    def test_whole(self) -> None:
        """What is open shows all that `approval show` shows, foreign text made visible."""
        self.columns = 130
        shown = self.view("\r")[1]
        self.serve()
        printed = self.as_operator("approval", "show", RUN)[1].splitlines()
        self.assertEqual([line for line in printed if line not in shown], [])
        self.assertIn("two\\u202e", shown)

    def test_read_first(self) -> None:
        """What was not read to its end cannot be approved, at once or later; it can be denied, and then read on."""
        self.long()
        self.rows = 30
        shown = self.view("\r", "y", "y", "l", "y", *"   ", "b", "\x1b[H", "y", "y")
        for each in shown[2:6]:
            self.assertIn("Scroll to the end first", each)
        self.assertIn("Space for more", shown[7])
        self.assertIn("read to the end", shown[8])
        self.assertIn("rows 1 to 27 of 85: read to the end", shown[11])
        self.assertEqual(len(self.decided()), 1)
        self.view("\r", "d", "\r")
        self.assertEqual([body["approved"] for body in self.decided()], [True, False])

    def test_every_row(self) -> None:
        """No row is jumped over, also by keys that come at once; only the last one's being drawn makes it read."""
        self.long()
        self.rows = 30
        shown = self.view("\r", " " * 9, "\x1b[6~" * 2 + "y", "jjjjjj", "j", "y")
        self.assertIn("rows 28 to 54 of 85", shown[2])
        self.assertIn("rows 55 to 81 of 85", shown[3])
        self.assertIn("Scroll to the end first", shown[3])
        self.assertIn("read to the end", shown[4])
        seen = "".join(shown)
        self.assertEqual([number for number in range(60) if f"<{number}>" not in seen], [])
        self.assertIn("Approve exactly this?", shown[-1])

    def test_resized(self) -> None:
        """In another width what was read stays read; what was not is begun again. A question is kept."""

        def narrow() -> None:
            self.columns = 40

        self.long()
        self.rows = 60
        shown = self.view("\r", "j", narrow, " ", " ", "y", "y")
        self.assertIn("rows 2 to 58", shown[2])
        self.assertIn("rows 1 to 57", shown[3])
        self.assertEqual(len(self.decided()), 1)
        self.columns, self.rows = 100, 90
        self.view("\r", narrow, "y", "y")
        self.assertEqual(len(self.decided()), 2)

    def test_smaller_meanwhile(self) -> None:
        """A terminal that became smaller while the daemon was asked shows what fits, and only that counts as read."""

        def shrink(_body: object) -> Any:
            self.rows = 6
            return approval()

        self.site.answer("GET", ONE, shrink)
        shown = self.view("\r", "y", "y")
        self.assertIn("Space for more", shown[1])
        self.assertEqual(self.decided(), [])

    def test_narrow(self) -> None:
        """In a narrow terminal a long name is cut, and neither what is asked, told, nor that something changed is."""
        session = "01M8D4Z5PC691AJHN1MM485VSP"
        run = {**approval()["run"], "action": "publish-" * 9, "session_id": session}
        self.waits(approval(stale="The action changed.", run=run))
        self.site.answer("GET", f"/v1/sessions/{session}", SESSION)
        self.site.answer("POST", DECIDE, StoreUnavailable("Nothing was decided, as the disk is full. " * 3))
        for self.columns in (60, 40):
            shown = self.view("\r", *" " * 9, "x", "n", "y", "y")
            self.assertRegex(shown[0], r"(?m)^> .*publis.*…   CHANGED$")
            self.assertEqual([row for row in shown[-1].split("\n")[-1:] if "…" in row or "y" not in row], [])
            told = ["".join(each.replace("\n↪ ", "").split()) for each in shown]
            self.assertIn(f"Denyallrequestsofsession{session},andendit?[y/N]", told[-4])
            self.assertIn("Nothingwasdecided,asthediskisfull." * 3, told[-1])

    def test_tiny(self) -> None:
        """Where nothing can be shown nothing counts as read; the smallest size that can be used is 20 by 4."""
        for self.columns, self.rows in ((19, 60), (100, 3), (3, 1)):
            self.view("\r", *" " * 9, "y", "y")
            self.assertEqual(self.decided(), [], (self.columns, self.rows))
        self.columns, self.rows = 20, 4
        self.view("\r", *" " * 66, "y", "y")
        self.assertEqual(len(self.decided()), 1)

    def test_typed(self) -> None:
        """Of a long reason the end is seen, where it grows."""
        self.assertIn("abc!\n", self.view("\r", "d", "abc" * 50 + "!")[-1])

    @settings(max_examples=15, deadline=None)
    @given(st.text(max_size=40), st.integers(4, 12), st.integers(20, 60))
    def test_hostile(self, name: str, height: int, width: int) -> None:
        """Whatever an agent calls itself or asks for, every row is drawn from the edge and nothing in it acts."""
        self.columns, self.rows = width, height
        self.site.answer("GET", "/v1/sessions/S", {**SESSION, "agent": name})
        self.waits(approval(run={**approval()["run"], "action": name}, stale=name))
        self.view("\r", "d" + "".join(each for each in name if each.isprintable()))
        drawn = re.sub(r"\x1b(\[[0-9;?]*[A-Za-z])", "", self.sent.replace("\r\n", "\n"))
        self.assertEqual(self.columns, self.terminal.columns)
        for row in drawn.replace("\r", "\n").split("\n"):
            self.assertTrue(row.isprintable() or not row, repr(row))


class DecideTests(ScreenCase):
    def test_approve(self) -> None:
        """y and y approve what was read, by the digest that was shown; the outcome is told."""
        shown = self.view("\r", "y", "y")
        self.assertEqual(self.decided(), [{"approved": True, "digest": DIGEST}])
        self.assertIn("Approve exactly this? [y/N]", shown[2])
        self.assertIn("Approved and completed.", shown[-1])
        self.assertTrue(shown[1].endswith("q back  l later  e edit  x deny all, end session"), shown[1])
        told = outcome({"id": "01J0000000000000000000RUN1"}, {"status": "completed"})
        self.assertLessEqual(len(told), 80)

    def alike(self) -> None:
        """Another request asks the same."""
        other = approval(digest="sha256:two", identical=[RUN])
        self.waits(approval(identical=["01TWO"]), {**other, "id": "01TWO", "run": {**other["run"], "id": "01TWO"}})
        self.site.answer("POST", "/v1/action-approvals/01TWO/decide", self.delayed("01TWO"))
        self.site.answer("POST", DECIDE, self.delayed(RUN))

    def delayed(self, run_id: str) -> dict[str, Any]:
        """An approved request that can be undone."""
        found = approval(approved=True)
        run = {**found["run"], "id": run_id, "start_after": "2026-01-01T00:00:00Z"}
        return {**found, "id": run_id, "run": run}

    def test_together(self) -> None:
        """Identical requests are one row; t has one decision cover both, each for its digest, until u undoes both."""
        self.alike()
        for each in (RUN, "01TWO"):
            self.site.answer("POST", f"/v1/action-approvals/{each}/withdraw", {})
        self.columns = 120
        shown = self.view("\r", "t", "y", "y", "u")
        self.assertIn("2 × ship-update", shown[0])
        self.assertIn("Aileron: 2 pending", shown[0])
        self.assertIn("t all identical", shown[1])
        self.assertIn("y and d decide 2 together, for opencode (S), opencode (S).", shown[2])
        self.assertIn("Approve exactly this, 2 times, for opencode (S), opencode (S)? [y/N]", shown[3])
        self.assertIn("2 of 2 approved.", shown[4])
        self.assertIn("Undone; nothing was sent.", shown[5])
        sent = [*self.decided(), *self.site.bodies("POST", "/v1/action-approvals/01TWO/decide")]
        self.assertEqual([(each["approved"], each["digest"]) for each in sent], [(True, DIGEST), (True, "sha256:two")])
        self.assertTrue(all(each["not_before"] for each in sent))

    def test_together_changed(self) -> None:
        """Where the list has another version of what is open, nothing is decided together."""
        self.alike()
        listed = approval(digest="sha256:newer", identical=["01TWO"])
        two = approval(digest="sha256:two", identical=[RUN])
        items = [listed, {**two, "id": "01TWO", "run": {**two["run"], "id": "01TWO"}}]
        self.site.answer("GET", LIST, {"items": items, "cursor": None})
        shown = self.view("\r", "t")
        self.assertIn("y and d decide this request alone.", shown[-1])

    def test_together_denied(self) -> None:
        """A denial with a reason covers both, after a second t the open one alone, and none that comes later."""
        self.alike()
        self.view("\r", "t", "d", "no", "\r")
        two = "/v1/action-approvals/01TWO/decide"
        given = {"approved": False, "reason": "no"}
        self.assertEqual(self.decided(), [{**given, "digest": DIGEST}])
        self.assertEqual(self.site.bodies("POST", two), [{**given, "digest": "sha256:two"}])
        self.view("\r", "t", "t", "d", "\r")
        self.assertEqual((len(self.decided()), len(self.site.bodies("POST", two))), (2, 1))
        self.waits(approval())
        self.view("\r", "t", self.alike, "d", "\r")
        self.assertEqual((len(self.decided()), len(self.site.bodies("POST", two))), (3, 1))

    def test_anything_else(self) -> None:
        """Anything else decides nothing, and Escape alone is such a key."""
        for key in ("n", "\r", "\x1b", "q", " "):
            shown = self.view("\r", "y", key)
            self.assertIn("rows 1 to", shown[-1])
            self.assertIn("Nothing was decided; it is still pending.", shown[-1])
        self.assertEqual(self.decided(), [])

    def test_at_once(self) -> None:
        """Keys that come all at once, as from a paste, confirm nothing, also where the terminal marks a paste."""
        for keys in (("yy",), ("xy",), ("l+2h\ry",), ("y\0y",), ("y", "yy"), ("y", "y\0y"), ("y", PASTE.format("y"))):
            shown = self.view("\r", *keys)
            self.assertIn("Several keys arrived at once, so nothing was decided.", shown[-1])
        self.assertEqual(self.decided(), [])

    @settings(max_examples=15, deadline=None)
    @given(
        st.lists(
            st.sampled_from(("y", "n", "l", "d", "x", "u", "j", "k", " ", "b", "r", "\r", "\x7f", "z")), max_size=6
        )
    )
    def test_never_unread(self, keys: list[str]) -> None:
        """No keys approve what was not read to its end, nor without a y that stood alone after the question."""
        self.long(6)
        self.columns, self.rows = 40, 24
        self.site.answer("POST", "/v1/sessions/S/deny", {"session": {}, "denied": [], "left": []})
        before = len(self.decided())
        shown = self.view("\r", *keys)
        for body in self.decided()[before:]:
            if body["approved"]:
                asked = next(number for number, each in enumerate(shown) if "Approve exactly this" in each)
                self.assertIn("y", keys[asked - 1 :])
                self.assertTrue(any("read to t" in each for each in shown[:asked]))

    def test_typed_meanwhile(self) -> None:
        """What is typed while the daemon is asked is thrown away: it was not typed at what is shown then."""
        waiting: Deferred[Any] = Deferred()
        self.patch(Operator, "post", lambda *_given, **_named: waiting)
        shown = self.view("\r", "y", "y", "yyq", "q", lambda: waiting.callback(approval(approved=True)), "y")
        self.assertIn("Approved and completed.", shown[6])
        self.assertIn("1 pending", shown[7])

    def test_sequences(self) -> None:
        """A sequence that nobody knows is no key, and none of its letters is one either, in pieces or not."""
        for sequence in (
            "\x1b[15~",
            "\x1b[1;5C",
            "\x1b[<0;3;4M",
            "\x1b[99;99uy",
            "\x1by",
            "\x1b\0y",
            "\x1b[99\0;99\0uy",
            "\x01",
        ):
            shown = self.view("\r", "y", sequence, "q")
            self.assertNotIn("Approved", "".join(shown), repr(sequence))
        self.assertEqual(self.decided(), [])

    def test_later_and_back(self) -> None:
        """What is approved for later can be taken back by one key, wherever one is, but not while one types."""
        begins = "2026-01-01T02:00:00.000000Z"
        self.site.answer("POST", DECIDE, approval(run={**approval()["run"], "start_after": begins}))
        self.result({"status": "running", "run_id": RUN, "begins_at": begins})
        self.site.answer("POST", f"{ONE}/withdraw", {"status": "cancelled"})
        shown = self.view("u", "\r", "l", "+3\x7f2h\r", "y", "\r", "d", "u", "\x1b", "u", "u")
        self.assertEqual(self.decided()[0]["not_before"], "2026-01-01T02:01:40.000000Z")
        self.assertIn(f"starting {when('2026-01-01T02:01:40.000000Z')}?", shown[4])
        self.assertIn(f"it starts {when(begins)}", shown[5])
        self.assertIn("u undo approval", shown[5])
        self.assertIn("Undone; nothing was sent.", shown[10])
        self.assertEqual(len(self.site.bodies("POST", f"{ONE}/withdraw")), 1)

    def test_no_moment(self) -> None:
        """A moment that cannot be read, or none, decides nothing."""
        shown = self.view("\r", "l", "soon\r", "y", "n")
        self.assertIn("is not a time such as +2h", shown[3])
        self.assertIn("Approve exactly this? [y/N]", shown[4])
        self.assertIn("Nothing was decided", self.view("\r", "l", "\r", "y", "n")[-1])
        self.assertEqual(self.decided(), [])

    def test_deny(self) -> None:
        """A denial carries its reason, typed or pasted, or none; Escape goes back."""
        self.view("\r", "d", "too y\r")
        self.view("\r", "d", PASTE.format("loud\r\x07"), "\r")
        self.view("\r", "d", "x", "\x1b", "d", "\r")
        reasons = [{"reason": "too y"}, {"reason": "loud"}, {}]
        self.assertEqual(self.decided(), [{"approved": False, "digest": DIGEST, **each} for each in reasons])
        self.assertIn("Denied; nothing was sent.", self.shown[-1])

    def test_end_session(self) -> None:
        """x ends the session, and all that it asks is denied; of the operator's own run there is none to end."""
        self.site.answer("POST", "/v1/sessions/S/deny", {"session": {}, "denied": ["02RUN"], "left": []})
        shown = self.view("\r", "x", "n", "x", "y")
        self.assertIn("Deny all requests of session S, and end it? [y/N]", shown[2])
        self.assertEqual(len(self.site.bodies("POST", "/v1/sessions/S/deny")), 1)
        self.assertIn("Denied. Session S ended. Other requests denied: 1.", shown[-1])
        self.waits(approval(run={**approval()["run"], "session_id": None}))
        self.assertIn("there is none to end", self.view("\r", "x", "y")[2])
        self.assertEqual(len(self.decided()), 1)

    def test_back(self) -> None:
        """q and Escape go back to the list; of keys that come at once those behind one that asks do nothing."""
        for key in ("q", "\x1b"):
            self.assertIn("1 pending", self.view("\r", key)[-1])
        self.assertIn("rows 1 to", self.view("\rq")[-1])

    def test_changed_meanwhile(self) -> None:
        """What becomes another while it is read cannot be decided until r shows it anew, even after the first y."""
        others: list[dict[str, Any]] = [
            {"digest": "sha256:other"},
            {"stale": "The action was changed."},
            {"run": {**approval()["run"], "state": "denied"}},
        ]
        for changed in others:
            self.waits(approval())
            keys = ("y", "y", "l", "\r", "d", "\r", "x", "y", "e")
            shown = self.view("\r", "y", lambda changed=changed: self.waits(approval(**changed)), *keys)  # type: ignore[misc]
            self.assertIn("Press r to reload before you decide.", shown[3])
            self.assertIn("Press r to reload", shown[-1])
            self.assertEqual(self.decided(), [])
        self.waits(approval())
        self.view("\r", lambda: self.waits(approval(digest="sha256:other")), "r", "y", "y")
        self.assertEqual([body["digest"] for body in self.decided()], ["sha256:other"])

    def test_same(self) -> None:
        """The same changes nothing when the daemon is asked again; opening what is decided by now tells its state."""
        self.view("\r", "y", lambda: self.waits(approval(), approval(id="02RUN", digest="x")), "y")
        self.assertEqual(len(self.decided()), 1)
        self.site.answer("GET", ONE, approval(run={**approval()["run"], "state": "denied"}))
        self.assertIn("Already denied; nothing was decided.", self.view("\r")[-1])
        self.site.answer("GET", ONE, NotFound("There is no such run."))
        self.assertIn("There is no such run.", self.view("\r")[-1])

    def test_changed_at_the_end(self) -> None:
        """Where the daemon itself finds it changed, that is told and nothing can be decided until it is shown anew."""

        def changed(_body: object) -> Any:
            self.waits(approval(digest="sha256:other"))
            raise ApprovalStale("Review it again.")

        self.site.answer("POST", DECIDE, changed)
        shown = self.view("\r", "y", "y", "y", "y")
        self.assertEqual(len(self.decided()), 1)
        self.assertIn("Press r to reload", shown[-1])

    def test_edit(self) -> None:
        """The editor gets the terminal; what was written is sent with the digest that was shown, and shown anew."""
        run = {**approval()["run"], "arguments": {"channel": "#eng"}}
        self.waits(approval(run=run))
        edited = approval(run=run, digest="sha256:edited")

        def edit(_body: object) -> Any:
            self.waits(edited)
            return edited

        self.site.answer("POST", f"{ONE}/edit", edit)
        self.environ["EDITOR"] = "sed -i s/#eng/#ops/"
        self.environ["PATH"] = "/usr/bin:/bin"
        self.view("\r", "e", "y", "y")
        self.assertEqual(self.site.bodies("POST", f"{ONE}/edit"), [{"args": {"channel": "#ops"}, "digest": DIGEST}])
        self.assertEqual(self.decided(), [{"approved": True, "digest": "sha256:edited"}])
        self.assertEqual(self.sent.count("\x1b[?1049h"), 2)


class OfferTests(ScreenCase):
    """A spending limit is reached while somebody watches."""

    def test_raise(self) -> None:
        """What is reached rings and is told in the list; + asks with all numbers, and y raises just that."""
        shown = self.view("+", lambda: self.reached(limit()), "+", "y", self.reached)
        self.assertNotIn("raise", shown[1])
        self.assertIn("A spending limit is reached: tokens a day, 5,100 of 5,000 tokens used today.", shown[2])
        self.assertIn("+ raise limit  ↑↓ select", shown[2])
        self.assertEqual(self.sent.count("\a"), 1)
        asked = "Raise tokens a day by 5,000 to 10,000 tokens today? 5,100 of 5,000 tokens used. [y/N]"
        self.assertIn(asked, " ".join(shown[3].replace("↪", "").split()))
        self.assertEqual(self.site.bodies("POST", RAISE), [{"window": "2026-03-01", "by": 5000, "most": 5000}])
        self.assertIn("Raised to 10,000 tokens. The agent can go on.", shown[4])
        self.assertNotIn("raise limit", shown[5])

    def test_not_raised(self) -> None:
        """Anything but y raises nothing, nor does a paste, nor + in an open request; and nothing is decided by it."""
        self.reached(limit())
        shown = self.view("+", "n", "+", PASTE.format("y"), "+y", "+", "\x1b", "\r", "+", "y")
        self.assertIn("Nothing was changed.", shown[2])
        self.assertIn("Several keys arrived at once", shown[4])
        self.assertIn("Approve exactly this?", shown[10])
        self.assertEqual((self.site.bodies("POST", RAISE), self.decided()), ([], []))

    def test_small(self) -> None:
        """Where the question cannot be shown whole, nothing is raised."""
        self.reached(limit())
        self.columns = 20
        self.assertIn("too small", " ".join(self.view("+", "y")[-1].replace("↪", "").split()))
        self.columns = 24
        self.view("+", "y")
        self.assertEqual(len(self.site.bodies("POST", RAISE)), 1)

    def test_session(self) -> None:
        """A limit of a session names it and its agent, visibly; that of an ended session or of none is not offered."""
        told = {**SESSION, "agent": "co\u202edex", "state": "running"}
        self.site.answer("GET", "/v1/sessions/S", told)
        self.site.answer("GET", "/v1/sessions/E", {**told, "id": "E", "state": "ended"})
        self.site.answer("GET", "/v1/sessions/G", NotFound("There is no such session."))
        of_session = limit(per="session", window="S", unit="money", limit=2_500_000, most=2_500_000, used=9_000_000)
        self.reached(of_session, limit(), *({**of_session, "window": each} for each in ("", "E", "G")))
        shown = self.view("+", "+", "+", "y")
        self.assertIn("in session S of co\\u202edex. 1 more.", " ".join(shown[0].replace("↪", "").split()))
        where = ["by $2.50 to $5.00 in session S", "tokens today?", "by $2.50 to $5.00 in session S"]
        for place, words in enumerate(where, 1):
            self.assertIn(words, " ".join(shown[place].replace("↪", "").split()))
        self.assertEqual(self.site.bodies("POST", RAISE), [{"window": "S", "by": 2_500_000, "most": 2_500_000}])
        self.assertIn("More is used already: $9.00.", shown[4])

    def test_refused(self) -> None:
        """What the daemon refuses stands at the bottom, and the screen goes on; without a gateway there is no offer."""
        self.reached(limit())
        self.site.answer("POST", RAISE, Conflict("This limit was changed meanwhile. Look at it again."))
        shown = self.view("+", "y", lambda: self.site.answer("GET", LIMITS, NotFound("There are no limits.")))
        self.assertIn("This limit was changed meanwhile.", shown[2])
        self.assertEqual(("raise limit" in shown[2], "raise limit" in shown[3]), (True, False))
        self.assertNotIn("There are no limits", shown[3])


class TerminalTests(ScreenCase):
    """On a pseudo-terminal."""

    def setUp(self) -> None:
        super().setUp()
        self.keyboard, self.inside = pty.openpty()
        self.addCleanup(os.close, self.inside)
        self.before = termios.tcgetattr(self.inside)

    def play(self, *steps: Callable[[], object]) -> None:
        """Show the screen, let these happen, and hang up."""
        with redirect_stderr(io.StringIO()):
            asyncio.run(self._play_on_terminal(steps))

    async def _play_on_terminal(self, steps: Sequence[Callable[[], object]]) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(self.keyboard, lambda: os.read(self.keyboard, 65536))
        typed, shown = (open(self.inside, mode, encoding="utf-8", closefd=False) for mode in ("r", "w"))  # noqa: SIM115
        cli = attrs.evolve(self.cli_context(), pause=lambda seconds: deferLater(self.clock, seconds))
        output = Vt100_Output(shown, lambda: Size(8, 40), enable_cpr=False)
        screen = LiveScreen(cli, self.site.operator(OPERATOR_URL, TOKEN), Vt100Input(typed), output, bell=True)
        running = loop.create_task(_started(screen.run()))
        await _idle()
        self.assertFalse(termios.tcgetattr(self.inside)[3] & (termios.ICANON | termios.ECHO | termios.ISIG))
        for step in steps:
            step()
            await _idle()
            self.clock.advance(2)
            await _idle()
        loop.remove_reader(self.keyboard)
        if not running.done():
            os.close(self.keyboard)
            self.keyboard = -1
        await running

    def types(self, text: str) -> Callable[[], object]:
        """The step of typing this, which is over when it has come through."""
        return lambda: (os.write(self.keyboard, text.encode()), select.select([self.inside], [], [], 10))

    def test_restored(self) -> None:
        """However it ends, the terminal has the modes that it had."""
        self.play(self.types("q"))
        self.assertEqual(termios.tcgetattr(self.inside), self.before)
        end = Unauthorized("Nobody knows this token.")
        self.assertRaises(DaemonFault, self.play, lambda: self.site.answer("GET", LIST, end))
        self.assertEqual(termios.tcgetattr(self.inside), self.before)
        os.close(self.keyboard)

    def test_gone(self) -> None:
        """A terminal that is gone keeps nothing from ending."""
        self.play(self.types("\r"))
        self.assertEqual(self.keyboard, -1)

    def test_aside(self) -> None:
        """The editor gets a terminal that echoes and reads lines."""
        self.waits(approval(run={**approval()["run"], "arguments": {"channel": "#eng"}}))
        modes = Path(self.mktemp()).absolute()
        look = f"stty -a -F {os.ttyname(self.inside)} > {modes}"
        self.environ.update(EDITOR=f"sh -c '{look}'", PATH="/usr/bin:/bin")
        self.play(self.types("\r"), self.types("e"), self.types("q"), self.types("q"))
        self.assertLessEqual({"icanon", "echo", "isig", "icrnl"}, set(modes.read_text().replace(";", " ").split()))
        self.assertNotEqual(self.keyboard, -1)
        os.close(self.keyboard)


class RowsTests(SynchronousTestCase):
    def test_broken(self) -> None:
        """A long line goes on in a row with a mark, wide characters are two columns, ages are in large units."""
        self.assertEqual(rows_of(["abc", "12345digest", ""], 7), ["abc", "12345di", "↪ gest", ""])
        self.assertEqual((columns("ab"), columns("漢"), columns("ž"), columns("│")), (2, 2, 1, 2))
        self.assertEqual(rows_of(["漢漢漢漢"], 5), ["漢漢", "↪ 漢", "↪ 漢"])
        self.assertEqual([age(each) for each in (-5, 59, 60, 7200, 200_000)], ["0s", "59s", "1m", "2h", "2d"])

    def test_words_whole(self) -> None:
        """What is told is broken between words, and only what is longer than a row within one."""
        told = f"Approved; it starts today 20:53. To cancel it before then: aileron approval cancel {RUN:0>26}"
        first, second = wrap(told, 80, 4, grows=False)
        self.assertEqual((f"{first} {second.removeprefix('↪ ')}", second[:2]), (told, "↪ "))
        self.assertEqual(wrap("a" * 50, 20, 4, grows=False), ["a" * 20, "↪ " + "a" * 18, "↪ " + "a" * 12])
        self.assertEqual(wrap("one two " * 20, 20, 1, grows=False), ["one two one two on…"])

    def test_arguments(self) -> None:
        """A row shows the beginning of the arguments; that the approval changed is never cut."""
        item = approval(stale="The action changed.")
        item["run"] = {**item["run"], "arguments": {"channel": "#eng\x1b", "text": "long " * 40}}
        for width in (40, 80):
            row = approval_row(item, "codex", 1_767_225_700.0, width)
            self.assertTrue(row.endswith("CHANGED"), row)
            self.assertLessEqual(columns(row), width)
        self.assertIn("ship-update  channel=#eng␛ text=long", row)

    def test_judged(self) -> None:
        """A row shows the title, and the mark of its most severe warning; those to look at closely come first."""
        severities = {"high": "!!", "medium": "! ", "low": "  "}
        for severity, mark in severities.items():
            warnings = [{"severity": severity, "label": "X"}, {"severity": "high", "label": "Y", "standing": True}]
            item = approval(title="Post to #eng: hi", warnings=warnings)
            self.assertIn(f"codex                {mark} Post to #eng: hi", approval_row(item, "codex", 0.0, 80))
            self.assertEqual(list_warnings(item), "X")
        groups = [{"group": "routine", "id": 1}, {"group": "look_closely", "id": 2}, {"group": "routine", "id": 3}]
        self.assertEqual([each["id"] for each in sort_closely(groups)], [2, 1, 3])

    @settings(max_examples=80, deadline=None)
    @given(st.text(max_size=80), st.integers(min_value=6, max_value=40))
    def test_nothing_is_lost(self, text: str, width: int) -> None:
        """Every row fits, and together they are the line."""
        line = visible(text)
        rows = rows_of([line], width)
        self.assertTrue(all(columns(row) <= width for row in rows))
        self.assertEqual(rows[0] + "".join(row.removeprefix("↪ ") for row in rows[1:]), line)


class WatchTests(CommandCase):
    def test_no_terminal(self) -> None:
        """Without a terminal no passphrase is asked for, and the person is told what else there is."""

        def none() -> AbstractContextManager[Conversation]:
            raise InvalidRequest("There is no terminal.")

        self.serve()
        cli = attrs.evolve(self.cli_context(), terminal=none)
        self.patch(self, "cli_context", lambda: cli)
        code, _out, err = self.command("approval", "watch")
        self.assertEqual((code, self.site.asked), (1, []))
        self.assertIn("Cannot watch approvals: no terminal. Nothing was decided.", err)
        self.assertIn("aileron approval list", err)

    def test_no_library(self) -> None:
        """Without the library of the full screen a list is shown, and how to install it is told."""
        present = {name: module for name, module in sys.modules.items() if name == "prompt_toolkit"}
        self.addCleanup(sys.modules.update, present)
        if not present:
            self.addCleanup(sys.modules.pop, "prompt_toolkit")
        sys.modules["prompt_toolkit"] = None  # type: ignore[assignment]
        self.serve()
        self.environ["TERM"] = "xterm"
        cli = attrs.evolve(self.cli_context(), terminal=lambda: nullcontext(cast("Any", None)))
        self.patch(self, "cli_context", lambda: cli)
        self.patch(watch, "as_signed_in", lambda _cli, _descriptor, work: self._drive(work))
        self.site.answer("GET", "/v1/action-approvals?limit=200", {"items": [], "cursor": None})
        conversed: list[object] = []

        async def converse(*given: object) -> None:
            conversed.append(given)

        self.patch(watch, "converse", converse)
        code, _out, err = self.command("approval", "watch")
        self.assertEqual((code, len(conversed)), (0, 1), err)
        for command in ("pipx inject aileron prompt_toolkit", "uv tool install --with", "pip install prompt_toolkit"):
            self.assertIn(f"\n  {command}", err)

    def test_multiplexer(self) -> None:
        """In screen it is told, before anything is shown, who else can read it and type."""
        self.serve()
        self.environ["STY"] = "1.pts-0.here"
        cli = attrs.evolve(self.cli_context(), terminal=lambda: nullcontext(cast("Any", None)))
        self.patch(self, "cli_context", lambda: cli)
        self.patch(watch, "as_signed_in", lambda *_: None)
        code, _out, err = self.command("approval", "watch", "--plain")
        self.assertEqual((code, err.startswith("In screen, programs of yours outside a sandbox")), (0, True), err)


class ConverseTests(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.site.answer("GET", "/v1/action-approvals?limit=200", {"items": [approval()], "cursor": None})
        self.site.answer("GET", LIMITS, {"items": [], "readable": True})
        self.one_waits()

    def converse(self, *answers: str) -> str:
        """What is shown, given these answers."""
        self.typed = list(answers)
        cli = attrs.evolve(self.cli_context(), wall=lambda: 1_767_225_700.0)

        async def whole(links: Links) -> None:
            await converse(cli, links.operator(OPERATOR_URL, TOKEN))

        shown = io.StringIO()
        with redirect_stdout(shown), redirect_stderr(shown):
            cli.drive(whole)
        self.assertEqual(self.typed, [])
        return shown.getvalue()

    def decided(self) -> list[Any]:
        """What the daemon was told to decide."""
        return self.site.bodies("POST", DECIDE)

    def test_approve(self) -> None:
        """A number shows one whole; y and yes approve what was shown; d and x ask why, and x ends the session too."""
        shown = self.converse("1", "y", "y", "q")
        self.assertIn("POST https://slack.com/api/chat.postMessage", shown)
        self.assertEqual(self.decided(), [{"approved": True, "digest": DIGEST}])
        self.converse("1", "d", "too loud", "q")
        self.assertEqual(self.decided()[1:], [{"approved": False, "digest": DIGEST, "reason": "too loud"}])
        self.site.answer("POST", "/v1/sessions/S/deny", {"session": {}, "denied": [], "left": []})
        self.assertIn("Session S ended. Other requests denied: 0.", self.converse("1", "x", "", "q"))

    def test_together(self) -> None:
        """Identical requests are one row, which one answer decides, each for its own digest."""
        other = approval(digest="sha256:two", identical=[RUN])
        items = [approval(identical=["01TWO"]), {**other, "id": "01TWO", "run": {**other["run"], "id": "01TWO"}}]
        for query in ("?limit=200", "?limit=200&action=ship-update"):
            self.site.answer("GET", f"/v1/action-approvals{query}", {"items": items, "cursor": None})
        two = "/v1/action-approvals/01TWO/decide"
        self.site.answer("POST", two, approval())
        self.assertIn("2 × ship-update", self.converse("1", "ad", "no", "q"))
        self.assertEqual(self.decided(), [{"approved": False, "digest": DIGEST, "reason": "no"}])
        self.assertEqual(self.site.bodies("POST", two), [{"approved": False, "digest": "sha256:two", "reason": "no"}])

    def test_nothing(self) -> None:
        """Anything else decides nothing and lists again."""
        shown = self.converse("", "7", "x", "1", "", "1", "y", "n", "q")
        self.assertEqual((self.decided(), len(re.findall("ship-update .*01RUN", shown))), ([], 6))
        self.assertIn("Nothing was decided; it is still pending.", shown)

    def test_later(self) -> None:
        """l asks when; what is no moment decides nothing."""
        self.assertIn("is not a time such as +2h", self.converse("1", "l", "soon", "q"))
        self.converse("1", "l", "+2h", "y", "q")
        self.assertEqual([body["not_before"] for body in self.decided()], ["2026-01-01T02:01:40.000000Z"])

    def test_offer(self) -> None:
        """A limit that is reached is told, and + asks about it; what is refused is told, and n changes nothing."""
        self.site.answer("GET", LIMITS, {"items": [limit()], "readable": True})
        self.site.answer("POST", RAISE, limit())
        shown = self.converse("+", "n", "+", "y", "q")
        self.assertIn("A spending limit is reached: tokens a day, 5,100 of 5,000 tokens used today.", shown)
        self.assertIn("Raised to 10,000 tokens. The agent can go on.", shown)
        self.assertEqual(len(self.site.bodies("POST", RAISE)), 1)
        self.site.answer("POST", RAISE, Conflict("This limit was changed meanwhile."))
        self.assertIn("This limit was changed meanwhile.", self.converse("+", "y", "q"))
