"""Builds what a release ships beside the package, and checks it: man pages and scripts that complete commands.

Both are made from the commands themselves. ``tests.release`` puts them into the source tree, where ``setup.cfg`` finds
them; a wheel that is built without them has none. ``python -m tests.manual`` makes the pages alone and checks them, as
``tox -e doc`` does each day.
"""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
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
_ROOT = Path(__file__).resolve().parent.parent
_TEXT_COLUMNS, _OPTION_COLUMNS = 71, 64
"""What is left of a line of a man page for what a command does, and for what an option of it does."""


def write(source: Path, moment: int) -> None:
    """Write them into ``share`` of a source tree, from the commands of that tree.

    :param moment: whose day the pages name.
    """
    share = source / "share"
    _write_pages(source, share, moment)
    for shell, place in SCRIPTS.items():
        made = subprocess.run(
            (sys.executable, "-m", "aileron", "completion", shell),
            check=True,
            env=_import_from(source),
            cwd=source,
            stdout=subprocess.PIPE,
        )
        (share / place).parent.mkdir(parents=True)
        (share / place).write_bytes(made.stdout)


def _write_pages(source: Path, share: Path, moment: int) -> None:
    day = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")
    pages = share / Path(PAGES[0]).parent
    with tempfile.TemporaryDirectory() as doctrees:
        sphinx = (sys.executable, "-m", "sphinx", "-W", "-q", "-b", "man", "-D", f"today={day}", "-d", doctrees)
        command = (*sphinx, str(source / "packaging" / "man"), str(pages))
        subprocess.run(command, check=True, env=_import_from(source), cwd=source)


def _import_from(source: Path) -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}


def check(share: Path) -> None:
    """Check what was installed below ``share``: the pages name every command, and nobody who reads one of the files
    warns.  A reader that this machine does not have is left out.

    :raises SystemExit: one is missing, incomplete or faulty.
    """
    _check_pages(share)
    for shell, place in SCRIPTS.items():
        _read_with(shell, "-n", str(share / place))


def _check_pages(share: Path) -> None:
    page = (share / PAGES[0]).read_text("utf-8")
    told = page.replace("\\-", "-").replace("\\&", "")
    missing = [path for path, _ in commands(aileron, "aileron") if f"\n{path} [OPTIONS]" not in told]
    if missing:
        sys.exit(f"The man page does not name: {', '.join(missing)}")
    for place in PAGES:
        _read_with("groff", "-man", "-ww", "-z", "-Tutf8", "-Kutf8", str(share / place))
        _read_with("mandoc", "-T", "lint", "-W", "error", str(share / place))


def find_unbreakable(group: click.Group, path: str) -> Iterator[str]:
    """Find help texts that a man page cannot set, where no program is there to say so.

    A word that is too long for the rest of a line leaves a single word on that line, which groff cannot adjust.

    :return: where each is, and its line.
    """
    for name, command in commands(group, path):
        yield from (f"{name}: {line}" for line in _single_words(command.help or "", _TEXT_COLUMNS))
        for each in command.params:
            if isinstance(each, click.Option) and not each.hidden:
                yield from (
                    f"{name} {each.opts[0]}: {line}" for line in _single_words(each.help or "", _OPTION_COLUMNS)
                )


def _single_words(text: str, columns: int) -> Iterator[str]:
    """Yield the lines of a text, but for the last ones of its paragraphs, that hold one word, and words too long."""
    for paragraph in inspect.cleandoc(text).replace("``", "").split("\n\n"):
        parts = paragraph.split("\n")[1:] if paragraph.startswith("\b") else [paragraph]
        for part in parts:
            lines = textwrap.wrap(part, columns, break_long_words=False, break_on_hyphens=False)
            single = (line for line in lines[:-1] if " " not in line)
            yield from dict.fromkeys([*single, *(line for line in lines if len(line) > columns)])


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that is not hidden, with its path."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is not None and not found.hidden:
            yield f"{path} {name}", found
            if isinstance(found, click.Group):
                yield from commands(found, f"{path} {name}")


def _read_with(*command: str) -> None:
    if shutil.which(command[0]) is None:
        print(f"Not checked, because {command[0]} is not installed: {command[-1]}")
        return
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    if found.returncode or found.stderr:
        sys.exit(f"{' '.join(command)} says:\n{found.stdout}{found.stderr}")


def main() -> None:
    """Make the man pages from the commands of this source tree, and check them."""
    with tempfile.TemporaryDirectory() as directory:
        _write_pages(_ROOT, Path(directory), 0)
        _check_pages(Path(directory))


if __name__ == "__main__":
    main()
