"""A user who launches a hostile program in the agent's place, in a sandbox."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import attrs
from twisted.internet.defer import Deferred

from aileron.home.lock import running_pid
from aileron.home.paths import Home as State
from tests.functional.home import Home, installed
from tests.functional.operated import OperatedTestCase
from tests.functional.process import Command, Finished

_IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_NOSYSTEM": "1",
}
_PYTHON = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
# In the agent's place: runs the script that it is given.
_SHELL = """
import json, os, sys
os.execvp("bash", ["bash", "-euc", json.loads(sys.argv[-1])])
"""


class SandboxTestCase(OperatedTestCase):
    """C{aileron launch --sandbox}, with a program of the test's as the agent.

    A root runs these with its rights: without them it could make no sandbox, as any other user can.
    """

    @property
    def programs(self) -> Path:
        """Where the program lies that passes for the agent."""
        return self.home.root / "programs"

    def put_agent(self, source: str, interpreter: str = f"{_PYTHON} -I") -> None:
        """Have C{opencode} be this program.

        :param interpreter: not that of the test's own environment, which a sandbox hides where it lies below
            C{/tmp} or C{/var/tmp} and Aileron is launched from another environment.
        """
        self.programs.mkdir(exist_ok=True)
        (self.programs / "opencode").write_text(f"#!{interpreter}\n{source}")
        (self.programs / "opencode").chmod(0o700)

    def agent(self, given: Any, *options: str, project: Path | None = None) -> Command:
        """The command by which the user launches it; C{given} is its last argument, as JSON."""
        command = self.home.script("aileron", "launch", *options, "opencode", "run", json.dumps(given))
        path = f"{self.programs}:{command.environment['PATH']}"
        environment = {**command.environment, **_IDENTITY, "PATH": path}
        return attrs.evolve(command, environment=environment, directory=project or command.directory)

    async def run_command(self, command: Command, seconds: float = 150) -> Finished:
        """Run a command to its end; the launcher is forked, which spares more than half of its work."""
        program, *rest = command.arguments
        if program == installed("aileron") and not command.terminal and not command.feeds:
            command = attrs.evolve(command, arguments=(*self.forked("aileron"), *rest))
        return await super().run_command(command, seconds)

    async def run_in(self, given: Any, project: Path | None = None) -> Finished:
        """What came of it in the sandbox."""
        finished = await self.run_command(self.agent(given, "--sandbox", project=project), 60)
        self.assertEqual(finished.exit_code, 0, f"{finished.stdout}\n{finished.stderr}")
        return finished

    async def refused(self, command: Command) -> str:
        """Why the agent was not started in the sandbox."""
        finished = await self.run_command(command, 60)
        self.assertEqual((finished.exit_code, finished.stdout), (1, ""), finished)
        return " ".join(finished.stderr.split())


class ProjectTestCase(SandboxTestCase):
    """Projects with a repository, and an agent that runs a shell script in one; the daemon outlives a test."""

    _shared: ClassVar[Home | None] = None

    def setUp(self) -> Any:
        """Begin."""
        super().setUp()
        return Deferred.fromCoroutine(self.begin())

    async def begin(self) -> None:
        """Have a daemon that keeps no sandbox of an earlier test, and the agent."""
        shared = self._shared or await self._furnish_shared()
        self.home = attrs.evolve(self.home, state=shared.aileron)
        self.state = State(self.home.aileron)
        sandboxes = self.home.aileron / "sandboxes"
        if sandboxes.exists():  # perhaps with what is too deep for Python
            subprocess.run(["/usr/bin/find", sandboxes, "-mindepth", "1", "-delete"], check=True)
        self.put_agent(_SHELL)

    async def _furnish_shared(self) -> Home:
        mine, self.home = self.home, Home.make()
        atexit.register(shutil.rmtree, self.home.root)
        self.state = State(self.home.aileron)
        await self.furnish()
        atexit.register(_end, self.state)
        ProjectTestCase._shared, self.home = self.home, mine
        return ProjectTestCase._shared

    async def kill_daemon(self) -> None:
        """Leave the daemon to the next test."""

    @property
    def marker(self) -> Path:
        """A file that a program can make outside of the sandbox only."""
        return self.home.root / "ran"

    def project(self, name: str, script: str = "") -> Path:
        """A project with one commit, after C{script} was run in it."""
        path = self.home.root / "projects" / name
        path.mkdir(parents=True)
        self.outside(path, "git init -qb main && echo one >file && git add file && git commit -qm one")
        self.outside(path, script)
        return path

    def outside(self, project: Path, script: str) -> str:
        """What a script of the user's prints, run in the project."""
        environment = {
            **_IDENTITY,
            "HOME": str(self.home.user),
            "PATH": os.environ["PATH"],
            "MARKER": str(self.marker),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "protocol.file.allow",
            "GIT_CONFIG_VALUE_0": "always",
        }
        bash = shutil.which("bash") or "bash"
        ran = subprocess.run(
            [bash, "-euc", script],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(ran.returncode, 0, f"{script}\n{ran.stdout}\n{ran.stderr}")
        return ran.stdout

    async def inside(self, project: Path, script: str) -> str:
        """What the user is shown on standard error when the agent ran a script there in the sandbox.

        C{$MARKER} in it stands for the marker's path.
        """
        finished = await self.run_in(f"MARKER='{self.marker}'\n{script}", project)
        return " ".join(finished.stderr.split())


def _end(state: State) -> None:
    if pid := running_pid(state):
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(pid, signal.SIGKILL)
