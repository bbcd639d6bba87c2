"""What the shell completes, and what it is never told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
from click.shell_completion import BashComplete

from aileron.cli._main import aileron
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from tests.cli.daemon import CommandCase

_BASH = """
eval "$(aileron completion bash)"
COMP_WORDS=({words})
COMP_CWORD={number}
_aileron_completion aileron
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


class CompletionCase(CommandCase):
    """A home with an action and a connector."""

    def setUp(self) -> None:
        super().setUp()
        self.write(self.home.actions / "hello.md", '+++\nname = "say-hello"\n+++\n')
        self.write(self.home.connectors / "chat.toml", '[connector]\nname = "local://me/chat"\n')

    def write(self, path: Path, text: str) -> None:
        """Put a file into the home."""
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def completed(self, *words: str) -> list[str]:
        """What the last word may become."""
        complete = BashComplete(aileron, {"obj": self.cli_context()}, "aileron", "_AILERON_COMPLETE")
        return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


class NamesTests(CompletionCase):
    def test_names(self) -> None:
        """Commands, options, and actions and connectors by the names that their files give them are completed."""
        for words in (
            ("action", "show"),
            ("action", "run"),
            ("action", "trust"),
            ("action", "distrust"),
            ("cap", "set"),
        ):
            self.assertEqual(self.completed(*words, "say"), ["say-hello"], words)
        self.assertEqual(self.completed("connector", "trust", ""), ["local://me/chat"])
        self.assertEqual(self.completed("connector", "show", "builtin://sl"), ["builtin://slack"])
        self.assertEqual(self.completed("runs", "list", "--state", "unk"), ["unknown"])
        self.assertEqual(self.completed("launch", "op"), ["opencode"])
        self.assertEqual(self.completed("import", "vs"), ["vscode"])
        for words in (("launch", "--own-tools"), ("own-tools", "add")):
            self.assertEqual(self.completed(*words, "gith"), ["github"])
        self.assertEqual(self.completed("appr"), ["approve", "approval", "approver"])
        self.assertEqual(self.completed("approval", "wa"), ["watch"])
        self.assertIn("--reason", self.completed("approval", "deny", "--"))

    def test_no_more_than_a_name(self) -> None:
        """What a shell would read as more than a name is left out, and a file that is none of ours is not read."""
        for number, name in enumerate(("$(touch x)", "a b", "a;b", "-x", "a\\\\nb", "*", "\u202ea", "a" * 300)):
            self.write(self.home.actions / f"{number}.md", f'+++\nname = "{name}"\n+++\n')
        self.assertEqual(self.completed("action", "show", ""), ["say-hello"])
        (self.home.actions / "pipe.md").symlink_to("/dev/zero")
        self.assertEqual(self.completed("action", "show", ""), ["say-hello"])

    def test_providers(self) -> None:
        """Providers of the gateway are completed while the daemon runs, by the launch key alone."""
        self.assertNotIn("gateway://openai", self.completed("binding", "setup", ""))
        self.serve()
        self.site.answer("GET", "/v1/status", {"gateway": {"providers": [{"name": "openai"}]}})
        self.assertIn("gateway://openai", self.completed("binding", "setup", ""))
        self.assertEqual(self.site.asked, [])

    def test_silent(self) -> None:
        """Where something fails nothing of it is completed, and nothing is said; nobody is asked for a passphrase."""

        def away(_url: str, _path: str, _token: str | None) -> Any:
            raise CommandError("No daemon responds.")

        self.serve()
        cli = attrs.evolve(self.cli_context(), probe=away)
        self.patch(self, "cli_context", lambda: cli)
        self.assertEqual(self.completed("binding", "setup", "gateway"), [])
        nowhere = CliContext({})
        self.patch(self, "cli_context", lambda: nowhere)
        self.assertEqual(self.completed("action", "show", ""), [])
        self.assertEqual(self.completed("approval", "show", ""), [])


class ScriptTests(CompletionCase):
    def test_shells(self) -> None:
        """Each shell has its script, by which bash itself completes a command and a name; another is a usage error."""
        for shell, part in (("zsh", "#compdef aileron"), ("fish", "complete --no-files --command aileron")):
            self.assertIn(part, self.command("completion", shell)[1])
        self.assertEqual(self.command("completion", "tcsh")[0], 2)
        self.assertEqual(self.in_bash("aileron", "approval", "wa"), ["watch"])
        self.assertEqual(self.in_bash("aileron", "action", "show", "say"), ["say-hello"])

    def in_bash(self, *words: str) -> list[str]:
        """What bash's own function finds."""
        programs = Path(self.mktemp()).absolute()
        programs.mkdir()
        (programs / "aileron").write_text(f'#!/bin/sh\nexec {sys.executable} -m aileron "$@"\n')
        (programs / "aileron").chmod(0o700)
        quoted = " ".join(f"'{word}'" for word in words)
        paths = os.pathsep.join(filter(None, sys.path))
        environ = {**self.environ, "PATH": f"{programs}:/usr/bin:/bin", "PYTHONPATH": paths}
        script = _BASH.format(words=quoted, number=len(words) - 1)
        found = subprocess.run(
            ["bash", "--norc", "-c", script], env=environ, capture_output=True, text=True, check=True, timeout=60
        )
        self.assertEqual(found.stderr, "")
        return found.stdout.split()
