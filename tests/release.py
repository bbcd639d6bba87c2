"""Builds what is released and checks it, as ``tox -e release`` runs it: ``python -m tests.release DIRECTORY``.

DIRECTORY then holds wheel, source archive and ``sbom.json``. Both are built twice, and the bytes compared; they
are judged by twine and check-wheel-contents; the wheel is installed beside nothing else and plays the demo; pipx and uv
install it from a directory of wheels, run it and remove it; and the processor time of the installed gateway is held to
what was recorded.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path

from bench import gateway
from tests import manual, tools

ROOT = Path(__file__).resolve().parent.parent


def epoch() -> int:
    """Return the moment of the commit that is built, by which every build has the same times."""
    return int(_output("git", "-C", str(ROOT), "log", "-1", "--format=%ct"))


def build(directory: Path, moment: int) -> Mapping[str, str]:
    """Build the source archive, and the wheel from it.

    :return: the SHA-256 of each file by its name.
    """
    source = directory / "source"
    _run("git", "-C", str(ROOT), "worktree", "add", "--detach", "--quiet", str(source), "HEAD")
    try:
        manual.write(source, moment)
        environ = {**os.environ, "SOURCE_DATE_EPOCH": str(moment)}
        out = str(directory)
        _run(sys.executable, "-m", "build", "--sdist", "--outdir", out, str(source), environ=environ)
        (archive,) = directory.glob("*.tar.gz")
        normalise(archive, moment)
        _run(sys.executable, "-m", "build", "--wheel", "--outdir", out, str(source), environ=environ)
    finally:
        _run("git", "-C", str(ROOT), "worktree", "remove", "--force", str(source))
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in sorted(directory.glob("aileron-*"))}


def normalise(archive: Path, moment: int) -> None:
    """Write a source archive anew, with members in order and nothing of the machine in it that made it."""
    with tarfile.open(archive) as given:
        members = [(member, given.extractfile(member)) for member in given.getmembers()]
        content = [(member, file.read() if file else b"") for member, file in members]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as target:
        for member, data in sorted(content, key=lambda each: each[0].name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = moment, 0, 0, "", ""
            member.mode, member.pax_headers = (0o755 if member.isdir() or member.mode & 0o100 else 0o644), {}
            target.addfile(member, io.BytesIO(data))
    with open(archive, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=moment) as file:
        file.write(packed.getvalue())


def install(directory: Path, home: Path) -> Path:
    """Install the wheel into an environment of its own, made at C{home}; its ``bin``.

    By its path: an index may have a project of another's under the same name.
    """
    venv.create(home, with_pip=True)
    programs = home / "bin"
    (wheel,) = directory.glob("aileron-*.whl")
    _run(str(programs / "pip"), "install", "--quiet", "--disable-pip-version-check", str(wheel))
    return programs


def check_pace(programs: Path) -> None:
    """Fail where the installed gateway takes a tenth more processor time than was recorded."""
    if sys.platform != "linux":
        print("the gateway's pace: measured on Linux alone")
        return
    try:
        print(gateway.check(programs / "aileron", sys.version_info[:2]))
    except gateway.Slower as slower:
        sys.exit(f"The gateway has become slower. {slower}")


def main() -> None:
    """Build twice, compare, judge, install, play, measure."""
    target = Path(sys.argv[1]).resolve()
    target.mkdir(parents=True)
    moment = epoch()
    with tempfile.TemporaryDirectory() as other:
        first, second = build(target, moment), build(Path(other), moment)
    if first != second:
        sys.exit(f"Two builds differ:\n{first}\n{second}")
    files = [str(target / name) for name in first]
    _run(sys.executable, "-m", "twine", "check", "--strict", *files)
    # W009: beside the package lies the plugin that makes it known to twistd, in the namespace that is Twisted's.
    _run("check-wheel-contents", "--ignore", "W009", *(name for name in files if name.endswith(".whl")))
    with tempfile.TemporaryDirectory() as home:
        programs = install(target, Path(home, "installed"))
        manual.check(programs.parent / "share")
        _run("cyclonedx-py", "environment", str(programs / "python"), "--output-file", str(target / "sbom.json"))
        _run(str(programs / "aileron"), "demo", "--yes", environ={"PATH": os.environ["PATH"], "HOME": home})
        tools.check(next(target.glob("aileron-*.whl")), Path(home, "tools"))
        check_pace(programs)
    print("\n".join(f"{digest}  {name}" for name, digest in first.items()))


def _run(*command: str, environ: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, check=True, env=environ)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
