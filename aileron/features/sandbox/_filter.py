"""Builds the C{seccomp(2)} program by which the kernel refuses some system calls of an agent.

* C{ioctl} with TIOCSTI, or TIOCLINUX on a console, which would type into the terminal shared with the user's
  shell. So the agent can stay in the terminal's session, and receives Ctrl-C and size changes.
* C{socket} for any family but IPv4, IPv6 and netlink, of which the sandbox has its own. Sockets of programs that hold
  keys have a path, which no network namespace isolates, or belong to a virtual machine.
* C{socketpair} for datagrams: one end could be connected to another address.
* C{io_uring_setup}: operations in a ring bypass every filter.
* C{unshare} and C{clone} with CLONE_NEWUSER, and C{setns}: in a mount namespace of its own, the agent could move
  read-only mounts away. C{clone3}, whose flags a filter cannot read, fails as unimplemented.
* C{add_key}, C{request_key} and C{keyctl}: the kernel's keys belong to the user in every namespace.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterable

from attrs import frozen

_INSTRUCTION = struct.Struct("=HBBI")  # linux/filter.h: code, jump if true, jump if false, operand
_LOAD, _EQUALS, _AND, _RETURN = 0x20, 0x15, 0x54, 0x06
_CLONE3 = 435  # on every architecture
_CLONE_NEWUSER = 0x10000000
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_FIRST, _SECOND = 16, 24  # of args[0] and args[1] the lower half
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_IO_URING_SETUP = 425  # on every architecture
_TYPE_MASK = 0xF  # SOCK_CLOEXEC and SOCK_NONBLOCK are higher bits
_SOCKETCALL_SOCKET, _SOCKETCALL_SOCKETPAIR = 1, 8  # linux/net.h
_X32 = 0x40000000

_FAMILIES = (socket.AF_INET, socket.AF_INET6, 16)  # AF_NETLINK, which not every system's module has
_STREAMS = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)


@frozen
class _SystemCalls:
    """The numbers of the calls of one architecture (linux/audit.h)."""

    architecture: int
    ioctl: tuple[int, ...]
    socket: tuple[int, ...]
    socketpair: tuple[int, ...]
    clone: tuple[int, ...]  # clone and unshare, whose first argument is the flags
    refused: tuple[int, ...]  # setns, and the calls for keys
    socketcall: tuple[int, ...] = ()
    missing: tuple[int, ...] = (_IO_URING_SETUP, _CLONE3)


# By machine: the architectures of the programs that its kernel can run.
_MACHINES = {
    "x86_64": (
        _SystemCalls(
            0xC000003E,
            ioctl=(16, _X32 | 16, _X32 | 514),
            socket=(41, _X32 | 41),
            socketpair=(53, _X32 | 53),
            clone=(56, 272, _X32 | 56, _X32 | 272),
            refused=(308, 248, 249, 250, _X32 | 308, _X32 | 248, _X32 | 249, _X32 | 250),
            missing=(_IO_URING_SETUP, _CLONE3, _X32 | _IO_URING_SETUP, _X32 | _CLONE3),
        ),
        _SystemCalls(
            0x40000003,
            ioctl=(54,),
            socket=(359,),
            socketpair=(360,),
            clone=(120, 310),
            refused=(346, 286, 287, 288),
            socketcall=(102,),
        ),
    ),
    "aarch64": (
        _SystemCalls(
            0xC00000B7, ioctl=(29,), socket=(198,), socketpair=(199,), clone=(220, 97), refused=(268, 217, 218, 219)
        ),
        _SystemCalls(
            0x40000028,
            ioctl=(54,),
            socket=(281,),
            socketpair=(288,),
            clone=(120, 337),
            refused=(375, 309, 310, 311),
            socketcall=(102,),
        ),
    ),
    "riscv64": (
        _SystemCalls(
            0xC00000F3, ioctl=(29,), socket=(198,), socketpair=(199,), clone=(220, 97), refused=(268, 217, 218, 219)
        ),
    ),
}


def filter_for(machine: str) -> bytes | None:
    """Return the filter program for system calls on a machine, or None if the machine is unknown.

    :param machine: the value of C{platform.machine()}.
    """
    calls = _MACHINES.get(machine)
    if calls is None:
        return None
    # A program of an unlisted architecture may make no system call.
    return b"".join((*map(_block, calls), _refuse(errno.EPERM)))


def _block(calls: _SystemCalls) -> bytes:
    """Return the part of the filter program that decides the system calls of one architecture.

    For a call of another architecture, it jumps to the next part.
    """
    rules = b"".join(
        (
            # guard against attack: typing into the terminal is refused -> test_sandbox.SandboxTests.test_typing
            _rule(calls.ioctl, _refuse_if(_SECOND, (_TIOCSTI, _TIOCLINUX), errno.EPERM)),
            # guard against attack: sockets of other families are refused
            #    -> test_sandbox.SandboxTests.test_nobody_to_be_asked
            _rule(calls.socket, _allow_if(_FIRST, _FAMILIES, errno.EAFNOSUPPORT)),
            # guard against attack: pairs of datagram sockets are refused
            #    -> test_sandbox.SandboxTests.test_nobody_to_be_asked
            _rule(calls.socketpair, _allow_if(_SECOND, _STREAMS, errno.EAFNOSUPPORT, mask=_TYPE_MASK)),
            _rule(
                calls.socketcall, _refuse_if(_FIRST, (_SOCKETCALL_SOCKET, _SOCKETCALL_SOCKETPAIR), errno.EAFNOSUPPORT)
            ),
            # guard against attack: user namespaces are refused -> test_breakout.BreakoutTests.test_namespace
            _rule(calls.clone, _allow_if(_FIRST, (0,), errno.EPERM, mask=_CLONE_NEWUSER)),
            # guard against attack: the kernel's keys are refused -> test_breakout.BreakoutTests.test_keyring
            _rule(calls.refused, _refuse(errno.EPERM)),
            # guard against attack: rings are refused -> test_sandbox.SandboxTests.test_nobody_to_be_asked
            _rule(calls.missing, _refuse(errno.ENOSYS)),
            _step(_RETURN, operand=_ALLOW),
        )
    )
    return (
        _step(_LOAD, operand=_ARCHITECTURE)
        + _step(_EQUALS, 0, _length(rules) + 1, calls.architecture)
        + _step(_LOAD, operand=_NUMBER)
        + rules
    )


def _rule(numbers: tuple[int, ...], decision: bytes) -> bytes:
    """Return the instructions that apply C{decision} to the system calls with these numbers.

    For any other call, they jump behind the decision, with the number of the call still loaded.
    """
    chosen = [
        _step(_EQUALS, len(numbers) - place, 0 if place < len(numbers) else _length(decision), number)
        for place, number in enumerate(numbers, 1)
    ]
    return b"".join((*chosen, decision)) if numbers else b""


def _refuse_if(argument: int, values: Iterable[int], reason: int) -> bytes:
    return _decide(argument, tuple(values), _refuse(reason), _step(_RETURN, operand=_ALLOW))


def _allow_if(argument: int, values: Iterable[int], reason: int, mask: int | None = None) -> bytes:
    return _decide(argument, tuple(values), _step(_RETURN, operand=_ALLOW), _refuse(reason), mask)


def _decide(argument: int, values: tuple[int, ...], if_one: bytes, if_none: bytes, mask: int | None = None) -> bytes:
    masked = b"" if mask is None else _step(_AND, operand=mask)
    chosen = (_step(_EQUALS, len(values) - place, 0, value) for place, value in enumerate(values))
    return b"".join((_step(_LOAD, operand=argument), masked, *chosen, if_none, if_one))


def _refuse(reason: int) -> bytes:
    return _step(_RETURN, operand=_REFUSE | reason)


def _length(program: bytes) -> int:
    return len(program) // _INSTRUCTION.size


def _step(code: int, if_true: int = 0, if_false: int = 0, operand: int = 0) -> bytes:
    return _INSTRUCTION.pack(code, if_true, if_false, operand)
