"""What of the writable directories an agent must not write, by what lies there."""

from __future__ import annotations

from pathlib import Path

from aileron.errors import InvalidRequest
from aileron.launch.sandbox._protection import checked, protected_programs, protected_settings, protected_start_files
from aileron.launch.sandbox._tree import read_tree
from tests.launch.sandbox.test_layout import LayoutCase


class ProgramTests(LayoutCase):
    """Programs that run outside."""

    def protected(self, *programs: Path, path: str = "/usr/bin") -> list[str]:
        """What is read-only because of these."""
        places = (str(self.project),)
        return checked(protected_programs(places, map(str, programs), path), places)

    def refusal(self, *programs: Path, path: str = "/usr/bin") -> str:
        """Why there can be no sandbox with these."""
        with self.assertRaises(InvalidRequest) as raised:
            self.protected(*programs, path=path)
        return str(raised.exception)

    def test_elsewhere(self) -> None:
        """Programs that cannot be written anyway need no protection."""
        self.assertEqual(self.protected(self.made("user/bin"), Path("/usr"), path=f"/usr/bin:{self.home}/bin"), [])

    def test_environment(self) -> None:
        """A program is protected with the environment that it starts from, and with all packages beside it."""
        program = self.made("user/code/project/.venv/bin") / "python"
        program.touch()
        self.assertEqual(self.protected(program), [str(program)])
        (self.project / ".venv/pyvenv.cfg").touch()
        self.assertEqual(self.protected(program), [str(self.project / ".venv")])
        script = self.made("user/code/project/node_modules/a/node_modules/b") / "index.js"
        script.touch()
        self.assertEqual(self.protected(script), [str(self.project / "node_modules")])

    def test_path(self) -> None:
        """So are directories of C{PATH}, and what links in others lead to."""
        tools, program = self.made("user/code/project/tools"), self.made("user/code/project/src") / "program"
        program.touch()
        (self.made("user/bin") / "program").symlink_to(program)
        self.assertEqual(self.protected(path=f"{tools}:{self.home}/bin"), sorted(map(str, (tools, program))))

    def test_refused(self) -> None:
        """What cannot be protected is refused, with the reason."""
        self.assertIn("the relative entry .", self.refusal(path="/usr/bin:."))
        self.assertIn("the relative entry (empty)", self.refusal(path="/usr/bin:"))
        self.assertIn("does not exist", self.refusal(path=f"{self.project}/bin"))
        self.assertIn("work in another directory", self.refusal(path=str(self.project)))
        self.assertIn("work in another directory", self.refusal(self.home))
        (self.project / "link").symlink_to(self.made("user/bin"))
        self.assertIn("by a symbolic link", self.refusal(path=f"{self.project}/link"))
        (self.home / "bin/program").symlink_to(self.project / "gone")
        self.assertEqual(self.protected(path=f"{self.home}/bin"), [])

    def test_settings(self) -> None:
        """Settings of shells and editors that are there are protected in each place."""
        (self.project / ".envrc").touch()
        editor = self.made("user/code/project/.vscode")
        self.assertEqual(
            sorted(protected_settings([str(self.project), str(self.home)])),
            sorted([str(self.project / ".envrc"), str(editor)]),
        )

    def test_start_files(self) -> None:
        """So is what a start file of the user's shell is a link to."""
        (self.project / "bashrc").touch()
        (self.home / ".bashrc").symlink_to(self.project / "bashrc")
        (self.home / ".profile").touch()
        self.assertEqual(
            list(protected_start_files(str(self.home), [str(self.project)])), [str(self.project / "bashrc")]
        )


class TreeTests(LayoutCase):
    """What programs obey by themselves, in a directory and below it."""

    def changed(self) -> set[str]:
        """What is new or changed since the test began, relative to the project."""
        found = self.before.changes(read_tree(str(self.project)))
        return {str(Path(path).relative_to(self.project)) for path in found}

    def setUp(self) -> None:
        """Have something in the project."""
        super().setUp()
        for name in ("sub/.envrc", "sub/.vscode/tasks.json", "inner/.git/HEAD", "text"):
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text("one")
        self.before = read_tree(str(self.project))

    def test_nothing(self) -> None:
        """What stays as it was, and what nobody obeys, does not count."""
        (self.project / "text").write_text("two")
        (self.project / "inner/.git/config").touch()
        self.assertEqual(self.changed(), set())

    def test_files(self) -> None:
        """Files count by their names or by the directory of a program that they lie in; one that was put back, too."""
        for name in ("sub/.vscode/tasks.json", "deep/er/.npmrc", ".idea/run/a.xml", "b.pth", "sitecustomize.py"):
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text("one")
        self.assertEqual(
            self.changed(),
            {"sub/.vscode/tasks.json", "deep/er/.npmrc", ".idea/run/a.xml", "b.pth", "sitecustomize.py"},
        )

    def test_versions(self) -> None:
        """Files count that choose or load programs for whoever enters the directory, or opens a file in an editor."""
        names = {
            ".tool-versions",
            ".direnv/profile.rc",
            ".config/mise/config.toml",
            ".formatter.exs",
            ".RData",
            "shell.nix",
        }
        for name in names:
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).touch()
        self.assertEqual(self.changed(), names)

    def test_dependencies(self) -> None:
        """Settings of packages that lie among the project's dependencies are nobody's, but repositories are."""
        for name in ("node_modules/a/.npmrc", "node_modules/a/.git/HEAD"):
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).touch()
        self.assertEqual(self.changed(), {"node_modules/a/.git"})

    def test_repositories(self) -> None:
        """A repository counts by any name that git knows it by, and one that another was put in the place of."""
        for name in ("bare/HEAD", "bare/objects/x", "bare/refs/x", "linked/HEAD", "linked/commondir", "case/.GIT/x"):
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).touch()
        (self.project / "file").mkdir()
        (self.project / "file/.git").write_text("gitdir: ..")
        (self.project / "link").mkdir()
        (self.project / "link/.git").symlink_to("/elsewhere")
        (self.project / "inner/.git").rename(self.project / "inner/old")
        (self.project / "inner/.git").mkdir()
        self.assertEqual(self.changed(), {"bare", "linked", "case/.GIT", "file/.git", "link/.git", "inner/.git"})
