"""Packages of the npm registry in a directory of their own."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def package(directory: Path, name: str) -> Path:
    """Where a package lies, or will lie, under an install directory."""
    return directory / "node_modules" / name


def lies(directory: Path, name: str, version: str) -> bool:
    """Whether that version of a package lies there."""
    manifest = package(directory, name) / "package.json"
    return manifest.is_file() and json.loads(manifest.read_text())["version"] == version


def fetch(directory: Path, packages: Mapping[str, str]) -> None:
    """Put packages there, none of whose own scripts is run.

    :param packages: versions by name.
    :raises subprocess.CalledProcessError: when npm fails.
    """
    directory.mkdir(parents=True, exist_ok=True)
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--save-exact")
    wanted = (f"{name}@{version}" for name, version in packages.items())
    run("npm", "install", "--prefix", str(directory), *quiet, *wanted, directory=directory)


def run(*arguments: str, directory: Path) -> None:
    """Run a command there; what it says goes to standard error.

    :raises subprocess.CalledProcessError: when it fails.
    """
    subprocess.run(arguments, cwd=directory, check=True, timeout=600, stdout=sys.stderr)


def starts(program: Path, version: str) -> bool:
    """Whether the program is there and names that version."""
    if not program.is_file():
        return False
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
    return answer.returncode == 0 and version in answer.stdout.split()
