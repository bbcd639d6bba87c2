"""The commands that agents run to learn of outcomes while they are idle."""

from __future__ import annotations

import shlex
from pathlib import Path

_HERE = Path(__file__).parent

OPENCODE_WAKE = _HERE / "static" / "opencode.js"
PI_WAKE = _HERE / "static" / "pi.ts"

MODE = "AILERON_WAKE"
"""The variable that tells a plugin what to do, see L{name_mode}."""

_WAITS, _SAYS = "waits", "says"


def name_mode(*, waits: bool) -> str:
    """Return the hook program's argument: C{waits} to wait for outcomes, C{says} only to report the conversation."""
    return _WAITS if waits else _SAYS


def hook_command(interpreter: str, *, waits: bool) -> str:
    """Return the shell command of Claude Code's hook.

    :param interpreter: the path of the Python interpreter.
    """
    return shlex.join((interpreter, "-I", str(_HERE / "hook.py"), name_mode(waits=waits)))
