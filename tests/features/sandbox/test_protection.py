"""What of the writable directories an agent must not write, by what lies there."""

from __future__ import annotations

import os
from pathlib import Path

from aileron.features.sandbox._git import find_git
from aileron.features.sandbox._protection import protected_programs, protected_settings, protected_start_files
from aileron.features.sandbox._repository import module_commands
from aileron.features.sandbox._tree import read_tree
from aileron.features.sandbox.layout import check_protectable
from aileron.model.errors import InvalidRequest
from tests.features.sandbox.test_layout import LayoutCase


class ProgramTests(LayoutCase):
    """Programs that run outside."""

    def protected(self, *programs: Path, path: str = "/usr/bin") -> list[str]:
        """What is read-only because of these."""
        places = (str(self.project),)
        return check_protectable(protected_programs(places, map(str, programs), path), places)

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
        self.assertIn("Work in another directory", self.refusal(path=str(self.project)))
        self.assertIn("Work in another directory", self.refusal(self.home))
        (self.project / "link").symlink_to(self.made("user/bin"))
        self.assertIn("contains a symbolic link", self.refusal(path=f"{self.project}/link"))
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

    def started_with(self, **environment: str) -> list[str]:
        """What of the project the user's shells start with."""
        places = [str(self.project)]
        return check_protectable(protected_start_files(str(self.home), places, environment), places)

    def test_start_files(self) -> None:
        """So is what a start file of the user's shell is a link to; one that the agent could make is refused."""
        (self.home / ".bashrc").symlink_to(self.project / "bashrc")
        with self.assertRaises(InvalidRequest) as raised:
            self.started_with()
        self.assertIn(f"{self.project}/bashrc at startup. It does not exist", str(raised.exception))
        (self.project / "bashrc").touch()
        (self.home / ".profile").touch()
        self.assertEqual(self.started_with(), [str(self.project / "bashrc")])

    def test_start_directories(self) -> None:
        """Directories in the project that zsh or fish starts from are protected whole, and made where they are not."""
        for environment, name in (({"ZDOTDIR": "zsh"}, "zsh"), ({"XDG_CONFIG_HOME": "config"}, "config/fish")):
            named = {variable: str(self.project / place) for variable, place in environment.items()}
            self.assertEqual(self.started_with(**named), [str(self.project / name)])
            self.assertTrue((self.project / name).is_dir())
        (self.home / ".config").symlink_to(self.made("user/code/project/settings"))
        self.assertEqual(self.started_with(), [str(self.project / "settings/fish")])

    def test_start_files_elsewhere(self) -> None:
        """Behind C{ZDOTDIR}, or a directory of fish's, links into the project are followed, and no relative path is."""
        (self.project / "zshrc").touch()
        (self.project / "a.fish").touch()
        (self.made("user/zsh") / ".zshrc").symlink_to(self.project / "zshrc")
        (self.made("user/.config/fish/conf.d") / "a.fish").symlink_to(self.project / "a.fish")
        found = self.started_with(ZDOTDIR=f"{self.home}/zsh/")
        self.assertEqual(found, [str(self.project / "a.fish"), str(self.project / "zshrc")])
        self.assertEqual(self.started_with(ZDOTDIR=f"{self.home}/"), [str(self.project / "a.fish")])
        with self.assertRaises(InvalidRequest):
            self.started_with(ZDOTDIR="zsh")

    def test_start_files_by_variable(self) -> None:
        """A file that a variable has bash or sh start with is protected; a relative path is refused, or no path."""
        (self.project / "env").touch()
        for variable in ("BASH_ENV", "ENV"):
            self.assertEqual(self.started_with(**{variable: str(self.project / "env")}), [str(self.project / "env")])
            self.assertEqual(self.started_with(**{variable: ""}), [])
            with self.assertRaises(InvalidRequest, msg=variable):
                self.started_with(**{variable: str(self.project / "missing")})
        with self.assertRaises(InvalidRequest):
            self.started_with(BASH_ENV="env")
        self.assertEqual(self.started_with(ENV="production"), [])


class SettingTests(LayoutCase):
    """Settings by which git runs a module of Python's."""

    def test_modules(self) -> None:
        """They are found wherever C{-m} stands among Python's options, unless Python is isolated from the project."""
        commands = {
            "python3 -m base64": True,
            "/usr/bin/python3.11 -bm base64": True,
            "sh -c 'python3 -Wignore -X utf8 -W default::X -mbase64'": True,
            "python3 -W -W -m base64": True,
            "python3 '-m' base64": True,
            "python3 \\-m base64": True,
            "python3 --check-hash-based-pycs always -m base64": True,
            "python3 -I -m json.tool; python3 -m base64": True,
            "python3 -I -m base64": False,
            "python3 -Pm base64": False,
            "python3 -P -Wmodule -m base64": False,
            "python3 -Wmodule filter.py": False,
            "python3 -c 'print()' -m": False,
            "python3 filter.py -m x": False,
            "tool -m x": False,
        }
        for command, expected in commands.items():
            self.assertEqual(self.found(command), ["filter.x.clean"] if expected else [], command)

    def found(self, command: str) -> list[str]:
        """Return the settings that are found where a filter runs this."""
        git = find_git(os.environ)
        assert git is not None
        git.at("", str(self.project)).run("init", "-q")
        git.at("", str(self.project)).run("config", "filter.x.clean", command)
        return list(module_commands(git, str(self.project)))

    def test_long(self) -> None:
        """A long command takes no longer than its length says, however its options could be read."""
        for command in ("python3 " + "-W " * 20_000, "python3 -W " * 10_000):
            self.assertEqual(self.found(command), [])


class TreeTests(LayoutCase):
    """What programs obey by themselves, in a directory and below it."""

    def changed(self) -> set[str]:
        """What is new or changed since the test began, relative to the project."""
        found = self.before.changes(read_tree(str(self.project)))
        return {str(Path(path).relative_to(self.project)) for path in found}

    def setUp(self) -> None:
        """Have something in the project."""
        super().setUp()
        self.write("sub/.envrc", "sub/.vscode/tasks.json", "inner/.git/HEAD", "text")
        self.before = read_tree(str(self.project))

    def write(self, *names: str) -> None:
        """Have the same text in each of these files."""
        for name in names:
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text("one")

    def test_nothing(self) -> None:
        """What stays as it was, what nobody obeys and settings among dependencies do not count, but repositories do."""
        (self.project / "text").write_text("two")
        (self.project / "inner/.git/config").touch()
        self.write("node_modules/a/.npmrc", "node_modules/a/.git/HEAD")
        self.assertEqual(self.changed(), {"node_modules/a/.git"})

    def test_files(self) -> None:
        """Files count by their names or by the directory of a program that they lie in; one that was put back, too."""
        names = {
            *("sub/.vscode/tasks.json", "deep/er/.npmrc", ".idea/run/a.xml", "b.pth", "sitecustomize.py"),
            ".tool-versions",
            ".direnv/profile.rc",
            ".config/mise/config.toml",
            ".formatter.exs",
            ".RData",
            "shell.nix",
        }
        self.write(*names)
        self.assertEqual(self.changed(), names)

    def test_configuration(self) -> None:
        """Whatever looks like a setting or a recipe counts; what programs worked out, and data, do not."""
        names = {
            *("eslint.config.js", "prettier.config.mjs", "lefthook.toml", "mise/tasks/build", "CMakePresets.json"),
            *("global.json", "rust-toolchain.toml", "rust-toolchain", "Makefile", "sub/justfile", "conftest.py"),
            *(".shadowenv.d/500_x.lisp", ".unheard/of/program", "webpack.prod.js", "a.csproj", "sub/.someconfig"),
        }
        harmless = {".mypy_cache/3.11/x.json", "src/main.py", "README.md", "src/image.png", "sub/node_modules/a/b.json"}
        self.write(*names, *harmless)
        self.assertEqual(self.changed(), names)

    def test_tracked(self) -> None:
        """What a repository tracks is for its own differences to show, unless it is known to run by itself."""
        self.write("package.json", "tsconfig.json", ".envrc")
        tracked = {str(self.project / name) for name in ("package.json", ".envrc")}
        found = self.before.changes(read_tree(str(self.project)), tracked)
        self.assertEqual(found, (str(self.project / ".envrc"), str(self.project / "tsconfig.json")))

    def test_many(self) -> None:
        """Of a new directory with many settings only that is named, but what is known to run by itself one by one."""
        self.write(*(f"dist/{number}/a.json" for number in range(9)), "dist/1/.envrc", "made/a.json", "sub/a.json")
        directory = "dist/ (new, with 9 such files)"
        self.assertEqual(self.changed(), {directory, "dist/1/.envrc", "made/a.json", "sub/a.json"})

    def test_repositories(self) -> None:
        """A repository counts by any name that git knows it by, and one that another was put in the place of."""
        self.write("bare/HEAD", "bare/objects/x", "bare/refs/x", "linked/HEAD", "linked/commondir", "case/.GIT/x")
        (self.project / "file").mkdir()
        (self.project / "file/.git").write_text("gitdir: ..")
        (self.project / "link").mkdir()
        (self.project / "link/.git").symlink_to("/elsewhere")
        (self.project / "inner/.git").rename(self.project / "inner/old")
        (self.project / "inner/.git").mkdir()
        self.assertEqual(self.changed(), {"bare", "linked", "case/.GIT", "file/.git", "link/.git", "inner/.git"})
