"""What the kernel refuses an agent: to type into the terminal that it shares with the user's shell.

A program for C{seccomp(2)}, as bubblewrap takes it: C{ioctl} with TIOCSTI, or TIOCLINUX on a console, fails with EPERM.
With it the agent can stay in the terminal's session, and so gets Ctrl-C and changes of its size.
"""

from __future__ import annotations

import errno
import struct

_INSTRUCTION = struct.Struct("=HBBI")  # linux/filter.h: code, jump if true, jump if false, operand
_LOAD, _EQUALS, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _ARCHITECTURE, _REQUEST = 0, 4, 24  # offsets in struct seccomp_data; of args[1] the lower half
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_X32 = 0x40000000

# Of each machine the architectures that its kernel runs programs of, with their numbers of ioctl (linux/audit.h).
_CALLS = {
    "x86_64": ((0xC000003E, (16, _X32 | 16, _X32 | 514)), (0x40000003, (54,))),
    "aarch64": ((0xC00000B7, (29,)), (0x40000028, (54,))),
}


def terminal_filter(machine: str) -> bytes | None:
    """The program, or L{None} for a machine that is not known here.

    :param machine: as C{platform.machine()} calls it.
    """
    calls = _CALLS.get(machine)
    return None if calls is None else b"".join(_block(*each) for each in calls) + _step(_RETURN, operand=_ALLOW)


def _block(architecture: int, numbers: tuple[int, ...]) -> bytes:
    """For programs of one architecture: look at the number, then at the request, and decide; else go on behind."""
    requests = [
        _step(_LOAD, operand=_REQUEST),
        _step(_EQUALS, 1, 0, _TIOCSTI),
        _step(_EQUALS, 0, 1, _TIOCLINUX),
        _step(_RETURN, operand=_REFUSE),
        _step(_RETURN, operand=_ALLOW),
    ]
    count = len(numbers)
    chosen = [_step(_EQUALS, count - place, 0, number) for place, number in enumerate(numbers)]
    inside = [_step(_LOAD, operand=_NUMBER), *chosen, _step(_RETURN, operand=_ALLOW), *requests]
    head = [_step(_LOAD, operand=_ARCHITECTURE), _step(_EQUALS, 0, len(inside), architecture)]
    return b"".join((*head, *inside))


def _step(code: int, if_true: int = 0, if_false: int = 0, operand: int = 0) -> bytes:
    return _INSTRUCTION.pack(code, if_true, if_false, operand)
