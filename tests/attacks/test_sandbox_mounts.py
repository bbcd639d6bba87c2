"""An agent in the sandbox, on a machine where the same directories lie at other paths as well."""

from __future__ import annotations

import json
import os
from pathlib import Path

import attrs

from tests.attacks.sandboxed import SandboxTestCase
from tests.functional.process import Command, Finished

# In the agent's place: tells of each path what can be read there, or the names in a directory, or why not.
_READER = """
import errno, json, os, sys
def found(path):
    try:
        return sorted(os.listdir(path)) if os.path.isdir(path) else open(path).read()
    except OSError as error:
        return errno.errorcode[error.errno]
print(json.dumps([found(path) for path in json.loads(sys.argv[-1])]), flush=True)
"""


class MountTests(SandboxTestCase):
    """C{aileron launch --sandbox} behind bind mounts."""

    def mounted(self, command: Command, *mounts: tuple[Path, Path]) -> Command:
        """The command on a machine on which each of these directories is mounted at another place, too."""
        options = [word for source, place in mounts for word in ("--bind", str(source), str(place))]
        return command.behind("bwrap", "--dev-bind", "/", "/", *options, "--")

    def made(self, name: str) -> Path:
        """A directory for a mount, where the sandbox shows it."""
        path = self.home.user / name
        path.mkdir(parents=True)
        return path

    async def read_inside(self, paths: list[Path], *mounts: tuple[Path, Path], project: Path | None = None) -> Finished:
        """What came of an agent that reads these."""
        self.put_agent(_READER)
        command = self.agent(list(map(str, paths)), "--sandbox", project=project)
        return await self.run_command(self.mounted(command, *mounts), 60)

    async def test_second_path(self) -> None:
        """Aileron's home shows nothing at another path either: whole, with what is around it, or a part of it."""
        await self.furnish()
        home, whole, around, part = self.home.aileron, self.made("whole"), self.made("around"), self.made("part")
        below = around / home.relative_to(self.home.root)
        paths = [whole, whole / "secrets.json", below / "daemon.json", part]
        finished = await self.read_inside(paths, (home, whole), (self.home.root, around), (home / "log", part))
        self.assertEqual(finished.exit_code, 0, finished.stderr)
        found = json.loads(finished.stdout.splitlines()[-1])
        self.assertEqual(found, [[], "ENOENT", "ENOENT", []])

    async def test_copy(self) -> None:
        """An older copy of it, in a snapshot that a mounted file system has, shows nothing."""
        await self.furnish()
        disk, place = self.made("disk"), self.made("place")
        copy = Path(".snapshots/3/snapshot") / self.home.aileron.relative_to("/")
        (disk / copy).mkdir(parents=True)
        (disk / copy / "secrets.json").write_text("an older one")
        finished = await self.read_inside([place / copy], (disk, place))
        self.assertEqual(json.loads(finished.stdout.splitlines()[-1]), [[]], finished.stderr)

    async def test_home_elsewhere(self) -> None:
        """The user's home is no project at another path either."""
        await self.furnish()
        elsewhere = self.made("elsewhere")
        finished = await self.read_inside([], (self.home.user, elsewhere), project=elsewhere)
        self.assertEqual((finished.exit_code, finished.stdout), (1, ""))
        self.assertIn("cannot work in your home directory itself", " ".join(finished.stderr.split()))

    async def test_programs_elsewhere(self) -> None:
        """A project that C{PATH} leads to by another path is refused: what lies there would not be protected."""
        await self.furnish()
        (self.home.project / "tools").mkdir()
        elsewhere = self.made("elsewhere")
        self.put_agent(_READER)
        command = self.agent([], "--sandbox", project=elsewhere)
        path = f"{command.environment['PATH']}{os.pathsep}{self.home.project}/tools"
        command = attrs.evolve(command, environment={**command.environment, "PATH": path})
        finished = await self.run_command(self.mounted(command, (self.home.project, elsewhere)), 60)
        self.assertEqual((finished.exit_code, finished.stdout), (1, ""))
        self.assertIn(f"{elsewhere} is also {self.home.project}", " ".join(finished.stderr.split()))
