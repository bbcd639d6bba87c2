"""The directories of a sandbox that are hidden, open and closed, as bubblewrap is told them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.sandbox.layout import SandboxLayout
from aileron.model.errors import InvalidRequest


class LayoutCase(SynchronousTestCase):
    """A user with a home, a project in it, and Aileron's home."""

    def setUp(self) -> None:
        """Make them."""
        self.root = Path(self.mktemp()).resolve()
        self.home = self.made("user")
        self.project = self.made("user/code/project")
        self.state = self.made("user/.aileron")
        self.layout = SandboxLayout(str(self.home), str(self.state), str(self.project))

    def made(self, name: str) -> Path:
        """A directory."""
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def told(self, option: str, layout: SandboxLayout | None = None) -> list[str]:
        """The paths after each such option."""
        arguments = (layout or self.layout).arguments()
        return [after for word, after in pairwise(arguments) if word == option]

    def last(self, arguments: Sequence[str], path: Path) -> str:
        """The option that is said last of a path, which is the one that holds."""
        places = [number for number, word in enumerate(arguments) if word == str(path)]
        before = arguments[places[-1] - 1]
        return arguments[places[-1] - 2] if before == str(path) else before

    def assert_anchored(self, arguments: Sequence[str], inside: Path | str) -> None:
        """The directories a and a/b of the project, which lead to that, cannot be moved away with it."""
        for name in ("a", "a/b"):
            self.assertEqual(self.last(arguments, self.project / name), "--bind")
            self.assertLess(arguments.index(str(self.project / name)), arguments.index(str(inside)))


class LayoutTests(LayoutCase):
    """One layout."""

    def test_apart(self) -> None:
        """It has processes, messages, a network and users of its own, no rights, and ends with the launcher."""
        arguments = self.layout.arguments()
        for kind in ("user", "pid", "ipc", "net"):
            self.assertIn(f"--unshare-{kind}", arguments)
        self.assertEqual(arguments[arguments.index("--cap-drop") + 1], "ALL")
        self.assertIn("--die-with-parent", arguments)
        self.assertEqual(self.told("--proc"), ["/proc"])
        self.assertEqual(self.told("--dev"), ["/dev"])

    def test_closed(self) -> None:
        """Everything is there to be read, and only the project and the agent's own to be written."""
        own = self.made("user/.local/share/agent")
        layout = evolve(self.layout, own=(str(own),))
        self.assertEqual(layout.arguments().index("--ro-bind"), layout.arguments().index("/") - 1)
        self.assertEqual(self.told("--bind", layout), [str(self.project), str(own)])
        self.assertEqual(self.told("--chdir"), [str(self.project)])

    def test_replaced(self) -> None:
        """Our files are mounted read-only over the system's and below /tmp, and hide nothing that comes later."""
        layout = evolve(self.layout, replaced={"/etc/ssl/certs": "/ours/certs", "/tmp/certificates": "/ours"})
        arguments = layout.arguments()
        for path, ours in layout.replaced.items():
            place = arguments.index(ours)
            self.assertEqual(arguments[place - 1 : place + 2], ["--ro-bind", ours, path])
            self.assertLess(arguments.index("/tmp"), place)
            self.assertLess(place, arguments.index(str(self.project)))

    def test_replaced_inside(self) -> None:
        """A file in the project or among the agent's own is replaced too: later mounts do not cover ours."""
        own, settings = self.made("user/.agent/own"), self.made("user/.agent")
        replaced = {f"{place}/hosts.yml": "/ours/empty" for place in (self.project, own, settings)}
        layout = evolve(self.layout, own=(str(own),), settings=(str(settings),), replaced=replaced)
        arguments = layout.arguments()
        for path in replaced:
            place = arguments.index(path)
            self.assertEqual(arguments[place - 2 : place], ["--ro-bind", "/ours/empty"])
            self.assertNotIn("--bind", arguments[place:])
            self.assertNotIn(path, arguments[place + 1 :])
            self.assertLess(place, arguments.index(str(self.state)))

    def test_hidden(self) -> None:
        """Aileron's home, what users share, and profiles and caches of each browser that is there are empty."""
        names = (
            *".mozilla snap .waterfox .floorp .thunderbird .config/chromium .config/google-chrome-canary".split(),
            *".config/waterfox .config/thunderbird .local/share/torbrowser .cache/google-chrome".split(),
            *".cache/google-chrome-canary .cache/microsoft-edge-dev .cache/opera-beta .cache/vivaldi-snapshot".split(),
            *".cache/floorp tor-browser/Browser/TorBrowser/Data mullvad-browser/Browser/TorBrowser/Data".split(),
            *(".tor project", ".mullvad/mullvadbrowser", ".moonchild productions", ".cache/moonchild productions"),
        )
        profiles = [str(self.made(f"user/{name}")) for name in names]
        hidden = self.told("--tmpfs")
        self.assertLessEqual({"/tmp", "/run/user", str(self.state), *profiles}, set(hidden))
        self.assertNotIn(str(self.home / ".config/BraveSoftware"), hidden)

    def test_moved_profiles(self) -> None:
        """Profiles are hidden where the environment says that settings, data and caches lie, and where they lay."""
        moved = {
            "XDG_CONFIG_HOME": self.made("moved/settings"),
            "XDG_CACHE_HOME": self.made("moved/caches"),
            "XDG_DATA_HOME": self.made("moved/data"),
        }
        profiles = [self.made(f"{base.relative_to(self.root)}/chromium") for base in moved.values()]
        profiles.append(self.made("user/.config/chromium"))
        environment = {name: str(path) for name, path in moved.items()}
        arguments = self.layout.arguments(environment=environment)
        for path in profiles:
            self.assertEqual(self.last(arguments, path), "--tmpfs", path)
        self.layout.arguments(environment={"XDG_CONFIG_HOME": "relative"})

    def test_hidden_wherever(self) -> None:
        """What is hidden stays so within the project, and behind a link."""
        state = self.made("user/code/project/state")
        profile = self.made("elsewhere")
        (self.home / ".mozilla").symlink_to(profile)
        arguments = evolve(self.layout, state=str(state)).arguments()
        self.assertEqual(self.last(arguments, state), "--tmpfs")
        self.assertEqual(self.last(arguments, profile), "--tmpfs")
        self.assertLess(arguments.index(str(self.project)), arguments.index(str(state)))

    def test_settings(self) -> None:
        """What the agent's settings say can be read, and what it writes beside them is gone afterwards.

        What is its own can be written and stays, also in their midst; a database or a directory of scratch files among
        them is not there: it would be in the way.
        """
        settings, own, scratch = (self.made(f"user/.agent{name}") for name in ("", "/sessions", "/tmp"))
        (settings / "agent.json").write_text("{}")
        anew = [settings / name for name in ("state_5.sqlite", "state_5.sqlite-wal", "installation_id")]
        for path in anew:
            path.touch()
        layout = evolve(self.layout, own=(str(own),), settings=(str(settings), str(self.root / "none")))
        arguments = layout.arguments()
        for path, option in ((settings, "--tmpfs"), (settings / "agent.json", "--ro-bind"), (own, "--bind")):
            self.assertEqual(self.last(arguments, path), option)
        self.assertLess(arguments.index(str(settings)), arguments.index(str(settings / "agent.json")))
        for path in (*anew, scratch):
            self.assertNotIn(str(path), arguments)

    def test_in_the_project(self) -> None:
        """Settings and what is hidden there cannot be moved away, and nothing mounted for others covers them."""
        other, inside = str(self.made("user/code/project/a/c")), self.made("user/code/project/a/b/agent")
        for layout in (evolve(self.layout, settings=(str(inside),)), evolve(self.layout, state=str(inside))):
            arguments = layout.arguments((other,))
            self.assertEqual(self.last(arguments, inside), "--tmpfs")
            self.assert_anchored(arguments, inside)

    def test_project_among_settings(self) -> None:
        """Settings cannot be written for being worked on."""
        settings = self.made("user/.agent")
        arguments = evolve(self.layout, project=str(settings), settings=(str(settings),)).arguments()
        places = [number for number, word in enumerate(arguments) if word == str(settings)]
        self.assertEqual([arguments[place - 1] for place in places][-2:], ["--tmpfs", "--chdir"])

    def test_repository(self) -> None:
        """All of the project's repository can be written, but none that has the home in it."""
        self.made("user/code/.git")
        self.assertEqual(self.told("--bind"), [str(self.home / "code")])
        self.made("user/code/project/.git")
        self.assertEqual(self.told("--bind"), [str(self.project)])
        self.made(".git")
        outside = evolve(self.layout, project=str(self.made("user/alone")))
        self.assertEqual(self.told("--bind", outside), [str(self.home / "alone")])

    def test_copy(self) -> None:
        """What stands in for the repository is mounted over all that is open there."""
        git = self.made("user/code/project/.git")
        arguments = self.layout.arguments((str(self.project / ".envrc"),), ("--bind", "/copy", str(git)))
        self.assertEqual(arguments[arguments.index("/copy") - 1 :][:3], ["--bind", "/copy", str(git)])
        self.assertGreater(arguments.index("/copy"), arguments.index(str(self.project / ".envrc")))

    def test_read_only(self) -> None:
        """What stays as it is cannot be moved away with a directory above it, and what lies in it is left to it."""
        inside = [self.made(f"user/code/project/{name}") for name in ("a/b/c", "a/b/c/d", "a/e")]
        arguments = self.layout.arguments(sorted(map(str, inside)))
        self.assertEqual(self.last(arguments, inside[0]), "--ro-bind")
        self.assertEqual(self.last(arguments, inside[2]), "--ro-bind")
        self.assertNotIn(str(inside[1]), arguments)
        self.assert_anchored(arguments, inside[0])

    def test_not_at_home(self) -> None:
        """An agent that would work in the home itself, or above it, is not let in."""
        for project in (self.home, self.root, Path("/")):
            with self.assertRaises(InvalidRequest):
                evolve(self.layout, project=str(project)).arguments()

    def test_programs(self) -> None:
        """What it must run is there, though it lies where all else is hidden; other things are there anyway."""
        layout = evolve(self.layout, programs=("/tmp/tools/agent", "/usr/bin/agent"))
        opened = self.told("--ro-bind", layout)
        self.assertIn("/tmp/tools/agent", opened)
        self.assertNotIn("/usr/bin/agent", opened)
