"""What the kernel would refuse, by an interpreter of its programs."""

from __future__ import annotations

import errno
import struct

from twisted.trial.unittest import SynchronousTestCase

from aileron.launch.sandbox._filter import terminal_filter

_LOAD, _EQUALS, _RETURN = 0x20, 0x15, 0x06
_ALLOWED, _REFUSED = 0x7FFF0000, 0x00050000 | errno.EPERM
_TYPES, _TYPES_ON_A_CONSOLE, _ASKS_FOR_SIZE = 0x5412, 0x541C, 0x5413
_X86_64, _I386, _AARCH64, _ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028
_READ = 0


def decided(program: bytes, architecture: int, number: int, request: int = 0) -> int:
    """What C{program} says to a call; C{request} is its second argument."""
    steps = list(struct.iter_unpack("=HBBI", program))
    data = struct.pack("=IIQQQ", number, architecture, 0, 0, request).ljust(64, b"\0")
    place, value = 0, 0
    while True:
        code, if_true, if_false, operand = steps[place]
        if code == _RETURN:
            return int(operand)
        if code == _LOAD:
            (value,) = struct.unpack_from("=I", data, operand)
        else:
            assert code == _EQUALS
            place += if_true if value == operand else if_false
        place += 1


class FilterTests(SynchronousTestCase):
    """For each machine and each kind of program that it runs."""

    def test_typing(self) -> None:
        """Whoever would type into a terminal is refused, whatever else stands in the request's upper half."""
        for machine, architecture, number in (
            ("x86_64", _X86_64, 16),
            ("x86_64", _X86_64, 0x40000000 | 514),
            ("x86_64", _X86_64, 0x40000000 | 16),
            ("x86_64", _I386, 54),
            ("aarch64", _AARCH64, 29),
            ("aarch64", _ARM, 54),
        ):
            program = terminal_filter(machine)
            assert program
            for request in (_TYPES, _TYPES_ON_A_CONSOLE, _TYPES | 1 << 32, _TYPES_ON_A_CONSOLE | 7 << 40):
                self.assertEqual(decided(program, architecture, number, request), _REFUSED, (machine, request))
            self.assertEqual(decided(program, architecture, number, _ASKS_FOR_SIZE), _ALLOWED)

    def test_all_else(self) -> None:
        """Every other call is let through, of whatever architecture."""
        for machine, architecture in (("x86_64", _X86_64), ("x86_64", _I386), ("aarch64", _AARCH64), ("x86_64", 1)):
            program = terminal_filter(machine)
            assert program
            self.assertEqual({decided(program, architecture, number, _TYPES) for number in (0, 1, 3, 59)}, {_ALLOWED})

    def test_unknown(self) -> None:
        """For a machine that is not known there is none."""
        self.assertIsNone(terminal_filter("riscv64"))
