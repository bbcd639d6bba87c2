"""Makes the documentation's pictures, as ``tox -e pictures`` runs it: ``python -m tests.pictures SHOTS DIRECTORY``.

SHOTS holds what the browser tests kept with AILERON_TEST_PICTURES. DIRECTORY then holds those that the documentation
shows, and ``demo.svg``: the demo as a terminal shows it.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

SHOWN = {"window-approval": "approval.png", "window-home": "home.png"}
"""The pictures of the documentation, by what the browser tests call them."""

_COLUMNS = 120
_FONT = re.compile(r"@font-face \{[^}]*\}\s*")  # it would be fetched from elsewhere


def record_demo() -> str:
    """Play the demo at a terminal of its own, and return what it showed."""
    ours, its = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(_COLUMNS), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "aileron", "demo", "--yes"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=its, stderr=its, env=environment) as playing:
        os.close(its)
        shown = bytearray()
        while part := _read(ours):
            shown += part
    os.close(ours)
    if playing.returncode:
        raise SystemExit(f"The demo failed:\n{shown.decode()}")
    text = shown.decode().replace("\r\n", "\n")
    return text.replace(os.path.realpath(sys.executable), "/usr/bin/python3").replace(os.getcwd(), "~/project")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end of a terminal is closed
        return b""


def draw(shown: str) -> str:
    """Draw what a terminal showed as SVG, in whatever monospaced font the reader has."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ aileron demo --yes\n{shown}"))
    return _FONT.sub("", console.export_svg(title="aileron demo"))


def main(shots: Path, directory: Path) -> None:
    """Put all pictures into C{directory}."""
    directory.mkdir(parents=True, exist_ok=True)
    for kept, name in SHOWN.items():
        shutil.copyfile(shots / f"{kept}.png", directory / name)
    (directory / "demo.svg").write_text(draw(record_demo()), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
