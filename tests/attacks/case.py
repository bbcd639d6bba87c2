"""The user's programs without a root's rights, so that an attacker is stopped by what stops one of the same user."""

import json
import sys
from collections.abc import Mapping
from typing import Any

import attrs

from aileron.home.lock import running_pid
from tests.functional.commands import fork_daemons
from tests.functional.forkserver import ForkServer
from tests.functional.operated import OperatedTestCase
from tests.functional.process import Command, Finished, Running

GIVE_UP = """
import ctypes, os, struct, sys
if os.geteuid() == 0:
    library = ctypes.CDLL(None, use_errno=True)
    last = int(open("/proc/sys/kernel/cap_last_cap").read())
    failed = [library.prctl(24, capability, 0, 0, 0) for capability in range(last + 1)]
    if any(failed) or library.capset(struct.pack("Ii", 0x20080522, 0), bytes(24)):
        raise SystemExit("this machine's root cannot give up its rights: nothing can be shown here")
"""
"""A root may trace and read everything.  Without capabilities it is a user like any other, whose files are its own; an
empty bounding set keeps a program that it starts from getting them back."""
_WITHOUT_RIGHTS = f"{GIVE_UP}\nos.execv(sys.argv[1], sys.argv[1:])"


def give_up() -> None:
    """Give up the rights of this thread."""
    exec(GIVE_UP, {})


class AttackTestCase(OperatedTestCase):
    """A user's programs, and those of an attacker who is the same user; neither has any rights beyond a user's."""

    def start(self, command: Command) -> Running:
        """Start a process without a root's rights."""
        return super().start(command.behind(sys.executable, "-I", "-c", _WITHOUT_RIGHTS))

    def confine(self) -> None:
        """The rights of a thread are its own, and of what is started there."""
        if not self.executes_daemons:
            fork_daemons(GIVE_UP)
        give_up()

    def forked(self, program: str) -> tuple[str, ...]:
        """One without rights."""
        return ForkServer.lend(GIVE_UP).command(program)

    async def attack(self, source: str, *arguments: str, seconds: float = 60, **environment: str) -> Any:
        """What a Python program of the attacker's prints as JSON, run in the project beside the agent."""
        finished = await self.run_command(self.python(source, *arguments, **environment), seconds)
        self.assertEqual((finished.exit_code, finished.stderr), (0, ""), finished)
        return json.loads(finished.stdout)

    def python(self, source: str, *arguments: str, **environment: str) -> Command:
        """A program of the attacker's, with nothing but what an agent has."""
        return Command(
            arguments=(sys.executable, "-I", "-c", source, *arguments),
            environment=self.home.environment(**environment),
            directory=self.home.project,
        )

    async def in_hostile(self, command: Command, **environment: str) -> Finished:
        """Run a command of the user's in an environment that somebody prepared."""
        return await self.run_command(
            attrs.evolve(command, environment={**command.environment, **environment}), seconds=60
        )

    def status_of(self, pid: int) -> Mapping[str, str]:
        """What the kernel tells everybody about a process."""
        with open(f"/proc/{pid}/status") as lines:
            return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}

    def resident_bytes(self) -> int:
        """The daemon's memory."""
        return int(self.status_of(running_pid(self.state) or 0)["VmRSS"].split()[0]) << 10
