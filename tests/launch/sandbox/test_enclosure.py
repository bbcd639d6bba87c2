"""What is started in the place of an agent, and the one way out."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import Forbidden, InvalidRequest, NotFound
from aileron.launch import Plan
from aileron.launch.sandbox import Sandbox, SandboxLayout, SandboxProject, find_sandbox
from aileron.launch.sandbox._probe import refuse_unable

_SECRET = "ail_a_canary"


@define
class MemoryReactor:
    """What the passage asks of a reactor."""

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
        self.plan = Plan(("/usr/bin/agent", "run"), {"TOKEN": _SECRET})

    def test_command(self) -> None:
        """bubblewrap starts what becomes the agent; the environment is the plan's, and in no argument."""
        with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777") as runs:
            self.assertEqual(runs.argv[0], "/usr/bin/bwrap")
            behind = runs.argv[runs.argv.index("--") + 1 :]
            self.assertEqual(behind[:2] + behind[3:], ("/usr/bin/python3", "-I", "7777", "3", "/usr/bin/agent", "run"))
            self.assertTrue(Path(behind[2]).is_file())
            self.assertEqual(runs.environment, self.plan.environment)
            self.assertNotIn(_SECRET, " ".join(runs.argv))
            self.assertTrue(Path(self.project.layout.own[0]).is_dir())

    def test_filter(self) -> None:
        """bubblewrap reads the kernel's filter from a descriptor that it inherits."""
        with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777") as runs:
            self.assertEqual(runs.argv[runs.argv.index("--seccomp") + 1], "4")
            self.assertEqual(set(runs.descriptors), {3, 4, 5})
            self.assertEqual(os.read(runs.descriptors[4], 100), b"a program")

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

    def test_way_out(self) -> None:
        """The socket that comes from within is listened at until the sandbox is over; its processes end with it."""
        with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777") as runs:
            (passage,) = self.reactor.readers
            first = subprocess.Popen(["sleep", "60"])
            os.write(runs.descriptors[5], json.dumps({"child-pid": first.pid}).encode())
            with (
                socket.socket(fileno=os.dup(runs.descriptors[3])) as inside,
                socket.create_server(("127.0.0.1", 0)) as listening,
            ):
                socket.send_fds(inside, [b"x"], [listening.fileno()])
                passage.doRead()
                self.assertEqual(inside.recv(1), b"\0")
            self.assertEqual((len(self.reactor.adopted), self.reactor.readers, self.reactor.closed), (1, [], 0))
            self.assertIsNone(first.poll())
        self.assertEqual((self.reactor.closed, first.wait()), (1, -signal.SIGKILL))

    def test_nothing_came(self) -> None:
        """A sandbox that ends before it began leaves nothing behind."""
        with self.sandbox.around(self.plan, self.project, "http://127.0.0.1:7777"):
            (passage,) = self.reactor.readers
        self.assertEqual((self.reactor.readers, self.reactor.adopted, passage.fileno()), ([], [], -1))
        passage.close()

    def test_refused(self) -> None:
        """Where it cannot stand nothing is begun."""
        project = evolve(self.project, layout=evolve(self.project.layout, project="/"))
        with self.assertRaises(InvalidRequest):
            self.sandbox.around(self.plan, project, "http://127.0.0.1:7777").__enter__()
        self.assertEqual(self.reactor.readers, [])


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
