"""A newer version takes the place of one daemon after the other, while agents call them through a balancer.

No release shares a database, so the later version is a double: a copy of this one that knows one more schema step.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred

import aileron
from aileron.home.lock import running_pid
from aileron.store._server_schema import find_oldest, steps, works_from
from tests.extent import seldom
from tests.functional.operated import GATED, PASSPHRASE, SHIP, UNGATED, AgentSession
from tests.functional.process import Command
from tests.functional.reactor import Patience, until
from tests.functional.test_several import SeveralTestCase

_PACKAGE = Path(aileron.__file__).parent
_VERSION = "99.0.0"
_EXPANDS = "ALTER TABLE sessions ADD COLUMN later text COLLATE \"C\" NOT NULL DEFAULT '';\n"


def install_copy(where: Path) -> Path:
    """Install a copy of this version into an environment of its own, and return the directory of its package."""
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", where), check=True)
    (packages,) = where.glob("lib/python3*/site-packages")
    shutil.copytree(_PACKAGE, packages / "aileron", ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "others.pth").write_text(sysconfig.get_paths()["purelib"])
    return packages / "aileron"


def make_newer(where: Path, first_line: str) -> Path:
    """Install a later version into an environment of its own, and return its interpreter.

    :param first_line: the first line of its further step.
    """
    made = install_copy(where)
    text = (made / "__init__.py").read_text()
    (made / "__init__.py").write_text(text.replace(aileron.__version__, _VERSION))
    number = max(steps()) + 1
    for room in (made / "store" / "schema", made / "store" / "schema" / "postgresql"):
        (room / f"{number:04}_later.sql").write_text(f"{first_line}\n{_EXPANDS if room.name == 'postgresql' else ''}")
    return where / "bin" / "python"


def by(python: Path, command: Command) -> Command:
    return attrs.evolve(command, arguments=(str(python), "-I", "-m", "aileron", *command.arguments[1:]))


class RollingTests(SeveralTestCase):
    """Two daemons of this version, and the later one."""

    stopped = False

    async def newer(self, python: Path, number: int) -> None:
        """Unlock the later version with the home of one daemon."""
        home = str(self.homes[number].root)
        command = self.home.with_passphrase(PASSPHRASE, "aileron", "vault", "unlock", AILERON_HOME=home)
        started = await self.run_command(by(python, command))
        self.assertEqual(started.exit_code, 0, f"{started.stderr}{self.log(number)}")
        self.assertEqual(self.found(number)["version"], _VERSION)

    async def stop(self, number: int) -> None:
        """Stop the daemon of a home, and wait until it is gone."""
        pid = running_pid(self.homes[number])
        os.kill(pid or 0, signal.SIGTERM)
        await until(self.reactor, lambda: running_pid(self.homes[number]) is None, 30, "the end of a stopped daemon")

    async def calling(self, session: AgentSession, sent: list[str]) -> None:
        """Calls one after the other through the balancer, each text once; one that is refused is made again."""
        while not self.stopped:
            text = f"note {len(sent)}"
            sent.append(text)
            await self.insist(session, text)
            await self.pause(0.7)  # the action allows sixty an hour

    async def until_sent(self, sent: list[str], more: int, agents: Deferred[None]) -> None:
        """Wait until so many more calls were made."""
        count, patience = len(sent) + more, Patience(self.reactor, 60)
        while len(sent) < count:
            if agents.called:
                await agents
            self.assertFalse(patience.is_over, f"no calls after {sent[-3:]}{self.log(0)}{self.log(1)}")
            await self.pause(0.1)

    async def insist(self, session: AgentSession, text: str) -> None:
        """A call that is repeated with its key until it has an outcome."""
        for _ in range(60):
            try:
                status, body = await self.call_once(session, text)
            except Exception:  # noqa: BLE001 - a connection that broke: the key makes the next try the same run
                await self.pause(0.2)
                continue
            if status == 200:
                return
            self.assertEqual(body["error"]["class"], "store_unavailable", body)
            await self.pause(0.2)
        self.fail(f"{text} has no outcome")

    async def call_once(self, session: AgentSession, text: str) -> tuple[int, Mapping[str, Any]]:
        body = {"args": {**SHIP, "summary": text}, "idempotency_key": text.replace(" ", "-")}
        url = f"{self.balancer.url}/v1/actions/{UNGATED}/run"
        reply = await self.web.ask("POST", url, session.token, body, seconds=60)
        return reply.status, reply.body

    @seldom
    async def test_rolling(self) -> None:
        """Both daemons are replaced while agents call: nothing is lost, doubled or unasked; the older one still starts
        on the newer tables, until a step says that it cannot."""
        await self.begin(drain_seconds=10)
        marks = {number: works_from(number, step) for number, step in steps().items()}
        python = make_newer(self.home.root / "newer", f"-- works from: {find_oldest(max(marks), marks)}")
        session = await self.session()
        asked = await self.call(0, session, GATED, wait=None, summary="asked")
        sent: list[str] = []
        agents = Deferred.fromCoroutine(self.calling(session, sent))
        for number in (0, 1):
            await self.stop(number)
            await self.newer(python, number)
            await self.until_sent(sent, 5, agents)
            if not number:  # an older one may start again beside it
                await self.stop(1)
                await self.at(1, "vault", "unlock")
                self.assertIn("works on it", self.log(1))
                await self.approve(str(asked.body["run_id"]))
        self.stopped = True
        await agents
        self.assertEqual(self.counts(), {**dict.fromkeys(sent, 1), "asked": 1})
        self.assertEqual({each["status"] for each in await self.runs(0)}, {"completed"})
        verified = await self.run_command(by(python, self.home.script("aileron", "store", "verify", self.url)))
        self.assertIn("consistent", verified.stdout)
