"""Installs what functional tests drive or are judged by: ``python -m tests.functional.install DIRECTORY``.

The only part of them that downloads anything. Where the right version lies already, it does nothing.
"""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.extent import is_all
from tests.functional import npm

PACKAGE = "opencode-ai"
VERSION = "1.18.33"
AXE = "axe-core"
AXE_VERSION = "4.14.1"
BROWSER = Path("/usr/bin/chromium")
SHELL = Path("/usr/lib/chromium/chromium-headless-shell")
GIT = Path("/usr/bin/git")
SANDBOX = Path("/usr/bin/bwrap")
FRONT = Path("/usr/sbin/nginx")
SIGNER = Path("/usr/bin/minisign")
CURL = Path("/usr/bin/curl")
GH = Path("/usr/bin/gh")
GLAB = Path("/usr/bin/glab")
NODE_CLIENTS = {"@octokit/rest": "22.0.1", "axios": "1.21.1"}
SDKS = ("python-gitlab==8.6.0", "slack_sdk==3.48.0", "stripe==16.1.0")
SERVERS = Path("/usr/lib/postgresql")
NO_CLUSTER = Path("/etc/postgresql-common/createcluster.d/none-for-tests.conf")
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


def shell(directory: Path) -> Path:
    """Where Chromium's headless shell lies, or will lie: the system's own, or one under an install directory.

    It draws and runs what Chromium does, without the window's own pages and services: half the processor time.
    """
    return SHELL if SHELL.exists() else directory / "chromium" / SHELL.relative_to("/")


def browser(directory: Path) -> Path:
    """The headless shell if it is there, else Chromium itself."""
    return shell(directory) if shell(directory).exists() else BROWSER


def install_browser(directory: Path) -> Path:
    """Make Debian's Chromium be there, and its headless shell if apt has one for it; return the program to use.

    :raises subprocess.CalledProcessError: when apt fails to install Chromium.
    :raises RuntimeError: when it is missing and we may not install it, or does not start.
    """
    _install(BROWSER, "chromium")  # the shell needs its libraries
    with suppress(subprocess.CalledProcessError, FileNotFoundError):
        _unpack(shell(directory), directory / "chromium", "chromium-common", "chromium-headless-shell")
    if shell(directory).exists() and not _starts(shell(directory)):
        shutil.rmtree(directory / "chromium", ignore_errors=True)
    program = browser(directory)
    if not _starts(program):
        raise RuntimeError(f"{program} does not start")
    return program


def _starts(program: Path) -> bool:
    return subprocess.run([program, "--version"], capture_output=True, timeout=60, check=False).returncode == 0


def install_sandbox() -> Path:
    """Make bubblewrap be there, and git, whose repositories it guards; return the former's program.

    :raises subprocess.CalledProcessError: when apt fails.
    :raises RuntimeError: when it is missing and we may not install it.
    """
    _install(GIT, "git")
    _install(SANDBOX, "bubblewrap")
    return SANDBOX


def install_signer() -> Path:
    """Make minisign be there, and return its program.

    :raises subprocess.CalledProcessError: when apt fails.
    :raises RuntimeError: when it is missing and we may not install it.
    """
    _install(SIGNER, "minisign")
    return SIGNER


def install_curl() -> Path:
    """Make curl be there, and return its program.

    :raises subprocess.CalledProcessError: when apt fails.
    :raises RuntimeError: when it is missing and we may not install it.
    """
    _install(CURL, "curl")
    return CURL


def install_gh() -> None:
    """Make GitHub's C{gh} be there, if the system has a package of it. Otherwise tests that drive it are skipped."""
    with suppress(subprocess.CalledProcessError, RuntimeError):
        _install(GH, "gh")


def glab(directory: Path | None = None) -> Path:
    """Where GitLab's C{glab} lies, or will lie: the system's own, or one under an install directory."""
    return GLAB if GLAB.exists() else (directory or place() / "opencode") / "glab" / GLAB.relative_to("/")


def install_glab(directory: Path) -> None:
    """Make C{glab} be there, which a seldom test drives, if the system has a package of it."""
    if not is_all():
        return
    with suppress(subprocess.CalledProcessError, FileNotFoundError):
        _unpack(glab(directory), directory / "glab", "glab")


def sdks(directory: Path | None = None) -> Path:
    """Where the SDKs of services lie, or will lie: a directory for C{PYTHONPATH}."""
    return (directory or place() / "opencode") / "sdks"


def install_sdks(directory: Path) -> None:
    """Make the SDKs of services be there, which only tests that are run seldom use.

    :raises subprocess.CalledProcessError: when pip fails.
    """
    if is_all() and not sdks(directory).exists():
        pip = (sys.executable, "-m", "pip", "install", "-q", "--only-binary", ":all:")
        npm.run(*pip, "--target", str(sdks(directory)), *SDKS, directory=Path("/"))


def node_clients(directory: Path | None = None) -> Path:
    """Where packages of npm that use services lie, or will lie."""
    return (directory or place() / "opencode") / "clients"


def install_node_clients(directory: Path) -> None:
    """Make those packages be there, which only tests that are run seldom use.

    :raises subprocess.CalledProcessError: when npm fails.
    """
    there = node_clients(directory)
    if is_all() and not all(npm.lies(there, name, version) for name, version in NODE_CLIENTS.items()):
        npm.fetch(there, NODE_CLIENTS)


def database() -> Path | None:
    """The directory of the newest PostgreSQL server's programs, or None if there is none."""
    found = [each for each in SERVERS.glob("*/bin") if (each / "initdb").exists()]
    return max(found, key=lambda each: int(each.parent.name.partition(".")[0]), default=None)


def install_database() -> Path:
    """Make Debian's PostgreSQL be there, and return the directory of its programs; no server is set up or started.

    :raises subprocess.CalledProcessError: when apt fails.
    :raises RuntimeError: when it is missing and we may not install it.
    """
    if database() is None:
        if os.geteuid() == 0:
            NO_CLUSTER.parent.mkdir(parents=True, exist_ok=True)
            NO_CLUSTER.write_text("create_main_cluster = false\n")
        _install(SERVERS / "none", "postgresql")
    found = database()
    if found is None:
        raise RuntimeError(f"PostgreSQL is not in {SERVERS}")
    return found


def front(directory: Path) -> Path:
    """Where nginx lies, or will lie: the system's own, or one under an install directory."""
    return FRONT if FRONT.exists() else directory / "nginx" / FRONT.relative_to("/")


def install_front(directory: Path) -> Path:
    """Make Debian's nginx be there and return its program; nothing is set up that would serve by itself.

    :raises subprocess.CalledProcessError: when apt fails.
    """
    program = front(directory)
    _unpack(program, directory / "nginx", "nginx")
    return program


def _unpack(program: Path, directory: Path, *packages: str) -> None:
    """Unpack packages of the system's under a directory, unless the program is there; the last one brings it."""
    if program.exists():
        return
    directory.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        _look_for_packages()
    npm.run("apt-get", "download", "-q", *packages, directory=directory)
    for package in packages:
        for archive in directory.glob(f"{package}_*.deb"):
            npm.run("dpkg", "-x", archive.name, ".", directory=directory)
            archive.unlink()


def _install(program: Path, package: str) -> None:
    if program.exists():
        return
    if os.geteuid() != 0:
        raise RuntimeError(f"{program} is missing: as root, apt-get install {package}")
    _look_for_packages()
    npm.run("apt-get", "install", "-q", "-y", "--no-install-recommends", package, directory=Path("/"))


@cache
def _look_for_packages() -> None:
    npm.run("apt-get", "update", "-q", directory=Path("/"))


def main() -> None:
    """Install all of it, agent and judge into the directory named on the command line; print the agent's path."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.executable} -m tests.functional.install DIRECTORY")
    directory = Path(sys.argv[1]).absolute()
    install_browser(directory)
    install_sandbox()
    install_signer()
    install_curl()
    install_gh()
    install_glab(directory)
    install_sdks(directory)
    install_node_clients(directory)
    install_axe(directory)
    install_front(directory)
    install_database()
    print(install(directory))


if __name__ == "__main__":
    main()
