"""Installs the package that an agent's settings run by C{npx} or C{uvx}: once, at a fixed version, for Aileron only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from aileron.cli.errors import CommandError
from aileron.cli.output import progress

if TYPE_CHECKING:
    from aileron.features.launch.runners import PackageRun

_SECONDS = 300.0
_MOST_LINES = 6
_MOST_BYTES = 16 * 1024 * 1024


@frozen
class InstalledServer:
    """A server that is run from an installed package.

    :ivar command: the program by its absolute path, and its arguments.
    :ivar package: the table C{[mcp.package]} of the connector's file.
    """

    command: tuple[str, ...]
    package: Mapping[str, str]


@frozen
class PackageInstaller:
    """Runs the package managers of the registries.

    :ivar environ: the environment, whose C{PATH} is searched for the package managers.
    :ivar root: the directory in which each package gets a directory of its own.
    """

    environ: Mapping[str, str]
    root: Path

    def install(self, run: PackageRun, name: str) -> InstalledServer:
        """Install the package of C{run}, without running any of its code, and find its program.

        :param name: the server's name, from which the directory is named.
        :raises CommandError: if node would also load modules from elsewhere, or the installation failed. All its files
            are removed.
        """
        from aileron.connectors import digest_tree, find_foreign_modules

        home = self.environ.get("HOME")
        for path in find_foreign_modules(str(self.root / name), home) if run.registry == "npm" else ():
            raise CommandError(
                f"{run.name} was not installed: node would also load modules from {path}. Nothing was moved.",
                "Move that directory away, then try again.",
            )
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory = _free_directory(self.root, name)
        directory.mkdir(mode=0o700)
        try:
            with progress(f"Installing {run.name}"):
                install = self._npm if run.registry == "npm" else self._pypi
                command, version, integrity = install(run, directory)
                digest = digest_tree(directory)
        except BaseException as error:
            shutil.rmtree(directory, ignore_errors=True)
            if isinstance(error, OSError):
                raise CommandError(f"{run.name} was not installed: {error}. Nothing was moved.") from None
            raise
        about = {"registry": run.registry, "name": run.name, "version": version, "integrity": integrity}
        return InstalledServer((*command, *run.arguments), {**about, "directory": str(directory), "digest": digest})

    def _npm(self, run: PackageRun, directory: Path) -> tuple[Sequence[str], str, str]:
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--save-exact")
        self._run(run, directory, "npm", "install", *quiet, "--prefix", str(directory), "--", *run.wanted)
        lock = _read_json(directory / "package-lock.json").get("packages", {}).get(f"node_modules/{run.name}")
        if lock is None:
            raise CommandError(
                f"The package {run.name} was not installed: npm left no record of it. Nothing was moved."
            )
        for link in _links_outside(directory):
            raise CommandError(
                f"{run.name} was not installed: it runs code from {os.path.realpath(link)}, "
                "which may change unnoticed. Nothing was moved."
            )
        package = directory / "node_modules" / run.name
        program = _npm_program(run, _read_json(package / "package.json").get("bin"))
        path = os.path.normpath(package / program)
        if not path.startswith(f"{package}/") or not os.path.isfile(path):
            raise _no_program(run)
        return (self._find("node"), path), str(lock["version"]), str(lock.get("integrity") or "no integrity")

    def _pypi(self, run: PackageRun, directory: Path) -> tuple[Sequence[str], str, str]:
        wanted, lock = directory / "wanted.txt", directory / "locked.txt"
        wanted.write_text("".join(f"{each}\n" for each in run.wanted), "utf-8")
        python = ("--python", str(directory / "venv" / "bin" / "python"))
        self._run(run, directory, "uv", "venv", "--quiet", "--no-project", str(directory / "venv"))
        # Only wheels are installed: a source distribution runs its own code to report its requirements.
        quiet = (*python, "--quiet", "--only-binary", ":all:")
        compiling = ("--generate-hashes", "--no-header", "--no-annotate", "--output-file", str(lock))
        self._run(run, directory, "uv", "pip", "compile", *quiet, *compiling, str(wanted))
        checked = ("--require-hashes", "--link-mode", "copy", "--requirement", str(lock))
        self._run(run, directory, "uv", "pip", "install", *quiet, *checked)
        version, hashes = _locked(lock.read_text("utf-8"), run)
        program = directory / "venv" / "bin" / run.program
        if not program.is_file():
            raise _no_program(run)
        return (str(program),), version, hashes

    def _find(self, program: str) -> str:
        found = shutil.which(program, path=self.environ.get("PATH"))
        if found is None:
            raise CommandError(f"{program} is not found on PATH, so the server was not installed. Nothing was moved.")
        return os.path.abspath(found)

    def _run(self, run: PackageRun, directory: Path, program: str, *arguments: str) -> None:
        """Run a package manager until it ends.

        :raises CommandError: if it is not found, fails or takes too long. The error quotes the end of its output.
        """
        command = (self._find(program), *arguments)
        try:
            ended = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env=dict(self.environ),
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CommandError(f"{run.name} was not installed within {_SECONDS:g} s. Nothing was moved.") from None
        if ended.returncode:
            said = ended.stdout.decode("utf-8", "replace").strip().splitlines()[-_MOST_LINES:]
            raise CommandError(
                f"{run.name} was not installed: {program} failed. Nothing was moved.",
                "Install the server yourself, and name its own program in the agent's settings.",
                said,
            )


def _free_directory(root: Path, name: str) -> Path:
    number = 1
    while os.path.lexists(root / f"{name}-{number}"):
        number += 1
    return root / f"{name}-{number}"


def _links_outside(root: Path) -> Iterator[str]:
    """Yield the links in a directory that lead out of it, such as npm's links for dependencies on local directories."""
    inside = os.path.realpath(root)
    for directory, directories, files in os.walk(root):
        for path in (os.path.join(directory, each) for each in (*directories, *files)):
            if os.path.islink(path) and not os.path.realpath(path).startswith(f"{inside}/"):
                yield path


def _read_json(path: Path) -> Any:
    with path.open("rb") as file:
        return json.loads(file.read(_MOST_BYTES))


def _npm_program(run: PackageRun, declared: object) -> str:
    """Return the path, in the package, of the program that C{npx} would choose.

    :param declared: the member C{bin} of C{package.json}.
    :raises CommandError: if the package has no such program.
    """
    programs = {run.name.rpartition("/")[2]: declared} if isinstance(declared, str) else declared
    if isinstance(programs, Mapping):
        wanted = run.program or (next(iter(programs)) if len(programs) == 1 else run.name.rpartition("/")[2])
        if isinstance(programs.get(wanted), str):
            return str(programs[wanted])
    raise _no_program(run)


def _no_program(run: PackageRun) -> CommandError:
    wanted = run.program or run.name
    return CommandError(f"{run.name} has no program {wanted}, so it was not installed. Nothing was moved.")


def _locked(text: str, run: PackageRun) -> tuple[str, str]:
    """Return the version of a package in a list of requirements with hashes, and its first hash.

    If the package has no hash, the second part is C{no hash}.

    :raises CommandError: if the package is not in the list.
    """
    name = run.name.lower().replace("_", "-").replace(".", "-")
    lines = [line.strip(" \\") for line in text.splitlines()]
    for number, line in enumerate(lines):
        package, equals, version = line.partition("==")
        if equals and package.partition("[")[0].lower().replace("_", "-").replace(".", "-") == name:
            hashes = lines[number + 1].removeprefix("--hash=") if number + 1 < len(lines) else "no hash"
            return version.partition(" ")[0], hashes
    raise CommandError(f"{run.name} is not among what uv installed. Nothing was moved.")
