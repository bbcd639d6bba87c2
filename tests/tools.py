"""Checks that pipx and uv can install a wheel, run it and remove it, as ``tests.release`` asks.

Both get it by its path, and everything else from one directory of wheels: no index is asked, so another project of the
same name cannot come in its place. A tool that cannot be had is left out, and said to be.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

_EXPECTED = {"aileron": "--version", "aileron-mcp": "--help"}


@frozen
class Installer:
    """A program that installs command-line programs, each into an environment of its own.

    :ivar project: by which pip installs it.
    :ivar install: its command, to which the wheel's path is added; no index is asked.
    :ivar environ: by which it keeps everything in one directory.  ``{}`` stands for that, here and in the command.
    """

    project: str
    install: tuple[str, ...]
    uninstall: tuple[str, ...]
    environ: Mapping[str, str]


INSTALLERS = (
    Installer(
        "pipx",
        ("pipx", "install", "--python", sys.executable),
        ("pipx", "uninstall", "aileron"),
        {
            "PIPX_HOME": "{}/home",
            "PIPX_BIN_DIR": "{}/bin",
            "PIPX_MAN_DIR": "{}/man",
            "PIPX_COMPLETION_DIR": "{}/completion",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": "{}/../wheels",
        },
    ),
    Installer(
        "uv",
        (
            "uv",
            "tool",
            "install",
            "--offline",
            "--no-index",
            "--find-links",
            "{}/../wheels",
            "--python",
            sys.executable,
        ),
        ("uv", "tool", "uninstall", "aileron"),
        {
            "UV_TOOL_DIR": "{}/home",
            "UV_TOOL_BIN_DIR": "{}/bin",
            "UV_CACHE_DIR": "{}/cache",
            "UV_PYTHON_DOWNLOADS": "never",
        },
    ),
)


def check(wheel: Path, scratch: Path) -> None:
    """Install, run and remove ``wheel`` with each of them.

    :param scratch: a directory for all of it, which is made.
    :raises SystemExit: one of them fails, or leaves a program, a page or an environment behind.
    """
    venv.create(scratch / "installers", with_pip=True)
    pip = (str(scratch / "installers" / "bin" / "pip"), "--quiet", "--disable-pip-version-check")
    subprocess.run((*pip, "wheel", "--wheel-dir", str(scratch / "wheels"), str(wheel), "pip"), check=True)
    for installer in INSTALLERS:
        if subprocess.run((*pip, "install", installer.project), check=False).returncode:
            print(f"Not checked, because {installer.project} cannot be had.")
        else:
            _check_one(installer, wheel, scratch)


def _check_one(installer: Installer, wheel: Path, scratch: Path) -> None:
    place = scratch / installer.project
    programs = place / "bin"
    place.mkdir()
    path = os.pathsep.join((str(scratch / "installers" / "bin"), str(programs), os.defpath))
    ours = {name: text.format(place) for name, text in installer.environ.items()}
    environ = {"HOME": str(place), "PATH": path, **ours}
    command = [word.format(place) for word in installer.install]
    subprocess.run((*command, str(wheel)), check=True, env=environ)
    for program, option in _EXPECTED.items():
        found = subprocess.run(
            (str(programs / program), option), check=True, env=environ, capture_output=True, text=True
        )
        print(f"{installer.project}: {program} {option}: {found.stdout.splitlines()[0]}")
        if "aileron" not in found.stdout or found.stderr:
            sys.exit(f"{program} {option} says:\n{found.stdout}{found.stderr}")
    subprocess.run(installer.uninstall, check=True, env=environ)
    # Their caches, and the empty file by which pipx keeps two of its calls apart, are theirs.
    names = (each.relative_to(place) for each in place.rglob("*aileron*"))
    left = [str(name) for name in names if name.parts[0] != "cache" and name.suffix != ".lock"]
    if left:
        sys.exit(f"{installer.project} left behind: {left}")
