"""What the kernel would refuse, by an interpreter of its programs."""

from __future__ import annotations

import errno
import struct

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.sandbox._filter import filter_for

_LOAD, _EQUALS, _AND, _RETURN = 0x20, 0x15, 0x54, 0x06
_ALLOWED, _REFUSED, _NO_FAMILY = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.EAFNOSUPPORT
_NO_RING = 0x00050000 | errno.ENOSYS
_TYPES, _TYPES_ON_A_CONSOLE, _ASKS_FOR_SIZE = 0x5412, 0x541C, 0x5413
_X86_64, _I386, _AARCH64, _ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028
_X32 = 0x40000000
_SOCKET = (
    ("x86_64", _X86_64, 41),
    ("x86_64", _X86_64, _X32 | 41),
    ("x86_64", _I386, 359),
    ("aarch64", _AARCH64, 198),
    ("aarch64", _ARM, 281),
    ("riscv64", 0xC00000F3, 198),
)
_PAIR = (
    ("x86_64", _X86_64, 53),
    ("x86_64", _X86_64, _X32 | 53),
    ("x86_64", _I386, 360),
    ("aarch64", _AARCH64, 199),
    ("aarch64", _ARM, 288),
    ("riscv64", 0xC00000F3, 199),
)


def decided(machine: str, architecture: int, number: int, request: int = 0, first: int = 0) -> int:
    """What the filter of a machine says to a call; C{first} and C{request} are its arguments."""
    steps = list(struct.iter_unpack("=HBBI", filter_for(machine) or b""))
    data = struct.pack("=IIQQQ", number, architecture, 0, first, request).ljust(64, b"\0")
    place, value = 0, 0
    while True:
        code, if_true, if_false, operand = steps[place]
        if code == _RETURN:
            return int(operand)
        if code == _LOAD:
            (value,) = struct.unpack_from("=I", data, operand)
        elif code == _AND:
            value &= operand
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
            for request in (_TYPES, _TYPES_ON_A_CONSOLE, _TYPES | 1 << 32, _TYPES_ON_A_CONSOLE | 7 << 40):
                self.assertEqual(decided(machine, architecture, number, request), _REFUSED, (machine, request))
            self.assertEqual(decided(machine, architecture, number, _ASKS_FOR_SIZE), _ALLOWED)

    def test_sockets(self) -> None:
        """A socket has a family that the sandbox has of its own, whatever stands in the argument's upper half."""
        for machine, architecture, number in _SOCKET:
            for family in (*range(46), 1 | 1 << 32, 2 | 7 << 40):
                wanted = _ALLOWED if family & 0xFFFFFFFF in (2, 10, 16) else _NO_FAMILY
                self.assertEqual(decided(machine, architecture, number, first=family), wanted, (machine, family))

    def test_pairs(self) -> None:
        """A pair of sockets is connected for good: streams and sequences of packets, no datagrams."""
        flags = 0o2000000 | 0o4000
        for machine, architecture, number in _PAIR:
            for kind in range(16):
                wanted = _ALLOWED if kind in (1, 5) else _NO_FAMILY
                for more in (0, flags):
                    self.assertEqual(decided(machine, architecture, number, kind | more, 1), wanted, (machine, kind))

    def test_ways_round(self) -> None:
        """Neither a ring nor the call that does all that is done with sockets gets past the filter."""
        for machine, architecture in (("x86_64", _X86_64), ("x86_64", _I386), ("aarch64", _AARCH64), ("aarch64", _ARM)):
            self.assertEqual(decided(machine, architecture, 425), _NO_RING)
        self.assertEqual(decided("x86_64", _X86_64, _X32 | 425), _NO_RING)
        self.assertEqual([decided("x86_64", _I386, 102, first=each) for each in (1, 8)], [_NO_FAMILY] * 2)
        self.assertEqual(decided("x86_64", _I386, 102, first=3), _ALLOWED)

    def test_namespaces(self) -> None:
        """No process gets a user namespace, where it could mount, nor enters one; threads and processes are its own."""
        for machine, architecture, clone, unshare, setns in (
            ("x86_64", _X86_64, 56, 272, 308),
            ("x86_64", _I386, 120, 310, 346),
            ("aarch64", _AARCH64, 220, 97, 268),
            ("aarch64", _ARM, 120, 337, 375),
        ):
            for number in (clone, unshare):
                self.assertEqual(decided(machine, architecture, number, first=0x10000000 | 17), _REFUSED, machine)
                self.assertEqual(decided(machine, architecture, number, first=0x3D0F00), _ALLOWED, machine)
            self.assertEqual(decided(machine, architecture, 435), _NO_RING)
            self.assertEqual(decided(machine, architecture, setns), _REFUSED)

    def test_all_else(self) -> None:
        """Every other call of an architecture that is known is let through, and none of another."""
        for machine, architecture in (("x86_64", _X86_64), ("x86_64", _I386), ("aarch64", _AARCH64)):
            self.assertEqual({decided(machine, architecture, number, _TYPES) for number in (0, 1, 3, 59)}, {_ALLOWED})
            self.assertEqual(decided(machine, 1, 0), _REFUSED)

    def test_unknown(self) -> None:
        """For a machine that is not known there is none."""
        self.assertIsNone(filter_for("vax"))
