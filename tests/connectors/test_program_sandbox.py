"""What a program of a connector cannot write in its sandbox, played with bubblewrap: what the user's programs obey."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from aileron.connectors import CommandConnector, CommandSpec, Confinement, Enclosure, Screened, system_transport
from aileron.connectors._schema import read_file
from aileron.daemon._connectors import ConnectorMaker
from aileron.model.connectors import Outcome
from aileron.model.errors import CapabilityDenied
from tests.connectors.sandboxed import require_sandbox

FILE = """
[connector]
name = "local://me/make"
version = "1.0.0"
kind = "command"

[command]
directory = "{directory}"
sandbox = "required"
{more}

[operations.test]
program = "{bash}"
arguments = ["-uc", "${{in.script}}"]
"""
BASH = shutil.which("bash") or "/bin/bash"
# Of each path whether the program could write there.
TRY = """
for path in {paths}; do
    mkdir -p "$(dirname "$path")" 2>/dev/null
    if echo evil 2>/dev/null >>"$path"; then echo "$path"; fi
done
"""


class ProgramSandboxTests(TestCase):
    """A repository of the user's, and a program that works in it or in a directory below."""

    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.root = Path(made.name).resolve()
        self.repository = self.root / "home" / "code"
        self.below = self.repository / "site"
        self.below.mkdir(parents=True)
        (self.root / "state").mkdir()
        for path in (".vscode/settings.json", ".venv/pyvenv.cfg", ".venv/bin/python", ".envrc", "Makefile"):
            (self.repository / path).parent.mkdir(exist_ok=True)
            (self.repository / path).touch()
        self.git("init", "-q")
        environment = {"HOME": str(self.root / "home"), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
        reactor = _running_reactor()
        self.maker = ConnectorMaker(
            reactor, system_transport(reactor, lambda: ()), str(self.root / "state"), environment=environment
        )
        require_sandbox(self.maker.sandbox)

    def git(self, *arguments: str, at: Path | None = None) -> None:
        """Run git as the user does."""
        environment = {"HOME": str(self.root / "home"), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", *arguments], cwd=at or self.repository, env=environment, check=True, capture_output=True)

    def connector(self, directory: Path, more: str = "") -> CommandConnector:
        """Make a connector that runs scripts there."""
        text = FILE.format(directory=directory, more=more, bash=BASH)
        spec = read_file(text.encode(), "make.toml").spec
        assert isinstance(spec, CommandSpec)
        return CommandConnector(spec, self.maker.reactor, self.maker.environment, self.maker.enclose)

    async def run_it(self, connector: CommandConnector, script: str) -> Outcome:
        """Run a script."""
        request = connector.prepare("test", {"script": script}, connector.spec.description.base_url or "", "k")
        return await Deferred.fromCoroutine(Screened(connector).invoke(request, None, 30))

    async def written(self, directory: Path, *paths: str, more: str = "") -> list[str]:
        """Which of these, relative to the repository, a program that works in C{directory} could write."""
        script = TRY.format(paths=" ".join(f"'{self.repository / path}'" for path in paths))
        outcome = await self.run_it(self.connector(directory, more), script)
        self.assertIsNone(outcome.fault, outcome)
        output: Any = outcome.output
        return [os.path.relpath(line, self.repository) for line in output["stdout"].splitlines()]

    async def test_below(self) -> None:
        """It writes the directory that its file declares, and nothing of the repository around that."""
        tried = (
            ".git/config",
            ".git/hooks/post-commit",
            ".envrc",
            ".vscode/tasks.json",
            ".venv/bin/python",
            "Makefile",
        )
        self.assertEqual(await self.written(self.below, *tried, "site/page.html"), ["site/page.html"])

    async def test_whole_repository(self) -> None:
        """It writes the repository if its file asks for that, but not what runs by itself there."""
        tried = (".git/config", ".git/hooks/post-commit", ".envrc", ".vscode/tasks.json", ".venv/bin/python")
        found = await self.written(self.below, *tried, "Makefile", "site/page.html", more="repository = true")
        self.assertEqual(found, ["Makefile", "site/page.html"])

    async def test_at_the_top(self) -> None:
        """Where its directory is the repository's own, the same is protected, in other repositories in it as well."""
        (self.repository / "lib").mkdir()
        self.git("init", "-q", at=self.repository / "lib")
        tried = (".git/config", ".git/hooks/x", "lib/.git/config", ".envrc", ".venv/bin/python", "lib/own.c")
        self.assertEqual(await self.written(self.repository, *tried), ["lib/own.c"])

    async def test_named_by_settings(self) -> None:
        """Hooks and programs that git's settings name are protected, named from the repository's top as they are."""
        (self.below / "filter.sh").touch()
        self.git("config", "core.hooksPath", "site/hooks")
        self.git("config", "filter.x.clean", "site/filter.sh")
        tried = ("site/hooks/pre-commit", "site/filter.sh", "site/page.html")
        self.assertEqual(await self.written(self.below, *tried), ["site/page.html"])

    async def test_in_git(self) -> None:
        """A directory among a repository's own files is none to run in, and not written with the repository."""
        with self.assertRaises(CapabilityDenied) as raised:
            await self.written(self.repository / ".git/hooks", ".git/hooks/post-commit")
        self.assertIn("cannot protect a repository", raised.exception.message)
        found = await self.written(self.repository / ".git/hooks", ".git/hooks/x", more="repository = true")
        self.assertEqual(found, [])

    async def test_replaced_meanwhile(self) -> None:
        """What takes the place of a directory while the sandbox is made is not mounted: nothing is run."""
        other = self.root / "home" / "private"
        other.mkdir()
        (self.below / "lib").mkdir()
        self.git("init", "-q", at=self.below / "lib")
        connector = self.connector(self.below)
        enclosure = self.maker.enclose(str(self.below), False, False)

        async def confine() -> Confinement:
            built = await enclosure.confine()
            (self.below / "lib").rename(self.below / "moved")
            (self.below / "lib").symlink_to(other)
            return built

        raced = evolve(connector, enclose=lambda *_: _with(enclosure, confine))
        outcome = await self.run_it(raced, f"echo evil >{other}/x")
        self.assertFalse(outcome.sent, outcome)
        self.assertEqual(list(other.iterdir()), [])

    async def test_changes(self) -> None:
        """What it made that other programs obey by themselves is noted with the run."""
        outcome = await self.run_it(self.connector(self.below), "git init -q lib; echo x >.npmrc; echo x >page.html")
        self.assertEqual(outcome.notes["changed"], [f"{self.below}/lib/.git", f"{self.below}/.npmrc"])

    async def test_outdated(self) -> None:
        """A sandbox is outdated once another file has taken the place of one that it protects."""
        (self.below / ".envrc").write_text("one")
        built = await self.maker.enclose(str(self.below), False, False).confine()
        self.assertTrue(built.is_current())
        (self.below / ".envrc").rename(self.below / "old")
        (self.below / ".envrc").write_text("two")
        self.assertFalse(built.is_current())


def _with(enclosure: Enclosure, confine: Any) -> Enclosure:
    return evolve(enclosure, confine=confine)


def _running_reactor() -> Any:
    from twisted.internet import reactor

    return reactor
