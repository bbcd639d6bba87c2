"""Protects this process from other processes of the user, before a key or a passphrase is in its memory.

Without this protection, any process of a user can read the memory, environment and descriptors of that user's other
processes.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable

from attrs import frozen

from .model.errors import Forbidden

_PRIVATE_UMASK = 0o077
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38  # prctl(2)
_PT_DENY_ATTACH = 31  # ptrace(2) of macOS


def _call_c(name: str, *arguments: int) -> int:
    import ctypes  # not needed by commands that read no secret

    library = ctypes.CDLL(None, use_errno=True)
    answer: int = getattr(library, name)(*(ctypes.c_ulong(argument) for argument in arguments))
    return 0 if answer == 0 else ctypes.get_errno() or -1


def _no_core() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@frozen
class Kernel:
    """The system calls that protect a process.

    :ivar call: calls a function of the C library by name with integer arguments and returns 0 or an error number.
    """

    platform: str = sys.platform
    umask: Callable[[int], int] = os.umask
    no_core: Callable[[], None] = _no_core
    call: Callable[..., int] = _call_c


def harden(kernel: Kernel | None = None) -> None:
    """Protect this process until it exits: no core dumps, no debuggers, no new privileges, private new files.

    Idempotent.

    C{exec} ends the protection from debuggers.  Child processes inherit the umask, the core limit and the ban on new
    privileges.  A protection that the platform does not have is skipped.

    :raises Forbidden: if the system refuses a protection. Do not read secrets then.
    """
    kernel = kernel or Kernel()
    kernel.umask(_PRIVATE_UMASK)
    try:
        # guard against attack: nothing of the daemon is dumped -> test_process.ReadersTests.test_daemon
        kernel.no_core()
    except (OSError, ValueError) as error:
        raise Forbidden(f"Memory dumps of this process cannot be turned off: {error}.") from None
    # guard against attack: the daemon is closed to readers -> test_process.ReadersTests.test_daemon
    conceal(kernel)
    if kernel.platform.startswith("linux"):
        _demand(kernel, "New rights cannot be given up", "prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def conceal(kernel: Kernel | None = None) -> None:
    """Prevent other processes from reading or debugging this one.

    Child processes are not restricted: a browser needs its privileges.

    :raises Forbidden: if the system refuses. Do not read secrets then.
    """
    kernel, otherwise = kernel or Kernel(), "Other processes cannot be kept out of this one"
    if kernel.platform.startswith("linux"):
        _demand(kernel, otherwise, "prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
    elif kernel.platform == "darwin":
        _demand(kernel, otherwise, "ptrace", _PT_DENY_ATTACH, 0, 0, 0)


def _demand(kernel: Kernel, otherwise: str, name: str, *arguments: int) -> None:
    try:
        problem = kernel.call(name, *arguments)
    except (OSError, AttributeError) as error:  # no C library, or no such function
        raise Forbidden(f"{otherwise}: {name} is not to be had ({type(error).__name__}).") from None
    if problem:
        raise Forbidden(f"{otherwise}: {name} failed ({os.strerror(problem)}).")
