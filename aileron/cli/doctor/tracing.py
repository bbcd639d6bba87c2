"""Tells who may trace Aileron's processes while they start, before they have closed themselves.

A process that is traced hands over its memory, and so a passphrase or a key.  Each of ours closes itself as its first
act (L{aileron.hardening}); until then the system alone decides who may trace it: on Linux Yama, by its C{ptrace_scope}.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from .findings import Finding, fine, remark

_PROC = Path("/proc")
_SCOPE = Path("sys/kernel/yama/ptrace_scope")
_SETTING = "kernel.yama.ptrace_scope"
_WINDOW = "trace a process of Aileron's before it has closed itself"
_SANDBOX = "aileron launch --sandbox AGENT"
_CLOSED = {
    "1": f"A program can trace only what it started itself ({_SETTING} is 1).",
    "2": f"Only an administrator's programs can trace processes ({_SETTING} is 2).",
    "3": f"No program can trace a process ({_SETTING} is 3).",
}


def tracing(proc: Path = _PROC, platform: str = sys.platform) -> Iterator[Finding]:
    """Who may trace a process of ours while it starts.

    None of it is a fault of the installation: it is how the machine is set up, for all programs.

    :param proc: where the kernel tells of itself.
    """
    if platform.startswith("linux"):
        yield _by_yama(proc / _SCOPE)
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


def _by_yama(setting: Path) -> Finding:
    try:
        scope = setting.read_text().strip()
    except FileNotFoundError:
        return remark(
            f"Yama is not active in this kernel ({setting} is not there), so other programs of yours, an agent among "
            f"them, may {_WINDOW}. An agent in a sandbox cannot.",
            _SANDBOX,
        )
    except (OSError, ValueError) as error:
        return remark(
            f"{setting} cannot be read ({type(error).__name__}), so other programs of yours may {_WINDOW}. An agent in "
            "a sandbox cannot.",
            _SANDBOX,
        )
    if scope in _CLOSED:
        return fine(_CLOSED[scope])
    return remark(
        f"Other programs of yours, an agent among them, may {_WINDOW} ({_SETTING} is {scope or 'empty'}). Set it to 1; "
        "to keep that after a restart, write the setting into a file in /etc/sysctl.d as well.",
        f"sudo sysctl {_SETTING}=1",
    )
