"""Users of the machine other than the tester's, for tests that root runs: who they are, and what they can run."""

import contextlib
import os
import pwd
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

_FIRST_UID = 61_000
_MOST_TRIED = 1000
_SETPRIV = "/usr/bin/setpriv"
_PROBE = "import site, sys; site.addsitedir(sys.argv[1]); import aileron._start, ctypes, sqlite3, ssl, twisted"
_START = "import sys\nfrom aileron._start import command_line\nsys.exit(command_line())\n"


def why_none() -> str | None:
    """Return the reason why a test cannot run programs as other users, or None if it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root of a Linux machine can be other users"
    return None if os.path.exists(_SETPRIV) else f"{_SETPRIV} is not installed"


def unused_uids() -> Iterator[int]:
    """Yield numbers of users that have no account and run no process."""
    running = set(_running_uids())
    for uid in range(_FIRST_UID, _FIRST_UID + _MOST_TRIED):
        try:
            pwd.getpwuid(uid)
        except KeyError:
            if uid not in running:
                yield uid


def _running_uids() -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            yield process.stat().st_uid


def as_user(uid: int) -> tuple[str, ...]:
    """Return the command in front of another, which then runs as this user and group, without other groups.

    The program between is the one that setpriv executes with the privileges of root.
    """
    return (_SETPRIV, f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all", "/usr/bin/env")


def find_interpreter(uid: int) -> str | None:
    """Return a Python of this version with which this user can run Aileron, or None if there is none.

    The tester's own may be in a directory that is closed to other users.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for path in (os.path.realpath(sys.executable), f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        if os.path.exists(path):
            tried = (*as_user(uid), path, "-I", "-c", _PROBE, sysconfig.get_path("purelib"))
            if subprocess.run(tried, cwd="/", capture_output=True, check=False).returncode == 0:
                return path
    return None


def install_for(root: Path, interpreter: str) -> Path:
    """Make an environment with what the tester's has, by another interpreter; return the directory of its programs."""
    make = "import sys, venv; venv.create(sys.argv[1], with_pip=False, symlinks=True)"
    subprocess.run((interpreter, "-I", "-c", make, str(root)), check=True)
    (packages,) = root.glob("lib/python*/site-packages")
    ours = sysconfig.get_path("purelib")
    (packages / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n", "utf-8")
    program = root / "bin" / "aileron"
    program.write_text(f"#!{root / 'bin' / 'python'}\n{_START}", "utf-8")
    program.chmod(0o755)
    return program.parent


def give(root: Path, uid: int) -> None:
    """Make everything below a directory, and the directory, this user's."""
    for path in (root, *root.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)
