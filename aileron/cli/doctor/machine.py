"""Checks of who may write Aileron's files and code, and trace its processes."""

from __future__ import annotations

import os
import site
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from aileron.base.disk import FULL_BYTES
from aileron.features import FeatureSet
from aileron.home.paths import Home

from .findings import DoctorFinding, Severity, remark, wrong

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS = 0o077
_LITTLE_BYTES = 100 * 1024 * 1024


def files(home: Home, uid: int) -> Iterator[DoctorFinding]:
    """Yield problems of the home, its files, and the directories above it.

    :param uid: the ID of the expected owner.
    """
    if not home.root.exists():
        yield remark(f"There is no home at {home.root} yet.", "Create it, with a vault: aileron vault init")
        return
    if home.root.is_symlink():
        yield remark(
            f"{home.root} is a link to {home.root.resolve()}. Anybody who can change the link chooses the home."
        )
    for path in (home.root.resolve(), home.actions, home.connectors, home.log):
        yield from _private(path, uid, "directory")
    for path in (home.secrets, home.database, home.moved_database, home.discovery, home.ports, home.lock):
        yield from _private(path, uid, "file")
    of_features = [home.root / name for name in FeatureSet().file_names()]
    for path in (home.config, *of_features, *_entries(home.actions), *_entries(home.connectors)):
        yield from _sound(path, uid)
    yield from _check_above(home.root.resolve(), uid)


def disk(home: Home, free: int | None) -> Iterator[DoctorFinding]:
    """Report if the home's disk is full, or nearly full.

    :param free: the free bytes, or None if unknown.
    """
    if free is None or free >= _LITTLE_BYTES:
        return
    advice = "Free some space. The database and the log are in that directory."
    if free < FULL_BYTES:
        yield wrong(f"The disk that holds {home.root} is full: nothing can be saved, so nothing can run.", advice)
    else:
        yield remark(f"The disk that holds {home.root} is almost full: {free >> 20} MiB are free.", advice)


THIS_PACKAGE = Path(__file__).resolve().parents[2]
"""The directory in which Aileron is installed."""


def program(package: Path, executable: Path, uid: int) -> Iterator[DoctorFinding]:
    """Yield problems of the installed code.

    :param package: the directory in which Aileron is installed.
    :param executable: the path of Python as started.
    """
    if package.is_relative_to(site.getusersitepackages()):
        yield remark(
            f"Aileron is installed in your user site directory ({package.parent}), so the daemon loads from there.",
            "Install it in its own environment: in Aileron's source, run `pipx install .`",
        )
    for path, what in ((package, "Aileron's own code"), (executable.resolve(), "Python")):
        found = path.stat()
        if found.st_mode & _OTHERS_WRITE:
            yield wrong(f"Other users can write {what}: {path}", f"chmod go-w {path}")
        if found.st_uid == uid and uid != 0:
            yield remark(f"You can write {what} ({path}), and so can an agent: what it changes there, runs as you.")
    commands = executable.absolute().parent
    if commands.stat().st_mode & _OTHERS_WRITE:
        yield wrong(f"Other users can write the directory of Aileron's commands: {commands}", f"chmod go-w {commands}")
    yield from _check_above(package, uid)


def search_path(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Report if Python programs search the working directory for modules."""
    parts = environ.get("PYTHONPATH", "")
    if parts and not all(map(os.path.isabs, parts.split(os.pathsep))):
        yield remark(
            "PYTHONPATH has an empty or relative entry, so Python programs load modules from the directory that you "
            "start them in. Aileron's commands ignore it, but code that Python loads before them still runs.",
            "Use absolute paths only: export PYTHONPATH=/one/path:/another",
        )


def _private(path: Path, uid: int, what: str) -> Iterator[DoctorFinding]:
    found = _status(path)
    if found is None:
        return
    expected = stat.S_ISDIR if what == "directory" else stat.S_ISREG
    if not expected(found.st_mode):
        yield wrong(f"{path} is not a {what}, but a link or something else.", "Check where it points, and fix it.")
        return
    if found.st_uid != uid:
        yield wrong(
            f"{path} belongs to another user (number {found.st_uid}).", f"Find out why, then run: chown {uid} {path}"
        )
    elif stat.S_IMODE(found.st_mode) & _OTHERS:
        yield wrong(f"{path} is accessible to other users (mode {stat.S_IMODE(found.st_mode):o}).", f"chmod go= {path}")


def _sound(path: Path, uid: int) -> Iterator[DoctorFinding]:
    """Yield a finding if a file that is trusted by its digest is a link, another user's, or writable by everybody.

    Others may read the file, and its group may write it: a change only makes the file untrusted.
    """
    found = _status(path)
    if found is None:
        return
    if not stat.S_ISREG(found.st_mode) or found.st_uid != uid or found.st_mode & stat.S_IWOTH:
        yield wrong(
            f"{path} is a link, belongs to another user, or can be written by everybody.",
            "Replace it with a file of your own.",
        )


def _check_above(path: Path, uid: int) -> Iterator[DoctorFinding]:
    """Find parent directories in which another user may replace C{path}. Sticky ones are safe."""
    for parent in path.parents:
        found = _status(parent)
        if found is None:
            return
        if found.st_uid not in {0, uid}:
            yield wrong(f"{parent}, above {path}, belongs to another user, who can replace it.")
        elif found.st_mode & _OTHERS_WRITE and not found.st_mode & stat.S_ISVTX:
            yield wrong(f"Other users can write {parent}, above {path}, and replace it.", f"chmod go-w {parent}")


def _entries(directory: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in directory.iterdir() if not path.name.startswith("."))
    except OSError:
        return  # reported for the directory itself


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


_PROC = Path("/proc")
_SCOPE = Path("sys/kernel/yama/ptrace_scope")
_SETTING = "kernel.yama.ptrace_scope"
_WINDOW = "trace a process of Aileron's before it has closed itself"
_CLOSED = {
    "1": f"A program can trace only what it started itself ({_SETTING} is 1).",
    "2": f"Only an administrator's programs can trace processes ({_SETTING} is 2).",
    "3": f"No program can trace a process ({_SETTING} is 3).",
}


def tracing(
    advice: tuple[str, str] | None = None, proc: Path = _PROC, platform: str = sys.platform
) -> Iterator[DoctorFinding]:
    """Report which programs may trace a process of Aileron's while it starts.

    None of the findings is a fault of the installation: the machine allows this for all programs.

    :param advice: a sentence and a command that prevents it, or None if there is no such command.
    :param proc: the directory C{/proc} of the kernel.
    """
    if platform.startswith("linux"):
        yield _by_yama(proc / _SCOPE, advice)
    elif platform == "darwin":
        yield remark(
            f"On macOS nothing of Aileron's keeps other programs of yours from trying to {_WINDOW}. That it closes "
            "itself afterwards is untested."
        )
    else:
        yield remark(
            f"Aileron does not close its processes to other programs of yours on this system ({platform}): they may "
            "be able to read its keys."
        )


def _by_yama(setting: Path, advice: tuple[str, str] | None) -> DoctorFinding:
    try:
        scope = setting.read_text().strip()
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        found = "is not there: Yama is not active" if missing else f"cannot be read ({type(error).__name__})"
        may = f"other programs of yours, an agent among them, may {_WINDOW}"
        sentence, command = advice or (None, None)
        return remark(" ".join(filter(None, (f"{setting} {found}, so {may}.", sentence))), command)
    if scope in _CLOSED:
        return DoctorFinding(Severity.FINE, _CLOSED[scope])
    return remark(
        f"Other programs of yours, an agent among them, may {_WINDOW} ({_SETTING} is {scope or 'empty'}). Set it to 1; "
        "to keep that after a restart, write the setting into a file in /etc/sysctl.d as well.",
        f"sudo sysctl {_SETTING}=1",
    )
