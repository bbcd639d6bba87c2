"""Two ordinary users of the machine, neither of them root: one whose daemon runs, and one who attacks it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

import aileron
from tests.functional.operated import CONNECTOR, GATED, PASSPHRASE, UNGATED, OperatedTestCase
from tests.functional.process import Command, Finished, Running

FIRST = 20_000 + 2 * (os.getpid() % 10_000)
SECOND = FIRST + 1
"""Numbers without an entry in C{/etc/passwd}: nothing of the machine is theirs.  Tests beside this one have others."""

WHY_NOT = (
    None
    if sys.platform == "linux" and os.geteuid() == 0
    else "NOT TESTED: two other users. Only root of Linux can become them, as in CI."
)

# Becomes another user, and the program that it is given.  Directories on the way to the program that are closed to
# others are replaced, for this process and its children, by empty ones in which only what is wanted is mounted.
_BECOME = """
import ctypes, json, os, sys
uid, wanted = int(sys.argv[1]), json.loads(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
def mount(source, target, kind, flags, data=None):
    given = [None if each is None else os.fsencode(each) for each in (source, target, kind, data)]
    if libc.mount(*given[:3], ctypes.c_ulong(flags), given[3]):
        raise SystemExit(f"cannot mount {target}: {os.strerror(ctypes.get_errno())}")
BIND, RECURSIVE, PRIVATE = 4096, 16384, 1 << 18
if wanted:
    if libc.unshare(0x20000):
        raise SystemExit("cannot show the interpreter to another user: " + os.strerror(ctypes.get_errno()))
    mount("none", "/", None, RECURSIVE | PRIVATE)
for closed, paths in wanted.items():
    held = {path: os.open(path, os.O_PATH) for path in paths}
    mount("none", closed, "tmpfs", 0, "mode=755")
    for path, descriptor in held.items():
        os.makedirs(path, exist_ok=True)
        mount(f"/proc/self/fd/{descriptor}", path, None, BIND | RECURSIVE)
        os.close(descriptor)
    mount("none", closed, None, 32 | 1 | 4096)  # from now on nothing is written there
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
os.execv(sys.argv[3], sys.argv[3:])
"""


def shown_to_others() -> dict[str, list[str]]:
    """The directories that are closed to others, each with what must be seen below it for Aileron to run."""
    needed = {Path(sys.base_prefix), Path(sys.prefix), Path(aileron.__file__).parents[1]}
    found: dict[str, list[str]] = {}
    for path in sorted(each.resolve() for each in needed):
        closed = next((each for each in reversed(path.parents) if not each.stat().st_mode & 0o001), None)
        if closed is not None:
            found.setdefault(str(closed), []).append(str(path))
    return found


class TwoUsersTestCase(OperatedTestCase):
    """The first user's commands, daemon and files, and programs of a second user.

    Everything is a process of its own: nothing of either user's is done with the rights of the test.
    """

    as_processes = True
    executes_daemons = True
    skip = WHY_NOT

    def setUp(self) -> None:
        super().setUp()
        self.home.root.chmod(0o755)  # what is closed to others below it is what Aileron closed
        self.give()

    def give(self) -> None:
        """Make everything below the first user's directory that user's."""
        for path in (self.home.root, *self.home.root.rglob("*")):
            os.chown(path, FIRST, FIRST, follow_symlinks=False)

    def start(self, command: Command) -> Running:
        """Start a process of the first user."""
        return self.start_as(FIRST, command)

    def start_as(self, uid: int, command: Command) -> Running:
        """Start a process of a user."""
        become = (sys.executable, "-I", "-c", _BECOME, str(uid), json.dumps(shown_to_others()))
        return super().start(command.behind(*become))

    async def feed(self, secret: str, *arguments: str) -> None:
        """Run ``aileron`` with the passphrase on one descriptor and a secret on another; it must succeed."""
        command = self.home.script("aileron", *arguments, "--passphrase-fd", "3", "--secret-fd", "4")
        fed = {3: PASSPHRASE.encode(), 4: secret.encode()}
        self._expect(await self.run_command(attrs.evolve(command, feeds=fed)), 0)

    async def prepare(self) -> None:
        """Give the first user a vault, a connector, two actions and a credential."""
        await self.operator("vault", "init")
        self.write_connector()
        paths = [self.action_file(GATED, gated=True), self.action_file(UNGATED, gated=False)]
        self.give()
        await self.add(*paths)
        await self.feed(self.workspace.token, "binding", "setup", CONNECTOR)

    async def told_without_login(self, *arguments: str) -> Any:
        """What a command that reads says with ``--json``."""
        return json.loads((await self.command(*arguments, "--json")).stdout)

    async def attack(self, source: str, given: Any, seconds: float = 60) -> Any:
        """What a Python program of the second user prints as JSON."""
        running = self.start_as(SECOND, self.second(sys.executable, "-I", "-c", source, json.dumps(given)))
        finished = await running.finish(seconds)
        self.assertEqual((finished.exit_code, finished.stderr), (0, ""), finished)
        return json.loads(finished.stdout)

    async def as_second(self, *arguments: str, **environment: str) -> Finished:
        """What came of ``aileron``, run by the second user in an environment that names the first user's home."""
        command = self.home.script("aileron", *arguments, **environment)
        return await self.start_as(SECOND, attrs.evolve(command, directory=self.elsewhere)).finish(60)

    def second(self, *arguments: str) -> Command:
        """A command of the second user."""
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.elsewhere)}
        return Command(arguments=arguments, environment=environment, directory=self.elsewhere)

    @property
    def elsewhere(self) -> Path:
        """A directory of the second user."""
        place = self.home.root / "second"
        if not place.exists():
            place.mkdir(mode=0o700)
            os.chown(place, SECOND, SECOND)
        return place

    def processes_of(self, uid: int) -> Iterator[tuple[int, Sequence[str]]]:
        """The processes of a user, each with its command line."""
        for each in Path("/proc").iterdir():
            try:
                if each.name.isdigit() and each.stat().st_uid == uid:
                    yield int(each.name), (each / "cmdline").read_bytes().decode().split("\0")
            except (FileNotFoundError, ProcessLookupError):  # it has just ended
                continue
