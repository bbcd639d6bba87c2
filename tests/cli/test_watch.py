"""The command, and the conversation on a terminal that can do no more than lines."""

from __future__ import annotations

import io
import sys
from contextlib import AbstractContextManager, nullcontext, redirect_stderr, redirect_stdout
from typing import Any, cast

import attrs

from aileron.cli._context import Conversation, Links
from aileron.cli.approvals.watch import converse
from aileron.errors import InvalidRequest
from tests.cli.daemon import DECIDE, DIGEST, OPERATOR_URL, TOKEN, CommandCase, approval


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
        self.assertIn("There is no terminal to watch in; nothing was decided.", err)
        self.assertIn("aileron approval list", err)

    def test_no_library(self) -> None:
        """Without the library of the full screen no passphrase is asked for, and the person is told what to install."""
        present = {name: module for name, module in sys.modules.items() if name == "prompt_toolkit"}
        self.addCleanup(sys.modules.update, present)
        if not present:
            self.addCleanup(sys.modules.pop, "prompt_toolkit")
        sys.modules["prompt_toolkit"] = None  # type: ignore[assignment]
        self.serve()
        self.environ["TERM"] = "xterm"
        cli = attrs.evolve(self.cli_context(), terminal=lambda: nullcontext(cast("Any", None)))
        self.patch(self, "cli_context", lambda: cli)
        code, _out, err = self.command("approval", "watch")
        self.assertEqual((code, self.site.asked), (1, []))
        self.assertIn("`pip install 'aileron[terminal]'`", err)
        self.assertIn("aileron approval watch --plain", err)


class ConverseTests(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.site.answer("GET", "/v1/action-approvals?limit=200", {"items": [approval()], "cursor": None})
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
        """A number shows one whole; y and yes approve what was shown."""
        shown = self.converse("1", "y", "y", "q")
        self.assertIn("POST https://slack.com/api/chat.postMessage", shown)
        self.assertEqual(self.decided(), [{"approved": True, "digest": DIGEST}])

    def test_nothing(self) -> None:
        """Anything else decides nothing and lists again."""
        shown = self.converse("", "7", "x", "1", "", "1", "y", "n", "q")
        self.assertEqual((self.decided(), shown.count("ship-update  01RUN")), ([], 6))
        self.assertIn("Nothing was decided; it still waits.", shown)

    def test_later(self) -> None:
        """l asks when; what is no moment decides nothing."""
        self.assertIn("is neither such as +2h", self.converse("1", "l", "soon", "q"))
        self.converse("1", "l", "+2h", "y", "q")
        self.assertEqual([body["not_before"] for body in self.decided()], ["2026-01-01T02:01:40.000000Z"])

    def test_deny(self) -> None:
        """d and x ask why; x ends the session too."""
        self.converse("1", "d", "too loud", "q")
        self.assertEqual(self.decided(), [{"approved": False, "digest": DIGEST, "reason": "too loud"}])
        self.site.answer("POST", "/v1/sessions/S/deny", {"session": {}, "denied": [], "left": []})
        self.assertIn("the session S is ended", self.converse("1", "x", "", "q"))
