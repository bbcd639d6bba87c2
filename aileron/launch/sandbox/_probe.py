"""Whether this machine can make a sandbox, and if not, what the person can do."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from aileron.errors import Forbidden, NotFound

from ._enclosure import Sandbox
from ._filter import filter_for

_SECONDS = 20.0
_TRIAL = ("--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
_OFF = (
    "bubblewrap cannot make a sandbox here: {said} As root, allow user namespaces "
    "(sysctl kernel.unprivileged_userns_clone=1, or on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0), "
    "or launch without --sandbox."
)


def find_sandbox(reactor: Any, environment: Mapping[str, str]) -> Sandbox:
    """What makes sandboxes on this machine; it was tried.

    :raises NotFound: there is no Linux, or no bubblewrap, or the kernel's filter is not known for this processor.
    :raises Forbidden: the system does not let it make one.
    """
    program = shutil.which("bwrap", path=environment.get("PATH")) if sys.platform == "linux" else None
    if program is None:
        raise NotFound("The sandbox needs Linux and bubblewrap: install the package bubblewrap (its program is bwrap).")
    seccomp = filter_for(platform.machine())
    if seccomp is None:
        raise NotFound(f"The sandbox needs x86-64, ARM64 or RISC-V (64 bits); this machine is {platform.machine()}.")
    refuse_unable(program)
    return Sandbox(reactor, program, sys.executable, seccomp)


def refuse_unable(program: str) -> None:
    """Try it once.

    :raises Forbidden: it does not work; the message holds its own words.
    """
    command = (program, *_TRIAL, "--", program, "--version")
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Forbidden(_OFF.format(said=f"{error}.")) from error
    if tried.returncode != 0:
        raise Forbidden(_OFF.format(said=tried.stderr.strip()[:200] or f"it ended with {tried.returncode}."))
