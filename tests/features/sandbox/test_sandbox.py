"""What is started in the place of an agent, and the one way out."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any
from unittest import SkipTest

from attrs import define, evolve, field
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.sandbox._processes import SandboxProcesses
from aileron.features.sandbox.layout import SandboxLayout
from aileron.features.sandbox.project import SandboxProject
from aileron.features.sandbox.sandbox import ProcessPlan, Sandbox, find_sandbox, refuse_unable
from aileron.features.sandbox.way_out import WayOut
from aileron.model.errors import Forbidden, InvalidRequest, NotFound
from aileron.model.tool_claims import ToolCaller

_SECRET = "ail_a_canary"
_CONTINUE, _SEIZE, _TRACE_EXIT = 7, 0x4206, 0x40  # ptrace(2): who is killed stops before it ends
_WAIT_ALL = 0x40000000


async def _no_ticket(_: ToolCaller) -> tuple[int, bytes]:
    raise AssertionError("Nobody connects.")


@define
class MemoryReactor:
    """What the forwarder asks of a reactor."""

    readers: list[Any] = field(factory=list)
    adopted: list[int] = field(factory=list)
    closed: int = 0

    def addReader(self, reader: Any) -> None:
        """See C{IReactorFDSet}."""
        self.readers.append(reader)

    def removeReader(self, reader: Any) -> None:
        """See C{IReactorFDSet}."""
        self.readers = [each for each in self.readers if each is not reader]

    def adoptStreamPort(self, descriptor: int, family: int, factory: Any) -> Any:
        """See C{IReactorSocket}."""
        self.adopted.append(descriptor)
        return self

    def stopListening(self) -> None:
        """See C{IListeningPort}."""
        self.closed += 1


class SandboxTests(SynchronousTestCase):
    """One sandbox."""

    def setUp(self) -> None:
        """Have a project."""
        root = Path(self.mktemp()).resolve()
        (root / "project").mkdir(parents=True)
        layout = SandboxLayout(str(root / "user"), str(root / "state"), str(root / "project"), (str(root / "own"),))
        self.lines: list[str] = []
        self.project = SandboxProject(layout, {"PATH": "/no/such/directory"}, self.lines.append)
        self.reactor = MemoryReactor()
        self.sandbox = Sandbox(self.reactor, "/usr/bin/bwrap", "/usr/bin/python3", b"a program")
        self.plan = ProcessPlan(("/usr/bin/agent", "run"), {"TOKEN": _SECRET})

    def test_command(self) -> None:
        """bubblewrap starts what becomes the agent, with the plan's environment, which is in no argument.

        It reads the kernel's filter from a descriptor that it inherits.
        """
        with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777") as runs:
            self.assertEqual(runs.argv[0], "/usr/bin/bwrap")
            behind = runs.argv[runs.argv.index("--") + 1 :]
            self.assertEqual(
                behind[:2] + behind[3:], ("/usr/bin/python3", "-I", "7777", "3", "-", "/usr/bin/agent", "run")
            )
            self.assertTrue(Path(behind[2]).is_file())
            self.assertEqual(runs.environment, self.plan.environment)
            self.assertNotIn(_SECRET, " ".join(runs.argv))
            self.assertTrue(Path(self.project.layout.own[0]).is_dir())
            self.assertEqual(runs.argv[runs.argv.index("--seccomp") + 1], "4")
            self.assertEqual(set(runs.descriptors), {3, 4, 5})
            self.assertEqual(os.read(runs.descriptors[4], 100), b"a program")

    def test_replaced(self) -> None:
        """What a process sees in place of the system's files is mounted for it."""
        plan = evolve(self.plan, replaced={"/etc/ssl/certs": "/ours"})
        with self.sandbox.around(plan, self.project, "http://127.0.0.1:7777") as runs:
            place = runs.argv.index("/ours")
            self.assertEqual(runs.argv[place - 1 : place + 2], ("--ro-bind", "/ours", "/etc/ssl/certs"))

    def test_told(self) -> None:
        """What lies in the project afterwards and a program obeys by itself is told, but not what lay there before."""
        directory = Path(self.project.layout.project)
        (directory / ".npmrc").touch()
        with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777"):
            (directory / "sub").mkdir()
            for number in range(60):
                (directory / "sub" / f"{number:02}.pth").touch()
        self.assertEqual(self.lines[1], f"  {directory}/sub/00.pth")
        words, _, listed = self.lines[-1].rpartition(" ")
        self.assertEqual((words, len(self.lines)), ("  and 10 more: all are listed in", 52))
        self.assertEqual(len(Path(listed).read_text().splitlines()), 60)

    def test_read_only(self) -> None:
        """Repositories in the project, such as submodules, are named at the start: the agent cannot commit there."""
        directory = Path(self.project.layout.project)
        for number in range(7):
            (directory / "deep" / f"sub{number}").mkdir(parents=True)
            (directory / "deep" / f"sub{number}" / ".git").write_text("gitdir: ../../.git/modules/x")
            with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777"):
                told = list(self.lines)
            del self.lines[:]
            named = ", ".join(f"deep/sub{each}" for each in range(min(number + 1, 5)))
            named += f", and {number - 4} more" if number > 4 else ""
            self.assertEqual(len(told), 1)
            self.assertIn(f"but not commit to them: {named}. ", told[0])

    def test_way_out(self) -> None:
        """The socket that comes from within is listened at until the sandbox is over; its processes end with it."""
        with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777") as runs:
            first = self.begin(runs)
            self.assertEqual((len(self.reactor.adopted), self.reactor.readers, self.reactor.closed), (1, [], 0))
            self.assertIsNone(first.poll())
        self.assertEqual((self.reactor.closed, first.wait()), (1, -signal.SIGKILL))

    def checked(self, answer: bytes, touch: str = "") -> tuple[bytes, str]:
        """What a sandbox with a way out is told when it answers so, and what the user is.

        :param touch: the launcher's socket outside that is reached all the same.
        """
        del self.lines[:]
        way_out = WayOut(("npm", "a.example"), _no_ticket)
        with (
            self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777", way_out) as runs,
            socket.socket(fileno=os.dup(runs.descriptors[3])) as inside,
        ):
            self.begin(runs, 2)
            (forwarder,) = self.reactor.readers
            question = json.loads(runs.argv[runs.argv.index("--") + 6])
            self.assertEqual((set(question), question["proxy"]), ({"tcp", "udp", "network", "proxy"}, 3128))
            self.assertEqual(runs.environment["HTTPS_PROXY"], "http://127.0.0.1:3128")
            self.assertEqual(runs.environment["TOKEN"], _SECRET)
            if touch == "tcp":
                socket.create_connection(("127.0.0.1", question["tcp"])).close()
            elif touch == "udp":
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outside:
                    outside.sendto(b"x", ("127.0.0.1", question["udp"]))
            for piece in (answer[:5], answer[5:]):
                inside.send(piece)
                forwarder.doRead()
            inside.shutdown(socket.SHUT_WR)
            if self.reactor.readers:
                forwarder.doRead()
            self.assertEqual(self.reactor.readers, [])
            said = inside.recv(9)
        return said, " ".join(self.lines)

    def test_boundary(self) -> None:
        """With a way out, the agent starts when it was shown that nothing else leads out, and the user is told so."""
        closed: dict[str, list[str]] = {
            name: [] for name in ("network", "tcp", "udp", "dns", "unix", "descriptors", "proxy")
        }
        told = "Sandbox: checked: TCP, UDP, DNS, Unix sockets and inherited descriptors lead nowhere but to Aileron. "
        answer = json.dumps(closed).encode() + b"\n"
        self.assertEqual(self.checked(answer), (b"\0", f"{told}Its proxy allows: npm, a.example."))
        not_started = "Sandbox: the agent was not started, because its boundary could not be proven. "
        open_ = json.dumps({**closed, "tcp": ["192.0.2.1 was reached"], "dns": ["a", "b"]}).encode() + b"\n"
        for wrong, touch, why in (
            (open_, "", "TCP: 192.0.2.1 was reached. DNS: a; b."),
            (answer, "tcp", "TCP: a socket outside was reached."),
            (answer, "udp", "UDP: a socket outside was reached."),
            (b'{"tcp": []}\n', "", "the check did not end."),
            (b"[[[[[]]]]]\n", "", "the check did not end."),
            (answer[:-9], "", "the check did not end."),
        ):
            self.assertEqual(self.checked(wrong, touch), (b"", not_started + why))

    def begin(self, runs: ProcessPlan, sockets: int = 1) -> subprocess.Popen[bytes]:
        """Do what a sandbox does as it begins; return its first process."""
        (forwarder,) = self.reactor.readers
        first = subprocess.Popen(["sleep", "60"])
        self.addCleanup(first.kill)
        os.write(runs.descriptors[5], json.dumps({"child-pid": first.pid}).encode())
        with (
            socket.socket(fileno=os.dup(runs.descriptors[3])) as inside,
            socket.create_server(("127.0.0.1", 0)) as listening,
        ):
            socket.send_fds(inside, [b"x"], [listening.fileno()] * sockets)
            forwarder.doRead()
            self.assertEqual(inside.recv(1), b"\0")
        return first

    def test_recorded(self) -> None:
        """Without a repository, too, the next launch ends what a launcher left that was killed, in any project."""
        with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777") as runs:
            first = self.begin(runs)
            (directory,) = self.sandboxes.iterdir()
            left = {path.name: path.read_bytes() for path in directory.iterdir()}
            shutil.copytree(directory, self.sandboxes.parent / "left")
        self.assertEqual((list(self.sandboxes.iterdir()), json.loads(left["process.json"])[0]), ([], first.pid))
        survivor = subprocess.Popen(["sleep", "60"])
        self.addCleanup(survivor.kill)
        began = Path(f"/proc/{survivor.pid}/stat").read_text().rpartition(")")[2].split()[19]
        (self.sandboxes.parent / "left").rename(self.sandboxes / "left")
        (self.sandboxes / "left/process.json").write_text(json.dumps([survivor.pid, began]))
        with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777"):
            self.assertEqual(survivor.wait(), -signal.SIGKILL)
            self.assertFalse((self.sandboxes / "left").exists())

    @property
    def sandboxes(self) -> Path:
        """Where sandboxes are recorded."""
        return Path(self.project.layout.state) / "sandboxes"

    def test_nothing_came(self) -> None:
        """A sandbox that ends before it began leaves nothing behind."""
        with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777"):
            (forwarder,) = self.reactor.readers
        self.assertEqual((self.reactor.readers, self.reactor.adopted, forwarder.fileno()), ([], [], -1))
        forwarder.close()

    def test_refused(self) -> None:
        """Where it cannot stand nothing is begun."""
        project = evolve(self.project, layout=evolve(self.project.layout, project="/"))
        with self.assertRaises(InvalidRequest):
            self.sandbox.around(self.plan, project, "http://127.0.0.1:7777").__enter__()
        self.assertEqual(self.reactor.readers, [])

    def test_standard_input(self) -> None:
        """The agent gets a copy of what still has to be read of a file, which is not read any further by that."""
        given = self.given()
        os.lseek(0, 4, os.SEEK_SET)
        with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777") as runs:
            copy = runs.descriptors[0]
            self.assertEqual((os.read(copy, 100), os.lseek(0, 0, os.SEEK_CUR)), (b"text", 4))
            self.assertNotEqual(os.fstat(copy).st_ino, given.stat().st_ino)
            self.assertEqual(os.fstat(copy).st_nlink, 0)

    def test_directory_as_standard_input(self) -> None:
        """A directory is refused: all around it could be reached by it."""
        self.given().unlink()
        os.dup2(os.open(self.project.layout.project, os.O_RDONLY), 0)
        with self.assertRaises(InvalidRequest) as raised:
            self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777").__enter__()
        self.assertIn("standard input cannot be a directory", str(raised.exception))

    def test_socket_as_standard_input(self) -> None:
        """A network socket is refused: it leads out of any sandbox. A Unix one is not."""
        self.given().unlink()
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as network:
            os.dup2(network.fileno(), 0)
        with self.assertRaises(InvalidRequest) as raised:
            self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777").__enter__()
        self.assertIn("standard input cannot be a network socket", str(raised.exception))
        ours, theirs = socket.socketpair()
        with ours, theirs:
            os.dup2(theirs.fileno(), 0)
            with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777") as runs:
                self.assertNotIn(0, runs.descriptors)

    def given(self) -> Path:
        """A file that is standard input during this test."""
        path = Path(self.mktemp())
        path.write_text("the text")
        before, opened = os.dup(0), os.open(path, os.O_RDONLY)
        self.addCleanup(os.close, before)
        self.addCleanup(os.dup2, before, 0)
        os.dup2(opened, 0)
        os.close(opened)
        return path


class ProcessesTests(SynchronousTestCase):
    """The processes of a sandbox, at its end."""

    def test_not_ended(self) -> None:
        """Each time that they are ended it is said whether they have, and not only the first time."""
        first = subprocess.Popen(["sleep", "60"])
        ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
        if ptrace(_SEIZE, first.pid, None, _TRACE_EXIT) < 0:
            first.kill()
            raise SkipTest("this system lets nobody trace a child")
        reading, writing = os.pipe()
        for descriptor in (reading, writing):
            self.addCleanup(os.close, descriptor)
        os.write(writing, json.dumps({"child-pid": first.pid}).encode())
        processes = SandboxProcesses(reading, timeout_seconds=0.2)
        processes.find_first()
        self.assertEqual((processes.end(), processes.end()), (False, False))
        os.waitpid(first.pid, _WAIT_ALL)
        ptrace(_CONTINUE, first.pid, None, None)
        self.assertEqual((processes.end(), processes.end(), first.wait()), (True, True, -signal.SIGKILL))


class ProbeTests(SynchronousTestCase):
    """Machines that can make none."""

    def test_missing(self) -> None:
        """Without bubblewrap the person is told what to install."""
        with self.assertRaises(NotFound) as raised:
            find_sandbox(None, {"PATH": "/nowhere"})
        self.assertIn("install the package bubblewrap", str(raised.exception))

    def test_not_allowed(self) -> None:
        """Where it does not work, its own words and what to do are said."""
        program = Path(self.mktemp()).resolve()
        program.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
        program.chmod(0o700)
        with self.assertRaises(Forbidden) as raised:
            refuse_unable(str(program))
        for words in ("No permissions to create new namespace", "unprivileged_userns_clone", "without --sandbox"):
            self.assertIn(words, str(raised.exception))
