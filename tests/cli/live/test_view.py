"""The view at work, against a daemon in memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any, TypeAlias

import attrs
from twisted.internet.defer import Deferred

from aileron.cli._context import Links
from aileron.cli.approvals.live_model import ENTER, Row, Size
from aileron.cli.approvals.live_screen import TerminalScreen
from aileron.cli.approvals.live_view import LiveView
from aileron.client import DaemonFault
from aileron.errors import ApprovalStale, NotFound, StoreUnavailable, Unauthorized
from tests.cli.daemon import DIGEST, OPERATOR_URL, RUN, SESSION, TOKEN, CommandCase, approval

ONE = f"/v1/action-approvals/{RUN}"
LIST = "/v1/action-approvals?limit=200"
DECIDE = f"{ONE}/decide"

Typed: TypeAlias = str | Callable[[], None]
"""What is typed at once, or what happens while nothing is."""

_NAMES = {"\r": ENTER}


class ScriptedScreen(TerminalScreen):
    """A screen whose person types a script, then goes away.

    :ivar shown: all that was drawn, one text a time.
    """

    def __init__(self, script: Sequence[Typed]) -> None:
        self.script = list(script)
        self.shown: list[str] = []
        self.aside_with: list[str] = []
        self.rung = self.woken = self.forgotten = 0
        self.sized = Size(100, 60)

    def size(self) -> Size:
        """A large one, at first."""
        return self.sized

    def draw(self, rows: Sequence[Row]) -> None:
        """Keep it."""
        self.shown.append("\n".join(row.text for row in rows))

    def ring(self) -> None:
        """Count it."""
        self.rung += 1

    def wake(self) -> None:
        """Nobody waits here."""
        self.woken += 1

    def forget(self) -> None:
        """Nothing is typed ahead here."""
        self.forgotten += 1

    async def typed(self, seconds: float) -> Sequence[str] | None:
        """The next of the script."""
        if not self.script:
            return None
        found = self.script.pop(0)
        if isinstance(found, str):
            return [_NAMES.get(key, key) for key in found]
        found()
        return []

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Nothing else is done with it."""
        self.aside_with.append(self.shown[-1])
        yield


class ViewCase(CommandCase):
    """One approval waits."""

    def setUp(self) -> None:
        super().setUp()
        self.now = 0.0
        self.waits(approval())
        self.site.answer("GET", "/v1/sessions/S", SESSION)
        self.site.answer("GET", "/v1/events", NotFound("There is no such stream."))
        self.site.answer("POST", DECIDE, approval(approved=True))
        self.result({"status": "completed", "run_id": RUN, "result": {"output": {}, "steps": {}}})

    def waits(self, *items: dict[str, Any]) -> None:
        """These wait."""
        self.site.answer("GET", LIST, {"items": list(items), "cursor": None})
        for item in items:
            self.site.answer("GET", f"/v1/action-approvals/{item['id']}", item)

    def result(self, given: dict[str, Any]) -> None:
        """How it ends."""
        self.site.answer("GET", f"{ONE}/result?wait=3", given)
        self.site.answer("GET", f"{ONE}/result", given)

    def tick(self) -> None:
        """So much time passes that the daemon is asked again."""
        self.now += 2.0

    def view(self, *script: Typed, bell: bool = True) -> ScriptedScreen:
        """The screen after a script."""
        self.screen = screen = ScriptedScreen(list(script))
        cli = attrs.evolve(
            self.cli_context(), seconds=lambda: self.now, wall=lambda: 1_767_225_700.0, pause=lambda _: Deferred()
        )

        async def whole(links: Links) -> None:
            await LiveView(cli, screen, links.operator(OPERATOR_URL, TOKEN), bell=bell).run()

        with redirect_stderr(io.StringIO()):
            cli.drive(whole)
        return screen

    def decided(self) -> list[Any]:
        """What the daemon was told to decide."""
        return self.site.bodies("POST", DECIDE)


class FollowTests(ViewCase):
    def test_list(self) -> None:
        """What waits is listed with its agent; what comes is added and rings, what goes is taken away."""

        def more() -> None:
            self.tick()
            self.waits(approval(), approval(id="02RUN"))

        def less() -> None:
            self.tick()
            self.waits()

        screen = self.view("", more, less)
        self.assertIn("1 waiting for you", screen.shown[0])
        self.assertIn("opencode", screen.shown[0])
        self.assertIn("2 waiting for you", screen.shown[2])
        self.assertIn("Nothing waits for you.", screen.shown[3])
        self.assertEqual(screen.rung, 1)

    def test_heard(self) -> None:
        """What the daemon tells of wakes the view, and what only shows that it is there does not."""
        told = b"event: ready\ndata: {}\n\n: still here\n\nevent: record\n\n"
        self.site.answer("GET", "/v1/events", lambda _: told)
        self.assertEqual(self.view("").woken, 2)

    def test_no_bell(self) -> None:
        """Without the bell nothing rings."""

        def more() -> None:
            self.tick()
            self.waits(approval(), approval(id="02RUN"))

        self.assertEqual(self.view(more, bell=False).rung, 0)

    def test_busy(self) -> None:
        """A daemon that cannot answer for a moment is asked again, and the news of it goes."""

        def away() -> None:
            self.tick()
            self.site.answer("GET", LIST, StoreUnavailable("The database is busy."))

        def back() -> None:
            self.tick()
            self.waits(approval())

        screen = self.view(away, back)
        self.assertIn("The database is busy. It is asked again.", screen.shown[1])
        self.assertNotIn("busy", screen.shown[2])

    def test_login_ended(self) -> None:
        """When the login has ended the view ends with what the daemon says of it."""
        self.site.answer("GET", LIST, Unauthorized("Nobody knows this token."))
        self.assertRaises(DaemonFault, self.view)


class DecideTests(ViewCase):
    def test_whole(self) -> None:
        """What is open shows all that `approval show` shows, foreign text made visible."""
        shown = self.view("\r").shown[1]
        printed = self.command_shown()
        self.assertEqual([line for line in printed if line not in shown], [])
        self.assertIn("two\\u202e", shown)

    def command_shown(self) -> list[str]:
        """The lines of C{approval show}."""
        self.serve()
        return self.as_operator("approval", "show", RUN)[1].splitlines()

    def test_approve(self) -> None:
        """What was read and confirmed is approved by the digest that was shown; the outcome is told."""
        screen = self.view("\r", "y", "y")
        self.assertEqual(self.decided(), [{"approved": True, "digest": DIGEST}])
        self.assertIn("Approved, and done.", screen.shown[-1])
        self.assertEqual(screen.forgotten, 2, "what was typed meanwhile must be thrown away")

    def test_smaller_meanwhile(self) -> None:
        """A terminal that became smaller while the daemon was asked shows what fits, and only that counts as read."""

        def shrink(_body: object) -> Any:
            self.screen.sized = Size(100, 6)
            return approval()

        self.site.answer("GET", ONE, shrink)
        screen = self.view("\r", "y", "y")
        self.assertEqual(len(screen.shown[1].split("\n")), 6)
        self.assertIn("Space shows more", screen.shown[1])
        self.assertEqual(self.decided(), [])

    def test_later_and_back(self) -> None:
        """What is approved for later can be taken back by one key."""
        begins = "2026-01-01T02:00:00.000000Z"
        self.site.answer("POST", DECIDE, approval(run={**approval()["run"], "start_after": begins}))
        self.result({"status": "running", "run_id": RUN, "begins_at": begins})
        self.site.answer("POST", f"{ONE}/withdraw", {"status": "cancelled"})
        screen = self.view("\r", "l", "+2h\r", "y", "u")
        self.assertEqual(self.decided()[0]["not_before"], "2026-01-01T02:01:40.000000Z")
        self.assertIn(f"it begins at {begins}", screen.shown[-2])
        self.assertIn("Taken back; nothing was sent.", screen.shown[-1])
        self.assertEqual(len(self.site.bodies("POST", f"{ONE}/withdraw")), 1)

    def test_no_moment(self) -> None:
        """A moment that cannot be read decides nothing."""
        screen = self.view("\r", "l", "soon\r", "y")
        self.assertEqual(self.decided(), [])
        self.assertIn("Nothing was decided.", screen.shown[-1])

    def test_deny(self) -> None:
        """A denial carries its reason."""
        screen = self.view("\r", "d", "too loud\r")
        self.assertEqual(self.decided(), [{"approved": False, "digest": DIGEST, "reason": "too loud"}])
        self.assertIn("Denied; nothing was sent.", screen.shown[-1])

    def test_flood(self) -> None:
        """The session is ended, and all that it asks is denied."""
        self.site.answer("POST", DECIDE, approval())
        self.site.answer("POST", "/v1/sessions/S/deny", {"session": {}, "denied": ["02RUN"], "left": []})
        screen = self.view("\r", "x", "y")
        self.assertEqual(len(self.site.bodies("POST", "/v1/sessions/S/deny")), 1)
        self.assertIn("Denied, with 1 more; the session S is ended", screen.shown[-1])

    def test_changed_meanwhile(self) -> None:
        """What becomes another while it is looked at cannot be decided, even after the first y."""

        def change() -> None:
            self.tick()
            self.waits(approval(digest="sha256:other"))

        screen = self.view("\r", "y", change, "y", "y")
        self.assertEqual(self.decided(), [])
        self.assertIn("It changed while you looked.", screen.shown[-1])

    def test_changed_at_the_end(self) -> None:
        """Where the daemon itself finds it changed, that is told and nothing can be decided until it is shown anew."""

        def changed(_body: object) -> Any:
            self.waits(approval(digest="sha256:other"))
            raise ApprovalStale("Look at it again.")

        self.site.answer("POST", DECIDE, changed)
        screen = self.view("\r", "y", "y", "y", "y")
        self.assertEqual(len(self.decided()), 1)
        self.assertIn("Look anew: r", screen.shown[-1])

    def test_gone(self) -> None:
        """Opening what is decided by now tells its state."""
        self.site.answer("GET", ONE, approval(run={**approval()["run"], "state": "denied"}))
        self.assertIn("This is denied already.", self.view("\r").shown[-1])
        self.site.answer("GET", ONE, NotFound("There is no such run."))
        self.assertIn("There is no such run.", self.view("\r").shown[-1])

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
        screen = self.view("\r", "e", "y", "y")
        self.assertEqual(self.site.bodies("POST", f"{ONE}/edit"), [{"args": {"channel": "#ops"}, "digest": DIGEST}])
        self.assertEqual(self.decided(), [{"approved": True, "digest": "sha256:edited"}])
        self.assertEqual(len(screen.aside_with), 1)
