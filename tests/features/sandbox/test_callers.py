"""Processes that opened connections are found in C{/proc}, whatever they call themselves."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from aileron.features.sandbox.callers import find_caller, read_start_time
from aileron.model.tool_claims import NO_CALLER, ToolCaller

CLIENT, SERVER = ("127.0.0.1", 40000), ("127.0.0.1", 3128)
INSIDE, OUTSIDE = "net:[11]", "net:[22]"
_HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
_LINE = "   0: {} {} 01 00000000:00000000 00:00000000 00000000  1000        0 {} 1 0000000000000000 20 0 0 10 -1\n"
_C, _S = "0100007F:9C40", "0100007F:0C38"
_MAPPED = "0000000000000000FFFF0000"


class ProcCase(SynchronousTestCase):
    """A directory like C{/proc}."""

    def setUp(self) -> None:
        """Have a first process, and the connection's two ends: the one of the launcher, and then that of a program."""
        self.proc = Path(self.mktemp())
        self.add(2, {}, name="bwrap", ticks=1)
        self.write_table("tcp", _LINE.format(_S, _C, 500), _LINE.format(_C, _S, 501))
        (self.proc / "version").write_text("no process")

    def write_table(self, name: str, *lines: str) -> None:
        """Have connections."""
        folder = self.proc / "2" / "net"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(_HEAD + "".join(lines))

    def add(
        self,
        number: int,
        descriptors: Mapping[int, str],
        *,
        name: str = "gh",
        ticks: int = 900,
        command: bytes = b"gh\0pr\0list\0",
        network: str = INSIDE,
    ) -> None:
        """Have a process."""
        folder = self.proc / str(number)
        for each in ("fd", "ns"):
            (folder / each).mkdir(parents=True)
        (folder / "ns" / "net").symlink_to(network)
        for descriptor, target in descriptors.items():
            (folder / "fd" / str(descriptor)).symlink_to(target)
        rest = " ".join(map(str, (ticks, *range(30))))
        (folder / "stat").write_text(f"{number} ({name}) S 2 {number} {number} 0 -1 {'0 ' * 13}{rest}\n")
        (folder / "cmdline").write_bytes(command)

    def find(self) -> ToolCaller:
        """Look for the process."""
        return find_caller(2, CLIENT, SERVER, self.proc)


class StartTests(ProcCase):
    """L{read_start_time}."""

    def test_hostile(self) -> None:
        """A process whose name looks like the end of a name and further numbers has its own start time all the same."""
        for number, name in enumerate((") R 1 1 (", ") S " + "7 " * 40, "a\nb", "gh) (", ""), 10):
            self.add(number, {}, name=name, ticks=800 + number)
            self.assertEqual(read_start_time(number, self.proc), str(800 + number))

    def test_missing(self) -> None:
        """A process that has ended has none."""
        self.assertEqual(read_start_time(99, self.proc), "")
        (self.proc / "2" / "stat").write_text("2 (x) S 1")
        self.assertEqual(read_start_time(2, self.proc), "")


class CallerTests(ProcCase):
    """L{find_caller}."""

    def test_found(self) -> None:
        """The process at the program's end of the connection is found, and not that at the launcher's end."""
        self.add(10, {0: "/dev/null", 3: "socket:[500]"}, command=b"launcher")
        self.add(11, {0: "pipe:[501]", 7: "socket:[501]"}, command=b"gh\0issue\0create\0-t\0Two words\0")
        self.assertEqual(self.find(), ToolCaller(11, 900, "gh issue create -t 'Two words'"))

    def test_mapped(self) -> None:
        """A program that uses IPv6 for everything is found too."""
        self.add(10, {3: "socket:[502]"})
        self.write_table("tcp")
        self.write_table("tcp6", _LINE.format(_MAPPED + _C, _MAPPED + _S, 502))
        self.assertEqual(self.find(), ToolCaller(10, 900, "gh pr list"))

    def test_first(self) -> None:
        """Of several processes that share the connection, it is the one that started first."""
        for number, ticks in ((10, 950), (11, 940), (12, 960)):
            self.add(number, {3: "socket:[501]"}, ticks=ticks)
        self.assertEqual(self.find().process, 11)

    def test_outside(self) -> None:
        """A process in another network is not looked at."""
        self.add(10, {3: "socket:[501]"}, network=OUTSIDE)
        self.assertEqual(self.find(), NO_CALLER)

    def test_not_found(self) -> None:
        """A connection that nobody has, a process that cannot be looked at, and an ended sandbox give no caller."""
        self.assertEqual(self.find(), NO_CALLER)
        self.add(10, {3: "socket:[501]"})
        (self.proc / "10" / "stat").unlink()
        self.assertEqual(self.find(), NO_CALLER)
        self.write_table("tcp", _LINE.format(_S, _C, 501), _LINE.format(_C, _S, 501)[:60])
        self.assertEqual(self.find(), NO_CALLER)
        self.assertEqual(find_caller(99, CLIENT, SERVER, self.proc), NO_CALLER)

    def test_gone_meanwhile(self) -> None:
        """Processes that end meanwhile are passed over; one that has cleared its command line has none."""
        (self.proc / "9").mkdir()
        self.add(10, {3: "socket:[501]"}, command=b"")
        self.assertEqual(self.find(), ToolCaller(10, 900, ""))
        (self.proc / "10" / "cmdline").unlink()
        self.assertEqual(self.find(), ToolCaller(10, 900, ""))

    def test_invisible(self) -> None:
        """Control and bidi characters of a command line are made visible, and a very long one is shortened."""
        self.add(10, {3: "socket:[501]"}, command=b"gh\0\x1b[2J\n\xe2\x80\xae\xff\0" + b"x" * 9000)
        command = self.find().command
        self.assertTrue(command.startswith("gh '\u241b[2J\u21b5\\u202e\ufffd' xxx"), command)
        self.assertEqual((len(command), command[-1]), (500, "…"))

    def test_own(self) -> None:
        """This process is found at its own connection, in the real C{/proc}."""
        if not Path("/proc/self/net/tcp").exists():
            raise SkipTest("this system has no /proc like that of Linux")
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
            found = find_caller(os.getpid(), client.getsockname(), server.getsockname())
        self.assertEqual((found.process, str(found.started)), (os.getpid(), read_start_time(os.getpid())))
        self.assertTrue(found.command)
