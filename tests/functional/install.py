"""Installs what functional tests drive or are judged by: ``python -m tests.functional.install DIRECTORY``.

The only part of them that downloads anything. Where the right version lies already, it does nothing.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.functional import npm

PACKAGE = "opencode-ai"
VERSION = "1.18.33"
AXE = "axe-core"
AXE_VERSION = "4.14.1"
BROWSER = Path("/usr/bin/chromium")
GIT = Path("/usr/bin/git")
SANDBOX = Path("/usr/bin/bwrap")
FRONT = Path("/usr/sbin/nginx")
PLACE_VARIABLE = "AILERON_TEST_PROGRAMS"


def place() -> Path:
    """Where programs lie, each in a directory of its own: ``$AILERON_TEST_PROGRAMS``, else in this environment."""
    return Path(os.environ.get(PLACE_VARIABLE) or sys.prefix)


def binary(directory: Path) -> Path:
    """Where the agent's program lies, or will lie, under an install directory."""
    return npm.package(directory, PACKAGE) / "bin" / "opencode.exe"


def is_installed(directory: Path) -> bool:
    """Whether the pinned version lies there and its program starts."""
    return npm.lies(directory, PACKAGE, VERSION) and npm.starts(binary(directory), VERSION)


def axe(directory: Path) -> Path:
    """Where axe-core lies, or will lie, under an install directory."""
    return npm.package(directory, AXE) / "axe.min.js"


def install(directory: Path) -> Path:
    """Make the pinned version lie under ``directory`` and return its program.

    :raises subprocess.CalledProcessError: when npm or the package's own setup fails.
    :raises RuntimeError: when the program does not start afterwards.
    """
    if not is_installed(directory):
        npm.fetch(directory, {PACKAGE: VERSION})
        # npm may refuse to run this by itself, depending on its version: it puts the platform's program in place.
        npm.run("node", "postinstall.mjs", directory=npm.package(directory, PACKAGE))
    if not is_installed(directory):
        raise RuntimeError(f"{binary(directory)} does not start")
    return binary(directory)


def install_axe(directory: Path) -> Path:
    """Make the pinned axe-core lie under ``directory`` and return its script.

    :raises subprocess.CalledProcessError: when npm fails.
    """
    if not npm.lies(directory, AXE, AXE_VERSION):
        npm.fetch(directory, {AXE: AXE_VERSION})
    return axe(directory)


def install_browser() -> Path:
    """Make Debian's Chromium be there and return its program.

    :raises subprocess.CalledProcessError: when apt fails.
    :raises RuntimeError: when it is missing and we may not install it, or does not start.
    """
    _install(BROWSER, "chromium")
    answer = subprocess.run([BROWSER, "--version"], capture_output=True, text=True, timeout=60, check=False)
    if answer.returncode != 0:
        raise RuntimeError(f"{BROWSER} does not start: {answer.stderr}")
    return BROWSER


def install_sandbox() -> Path:
    """Make bubblewrap be there, and git, whose repositories it guards; return the former's program.

    :raises subprocess.CalledProcessError: when apt fails.
    :raises RuntimeError: when it is missing and we may not install it.
    """
    _install(GIT, "git")
    _install(SANDBOX, "bubblewrap")
    return SANDBOX


def front(directory: Path) -> Path:
    """Where nginx lies, or will lie: the system's own, or one under an install directory."""
    return FRONT if FRONT.exists() else directory / "nginx" / FRONT.relative_to("/")


def install_front(directory: Path) -> Path:
    """Make Debian's nginx be there and return its program; nothing is set up that would serve by itself.

    :raises subprocess.CalledProcessError: when apt fails.
    """
    program = front(directory)
    if not program.exists():
        place = directory / "nginx"
        place.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            _look_for_packages()
        npm.run("apt-get", "download", "-q", "nginx", directory=place)
        for package in place.glob("nginx_*.deb"):
            npm.run("dpkg", "-x", package.name, ".", directory=place)
    return program


def _install(program: Path, package: str) -> None:
    if program.exists():
        return
    if os.geteuid() != 0:
        raise RuntimeError(f"{program} is missing: as root, apt-get install {package}")
    _look_for_packages()
    npm.run("apt-get", "install", "-q", "-y", "--no-install-recommends", package, directory=Path("/"))


def _look_for_packages() -> None:
    npm.run("apt-get", "update", "-q", directory=Path("/"))


def main() -> None:
    """Install all of it, agent and judge into the directory named on the command line; print the agent's path."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.executable} -m tests.functional.install DIRECTORY")
    install_browser()
    install_sandbox()
    directory = Path(sys.argv[1]).absolute()
    install_axe(directory)
    install_front(directory)
    print(install(directory))


if __name__ == "__main__":
    main()
