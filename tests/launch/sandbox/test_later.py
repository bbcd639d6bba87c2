"""What would be run later, outside, and by which sockets others would do something."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from attrs import evolve

from aileron.launch import sockets
from aileron.launch.sandbox._later import make_hooks
from tests.launch.sandbox.test_walls import WallsCase


class LaterTests(WallsCase):
    """Hooks and settings that shells, editors and git obey."""

    def setUp(self) -> None:
        super().setUp()
        self.git = self.made("user/code/project/.git")

    def test_kept(self) -> None:
        """What is there can be read and not written, and not be moved away with the repository's directory."""
        (self.git / "config").touch()
        (self.project / ".envrc").touch()
        kept = [self.made(f"user/code/project/{name}") for name in (".git/hooks", ".vscode")]
        arguments = self.walls.arguments()
        for path in (*kept, self.git / "config", self.project / ".envrc"):
            self.assertEqual(self.last(arguments, path), "--ro-bind", path)
        self.assertEqual(self.last(arguments, self.git), "--bind")
        self.assertLess(arguments.index(str(self.git)), arguments.index(str(self.git / "hooks")))
        self.assertEqual(self.walls.absent, ())

    def test_submodules(self) -> None:
        """The same of submodules, whose names may have a slash in them."""
        for name in ("one", "vendor/two"):
            self.made(f"user/code/project/.git/modules/{name}/hooks")
            (self.git / "modules" / name / "HEAD").touch()
        arguments = self.walls.arguments()
        for name in ("one", "vendor/two"):
            self.assertEqual(self.last(arguments, self.git / "modules" / name / "hooks"), "--ro-bind")
        self.assertNotIn(str(self.git / "modules/vendor/hooks"), self.walls.absent)

    def test_below_the_repository(self) -> None:
        """Where the project is a part of its repository, both count."""
        self.made("user/code/project/part/.vscode")
        (self.project / ".envrc").touch()
        walls = evolve(self.walls, project=str(self.project / "part"))
        arguments = walls.arguments()
        for path in (self.project / "part/.vscode", self.project / ".envrc"):
            self.assertEqual(self.last(arguments, path), "--ro-bind")
        self.assertIn(str(self.project / "part/.envrc"), walls.absent)

    def test_absent(self) -> None:
        """What is not there is told, but for hooks, which have a directory from then on."""
        make_hooks(self.walls.places)
        make_hooks(self.walls.places)
        names = {str(Path(path).relative_to(self.project)) for path in self.walls.absent}
        self.assertEqual(names, {".envrc", ".vscode", ".git/config"})

    def test_no_repository(self) -> None:
        """Without a repository there is nothing to make, and one that is made is told."""
        self.git.rmdir()
        make_hooks(self.walls.places)
        self.assertFalse(self.git.exists())
        self.assertIn(str(self.git), self.walls.absent)

    def test_elsewhere(self) -> None:
        """A file that says where the repository is can be read and not written."""
        self.git.rmdir()
        self.git.write_text("gitdir: /elsewhere")
        self.assertEqual(self.last(self.walls.arguments(), self.git), "--ro-bind")


class SocketTests(WallsCase):
    """Sockets of others."""

    def made_socket(self, name: str) -> str:
        """One that nobody listens at."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(path, stat.S_IFSOCK | 0o600)
        return str(path)

    def test_found(self) -> None:
        """Those of the system, those at home, and those that a variable names; nothing else."""
        there = [self.made_socket(name) for name in ("run/docker.sock", "run/a/b/c.sock", "user/.gnupg/S.gpg-agent")]
        (self.root / "run/a/file").touch()
        variables = {
            "SSH_AUTH_SOCK": self.made_socket("agent.1"),
            "TMUX": self.made_socket("tmux") + ",12,0",
            "DOCKER_HOST": "unix://" + self.made_socket("rootless"),
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=" + self.made_socket("bus") + ",guid=1;unix:abstract=x",
            "CONTAINER_HOST": "tcp://127.0.0.1:1",
        }
        named = [str(self.root / name) for name in ("agent.1", "tmux", "rootless", "bus")]
        found = sockets(str(self.home), variables, str(self.root / "run"))
        self.assertEqual(set(found), {*there, *named})

    def test_hidden(self) -> None:
        """In their place is what nobody can connect to, whatever lies around them."""
        arguments = evolve(self.walls, sockets=("/srv/docker.sock", f"{self.home}/agent.1")).arguments()
        for path in ("/srv/docker.sock", f"{self.home}/agent.1"):
            self.assertEqual(arguments[arguments.index(path) - 2 :][:2], ["--ro-bind", "/dev/null"])
            self.assertGreater(arguments.index(path), arguments.index(str(self.state)))
