"""What the play is made of: sound files, an honest chat, faults that keep their names."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from contextlib import redirect_stdout
from importlib.resources import files
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import check as action_faults
from aileron.cli.approvals.approval import approval as approval_command
from aileron.connectors import check as connector_faults
from aileron.features.demo._agent import only_cause
from aileron.features.demo._chat import Room
from aileron.features.demo._stage import print_output, print_quoted, script
from aileron.features.demo.play import decide, play
from aileron.model.errors import InternalError, InvalidRequest, NotFound

_DATA = Path(str(files("aileron.features.demo"))) / "data"


class DataTests(SynchronousTestCase):
    def test_action(self) -> None:
        """The shipped action is sound, and gated."""
        self.assertEqual(action_faults(str(_DATA / "ship-update.md")), [])
        self.assertIn("[approval]\nrequired = true", (_DATA / "ship-update.md").read_text())

    def test_connector(self) -> None:
        """The shipped connector is sound, and talks only where its binding says."""
        self.assertEqual(connector_faults(_DATA / "team-chat.toml"), [])
        self.assertIn("hosts = []", (_DATA / "team-chat.toml").read_text())


class ChatTests(SynchronousTestCase):
    def test_same_id(self) -> None:
        """The same id twice is one message: the connector declares the operation idempotent."""
        chat = Room()
        message = {"id": "1", "channel": "#c", "text": "t"}
        self.assertEqual(chat.post(message), chat.post(message))
        chat.post({**message, "id": "2"})
        self.assertEqual([each["number"] for each in chat.messages.values()], [1, 2])

    def test_malformed(self) -> None:
        """A message without its parts is refused."""
        chat = Room()
        self.assertRaises(KeyError, chat.post, {"id": "1"})
        self.assertEqual(chat.messages, {})


class PlayTests(SynchronousTestCase):
    def test_only_cause(self) -> None:
        """A fault keeps its name through the groups around it; several stay together."""
        fault = InternalError("x")
        self.assertIs(only_cause(ExceptionGroup("a", [ExceptionGroup("b", [fault])])), fault)
        both = ExceptionGroup("a", [fault, ValueError()])
        self.assertIs(only_cause(both), both)

    def test_nobody_to_ask(self) -> None:
        """Without a terminal or an answer nothing begins."""
        for nobody in (None, StringIO()):
            self.patch(sys, "stdin", nobody)
            self.assertRaises(InvalidRequest, play, {})

    def test_answered(self) -> None:
        """Whoever says yes or no, here or beforehand, has that decided by a command, for the digest that was shown."""
        for answer, typed, word, more in (
            (True, "", "approve", {"yes": True}),
            (False, "", "deny", {"reason": "Not today."}),
            (None, "y\n", "approve", {"yes": True}),
            (None, "n\n", "deny", {"reason": "Not today."}),
            (None, "\nwhat?\ny\n", "approve", {"yes": True}),
        ):
            decided, options = self.decided(answer, typed)
            self.assertEqual((decided, options), (word, {**options, "approval_ids": ("x",), "digest": "d", **more}))

    def test_undecided(self) -> None:
        """Enter alone, another word, and a browser where there is none decide nothing; nor does a closed terminal."""
        for typed, told in (("\n", "Type y, n or b."), ("b\n", "No browser was found on this machine.")):
            with self.assertRaises(InvalidRequest) as raised:
                self.decided(None, typed, browser=False)
            self.assertIn("the terminal was closed", raised.exception.message)
            self.assertIn(told, self.told.getvalue())
            self.assertEqual(len(self.ran), 2, "something was decided")

    def test_quoted(self) -> None:
        """A command is shown as it would be typed."""
        self.decided(False, "")
        self.assertIn("aileron deny --reason 'Not today.' x", self.told.getvalue())

    def decided(self, answer: bool | None, typed: str, *, browser: bool = True) -> tuple[str, dict[str, Any]]:
        """The command that decided, and what its own options are."""
        self.ran, self.told = list[tuple[str, ...]](), StringIO()
        ran = self.ran

        async def as_operator(*arguments: str) -> str:
            ran.append(arguments)
            return json.dumps({"items": [{"id": "x", "digest": "d", "review_url": "u"}]})

        async def play_on() -> None:
            calling = asyncio.get_running_loop().create_future()
            scene = cast("Any", SimpleNamespace(as_operator=as_operator))
            await decide(scene, cast("Any", calling), answer, browser=browser)

        reading, writing = os.pipe()
        with open(writing, "w", encoding="utf-8") as keyboard:
            keyboard.write(typed)
        with open(reading, encoding="utf-8") as terminal, redirect_stdout(self.told):
            self.patch(sys, "stdin", terminal)
            asyncio.run(play_on())
        word, *options = ran[-1]
        return word, approval_command.commands[word].make_context(word, options).params

    def test_not_installed(self) -> None:
        """A command that is missing is named."""
        error = self.assertRaises(NotFound, script, "aileron-nowhere")
        self.assertIn("aileron-nowhere is not installed", error.message)

    def test_foreign_text(self) -> None:
        """What others said cannot act on the terminal, and stands behind a margin."""
        out = io.StringIO()
        with redirect_stdout(out):
            print_quoted("a\x1b[2J\nb")
            print_output("c\x1b")
        self.assertEqual(out.getvalue(), "     │ a␛[2J\n     │ b\n   c␛\n")
