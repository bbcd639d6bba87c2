"""Builds what a release ships beside the package, and checks it: man pages and scripts that complete commands.

Both are made from the commands themselves. ``tests.release`` puts them into the source tree, where ``setup.cfg`` finds
them; a wheel that is built without them has none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from aileron.cli._main import aileron

SCRIPTS: Mapping[str, str] = {
    "bash": "bash-completion/completions/aileron",
    "zsh": "zsh/site-functions/_aileron",
    "fish": "fish/vendor_completions.d/aileron.fish",
}
"""For each shell the file in which it looks for our script, below ``share``."""
PAGES = ("man/man1/aileron.1", "man/man1/aileron-mcp.1")


def write(source: Path, moment: int) -> None:
    """Write them into ``share`` of a source tree, from the commands of that tree.

    :param moment: whose day the pages name.
    """
    share = source / "share"
    environ = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    day = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")
    pages = share / "man" / "man1"
    with tempfile.TemporaryDirectory() as doctrees:
        sphinx = (sys.executable, "-m", "sphinx", "-W", "-q", "-b", "man", "-D", f"today={day}", "-d", doctrees)
        subprocess.run((*sphinx, str(source / "packaging" / "man"), str(pages)), check=True, env=environ, cwd=source)
    for shell, place in SCRIPTS.items():
        made = subprocess.run(
            (sys.executable, "-m", "aileron", "completion", shell),
            check=True,
            env=environ,
            cwd=source,
            stdout=subprocess.PIPE,
        )
        (share / place).parent.mkdir(parents=True)
        (share / place).write_bytes(made.stdout)


def check(share: Path) -> None:
    """Check what was installed below ``share``: the pages name every command, and nobody who reads one of the files
    warns.  A reader that this machine does not have is left out.

    :raises SystemExit: one is missing, incomplete or faulty.
    """
    page = (share / PAGES[0]).read_text("utf-8")
    told = page.replace("\\-", "-").replace("\\&", "")
    missing = [path for path in commands(aileron, "aileron") if f"\n{path} [OPTIONS]" not in told]
    if missing:
        sys.exit(f"The man page does not name: {', '.join(missing)}")
    for place in PAGES:
        _read_with("groff", "-man", "-ww", "-z", "-Tutf8", "-Kutf8", str(share / place))
        _read_with("mandoc", "-T", "lint", "-W", "error", str(share / place))
    for shell, place in SCRIPTS.items():
        _read_with(shell, "-n", str(share / place))


def commands(group: click.Group, path: str) -> Iterator[str]:
    """Yield the path of every command that is not hidden."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is not None and not found.hidden:
            yield f"{path} {name}"
            if isinstance(found, click.Group):
                yield from commands(found, f"{path} {name}")


def _read_with(*command: str) -> None:
    if shutil.which(command[0]) is None:
        print(f"Not checked, because {command[0]} is not installed: {command[-1]}")
        return
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    if found.returncode or found.stderr:
        sys.exit(f"{' '.join(command)} says:\n{found.stdout}{found.stderr}")
