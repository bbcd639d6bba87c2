"""Installing the package that an agent's settings run by C{npx} or C{uvx}: by installers of the test's own."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.errors import CommandError
from aileron.connectors import digest_tree
from aileron.features.launch.runners import PackageRun, read_package_run
from aileron.features.moving.server_packages import InstalledServer, PackageInstaller

_NPM = """#!/bin/sh
printf '%s\\n' "$@" > "{log}"
mkdir -p node_modules/@x/server/dist
echo '{lock}' > package-lock.json
echo '{package}' > node_modules/@x/server/package.json
touch node_modules/@x/server/dist/index.js
"""
_UV = """#!/bin/sh
echo "$@" >> "{log}"
case "$1 $2" in
"venv "*) mkdir -p venv/bin ;;
"pip compile")
    printf '%s\\n' 'other==1 \\\\' '    --hash=sha256:00' 'my-server==2.0.1 \\\\' '    --hash=sha256:aa' > locked.txt ;;
"pip install") touch venv/bin/my-server ;;
esac
"""
_LOCK = {"packages": {"node_modules/@x/server": {"version": "1.2.3", "integrity": "sha512-abc"}}}


class InstallTests(SynchronousTestCase):
    """A directory for packages, and a C{PATH} with what the test puts there."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp()).absolute()
        self.programs, self.packages, self.log = self.root / "bin", self.root / "packages", self.root / "log"
        self.programs.mkdir(parents=True)
        for name in ("sh", "mkdir", "touch"):
            (self.programs / name).symlink_to(shutil.which(name) or name)
        self.write("node", "#!/bin/sh\n")

    def write(self, name: str, text: str) -> None:
        """Put a program on the path."""
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)

    def npm(self, programs: object, lock: object = _LOCK) -> None:
        """Have an npm that installs a package with these programs."""
        package = json.dumps({"bin": programs})
        self.write("npm", _NPM.format(log=self.log, lock=json.dumps(lock), package=package))

    def install(self, line: str = "npx -y @x/server@1 --stdio") -> InstalledServer:
        """Install what a command fetches."""
        run = read_package_run(line.split())
        assert isinstance(run, PackageRun)
        installer = PackageInstaller({"PATH": str(self.programs)}, self.packages)
        return installer.install(run, "server")

    def assert_refused(self, words: str, line: str = "npx -y @x/server@1 --stdio") -> None:
        """It is refused, nothing was moved, and nothing is left."""
        message = self.assertRaises(CommandError, self.install, line).message
        self.assertIn(words, message)
        self.assertIn("Nothing was moved.", message)
        self.assertEqual(list(self.packages.iterdir()), [])

    def test_npm(self) -> None:
        """npm's package is run by node from where it was installed, without a script having run, and is pinned."""
        self.npm({"server": "dist/index.js"})
        found = self.install()
        directory = self.packages / "server-1"
        program = directory / "node_modules" / "@x" / "server" / "dist" / "index.js"
        self.assertEqual(found.command, (str(self.programs / "node"), str(program), "--stdio"))
        pinned = {"version": "1.2.3", "integrity": "sha512-abc", "digest": digest_tree(directory)}
        about = {"registry": "npm", "name": "@x/server", "directory": str(directory)}
        self.assertEqual(found.package, {**about, **pinned})
        asked = self.log.read_text().splitlines()
        self.assertIn("--ignore-scripts", asked)
        self.assertEqual(asked[-2:], ["--", "@x/server@1"])
        self.assertEqual(self.install().package["directory"], str(self.packages / "server-2"))

    def test_programs(self) -> None:
        """Of several programs it is the one that npx would run, and never a file outside of the package."""
        for programs, line in (
            ("dist/index.js", "npx @x/server"),
            ({"any": "dist/index.js"}, "npx @x/server"),
            ({"other": "no.js", "server": "dist/index.js"}, "npx @x/server"),
            ({"other": "dist/index.js", "server": "no.js"}, "npx -p @x/server other"),
        ):
            self.npm(programs)
            self.assertTrue(self.install(line).command[1].endswith("/@x/server/dist/index.js"), programs)
        shutil.rmtree(self.packages)
        refused: tuple[object, ...] = (
            {"a": "dist/index.js", "b": "dist/index.js"},
            {},
            None,
            {"server": 5},
            "../../../../x",
            "gone.js",
        )
        for each in refused:
            self.npm(each)
            self.assert_refused("has no program")

    def test_links(self) -> None:
        """A package that depends on a directory of this machine is refused: what lies there is not pinned."""
        (self.programs / "ln").symlink_to(shutil.which("ln") or "ln")
        self.npm({"server": "dist/index.js"})
        program = self.programs / "npm"
        linked = program.read_text() + "ln -s ../dist node_modules/@x/server/same\n"
        program.write_text(linked)
        self.assertEqual(self.install().package["version"], "1.2.3")
        shutil.rmtree(self.packages)
        program.write_text(f"{linked}mkdir -p {self.root}/other && ln -s {self.root}/other node_modules/other\n")
        self.assert_refused(f"it runs code from {self.root}/other, which may change unnoticed")

    def test_modules_around(self) -> None:
        """Where node would also load modules from a directory around the package, nothing is installed."""
        self.npm({"server": "dist/index.js"})
        self.packages.mkdir()
        (self.root / "node_modules").mkdir()
        self.assert_refused(f"node would also load modules from {self.root}/node_modules")
        self.assertFalse(self.log.exists())

    def test_uv(self) -> None:
        """PyPI's is installed from a list with hashes, built files alone, into an environment of its own."""
        self.write("uv", _UV.format(log=self.log))
        found = self.install("uvx --with more my-server@2.0.1 --x")
        directory = self.packages / "server-1"
        self.assertEqual(found.command, (str(directory / "venv" / "bin" / "my-server"), "--x"))
        self.assertEqual((found.package["version"], found.package["integrity"]), ("2.0.1", "sha256:aa"))
        self.assertEqual((directory / "wanted.txt").read_text(), "my-server==2.0.1\nmore\n")
        asked = self.log.read_text()
        for option in ("--generate-hashes", "--require-hashes"):
            self.assertIn(option, asked)
        pips = [line for line in asked.splitlines() if line.startswith("pip ")]
        self.assertEqual(len(pips), 2)
        for line in pips:  # a source distribution would run to tell what it needs
            self.assertIn("--only-binary :all:", line)
        shutil.rmtree(self.packages)
        self.assert_refused("is not among what uv installed", "uvx --from absent my-server")
        self.assert_refused("has no program", "uvx --from my-server absent")

    def test_failed(self) -> None:
        """An installer that fails or is not there leaves nothing, and its last words are shown."""
        self.assert_refused("npm is not found on PATH")
        self.write("npm", "#!/bin/sh\necho 404 Not Found\nexit 1\n")
        self.assert_refused("npm failed")
        self.assertIn("404 Not Found", self.assertRaises(CommandError, self.install).output)
        self.npm("dist/index.js", lock={"packages": {}})
        self.assert_refused("npm left no record of it")
        self.assertTrue(os.access(self.packages, os.W_OK))
