"""Opens a file in the person's browser.  Its argument is a path: nothing secret stands in a command line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def browser_command(environ: Mapping[str, str], platform: str = sys.platform) -> tuple[str, ...] | None:
    """What opens a page here, or L{None}: there is no browser.

    C{BROWSER} comes first; the first of its words that can be run counts, a C{%s} is left out.
    """
    path = environ.get("PATH", os.defpath)
    for choice in filter(None, environ.get("BROWSER", "").split(os.pathsep)):
        words = [word for word in shlex.split(choice) if word != "%s"]
        if words and shutil.which(words[0], path=path):
            return tuple(words)
    if platform == "darwin":
        return ("open",)
    if not any(environ.get(name) for name in _DISPLAYS):
        return None
    return ("xdg-open",) if shutil.which("xdg-open", path=path) else None


def open_file(file: Path, environ: Mapping[str, str]) -> bool:
    """Ask the person's browser to show C{file}; whether there is one to ask."""
    command = browser_command(environ)
    if command is None:
        return False
    try:
        subprocess.Popen(
            (*command, str(file)),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    return True
