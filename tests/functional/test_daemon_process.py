"""The daemon's process: ports that stay, one daemon a home, an end that loses nothing, and faults that end it."""

import os
import signal
import socket
import sqlite3
from contextlib import closing

from twisted.internet.defer import Deferred

from aileron.home.lock import running_pid
from tests.functional import slack
from tests.functional.operated import GATED, PASSPHRASE, OperatedTestCase, kinds
from tests.functional.process import Command, Running
from tests.functional.reactor import until


class PortsTests(OperatedTestCase):
    """Where the daemon can be reached."""

    async def start_daemon(self) -> tuple[int, int]:
        """Start it, and tell its ports."""
        await self.command("daemon", "start")
        found = self.home.discovery()
        agent, operator = (int(found[name].rpartition(":")[2]) for name in ("url", "operator_url"))
        return agent, operator

    async def test_kept_and_replaced(self) -> None:
        """Ports are the same in the next life, also after a kill; only a taken one is replaced, with a warning."""
        agent, operator = await self.start_daemon()
        await self.command("daemon", "stop")
        self.assertEqual(await self.start_daemon(), (agent, operator))
        await self.kill_daemon()
        self.assertEqual(await self.start_daemon(), (agent, operator))
        await self.command("daemon", "stop")
        with closing(socket.create_server(("127.0.0.1", agent))):
            other, same = await self.start_daemon()
        self.assertNotEqual(other, agent)
        self.assertEqual(same, operator)
        log = (self.state.log / "aileron.log").read_text()
        self.assertIn(f"port {agent} of the agent site is taken", log)
        await self.command("daemon", "stop")
        self.assertEqual(await self.start_daemon(), (other, operator))


class StaleTests(OperatedTestCase):
    """What a killed daemon leaves behind."""

    async def test_stale_discovery(self) -> None:
        """A left ``daemon.json`` is not believed, not even when its number is another process's, and is replaced."""
        await self.command("daemon", "start")
        path = self.state.discovery
        left = path.read_text()
        old = self.home.discovery()["pid"]
        await self.kill_daemon()
        path.write_text(left.replace(str(old), str(os.getpid())))
        status = await self.command("daemon", "status", code=1)
        self.assertIn("The daemon is not running", status.stdout)
        self.assertEqual((await self.command("daemon", "stop")).stdout.strip(), "The daemon is not running.")
        await self.command("daemon", "start")
        self.assertNotEqual(self.home.discovery()["pid"], old)


class TwistdTests(OperatedTestCase):
    """``twistd aileron`` by the installed plugin, in a directory that is not ours."""

    def twistd(self, *arguments: str) -> Command:
        """It in the foreground."""
        return self.home.script("twistd", "-n", "--pidfile=", "aileron", *arguments)

    async def serving(self) -> Running:
        """One that serves."""
        running = self.start(self.twistd())
        await running.expect("serves http")
        return running

    async def test_serves_and_ends(self) -> None:
        """It serves, is found by the commands, and ends on SIGTERM with nothing left to mislead.

        A second daemon of the same home ends with a failure, and the first does not notice; a database of a newer
        version is left as it is.
        """
        running = await self.serving()
        self.assertEqual((await self.status())["vault_state"], "missing")
        self.assertIn(f"PID {running.pid}", (await self.command("daemon", "status")).stdout)
        before = self.state.discovery.read_bytes()
        await self.assert_refuses("cannot start")
        self.assertEqual(self.state.discovery.read_bytes(), before)
        self.assertEqual((await self.status())["store"], "ok")
        finished = await running.signal(signal.SIGTERM)
        # twistd cleans up and then dies of the signal that it was sent.
        self.assertEqual((finished.exit_code, finished.signal), (None, signal.SIGTERM))
        self.assertFalse(self.state.discovery.exists())
        self.assertEqual(list(self.home.project.iterdir()), [])
        with closing(sqlite3.connect(self.state.database)) as database:
            database.execute("PRAGMA user_version = 9999")
        before = self.state.database.read_bytes()
        await self.assert_refuses("newer")
        self.assertEqual(self.state.database.read_bytes(), before)

    async def assert_refuses(self, words: str) -> None:
        """Another one ends with a failure, and says why."""
        finished = await self.run_command(self.twistd(), 30)
        self.assertEqual(finished.exit_code, 1, finished)
        self.assertIn(words, finished.stdout)


class RunTests(OperatedTestCase):
    """``aileron daemon run``, as systemd or a container starts it."""

    async def run_daemon(self) -> Running:
        """One that has a daemon."""
        running = self.start(self.home.script("aileron", "daemon", "run", "--locked"))
        await running.expect("The daemon is running")
        return running

    async def test_watched(self) -> None:
        """It stays when the vault is unlocked, fails when the daemon is killed, and stops the daemon on SIGTERM."""
        await self.furnish()
        await self.command("daemon", "stop")
        running = await self.run_daemon()
        self.assertEqual((await self.status())["vault_state"], "locked")
        await self.unlock()
        self.assertEqual((await self.status())["vault_state"], "unlocked")
        self.assertFalse(running.is_over)
        await self.kill_daemon()
        finished = await running.finish(30)
        self.assertEqual((finished.exit_code, "without being told to" in finished.stderr), (1, True), finished)
        again = await self.run_daemon()
        await self.unlock()
        self.assertEqual((await again.signal(signal.SIGTERM)).exit_code, 0)
        self.assertFalse(self.state.discovery.exists())

    async def test_ended_while_replaced(self) -> None:
        """SIGTERM that comes while the vault is unlocked ends the daemon that is just being started."""
        await self.furnish()
        await self.command("daemon", "stop")
        running = await self.run_daemon()
        before = running_pid(self.state)
        unlocking = Deferred.fromCoroutine(self.aileron("vault", "unlock", passphrase=PASSPHRASE))
        await until(self.reactor, lambda: running_pid(self.state) != before, 30, "the end of the locked daemon")
        self.assertEqual((await running.signal(signal.SIGTERM)).exit_code, 0)
        await unlocking  # whatever it says of a daemon that was stopped
        self.assertIs(running_pid(self.state), None)


class EndTests(OperatedTestCase):
    """SIGTERM while something is under way."""

    async def test_effect_is_finished(self) -> None:
        """What has left is waited for and recorded; what waits is still there in the next life."""
        await self.furnish()
        session = await self.session()
        self.workspace.next = [slack.Behaviour(held=True)]
        under_way, waits = [(await self.run_action(session, GATED)).body["run_id"] for _ in range(2)]
        await self.approve(under_way, "--wait", "0")
        await self.posted()
        stopping = self.start(self.home.script("aileron", "daemon", "stop"))
        await until(self.reactor, lambda: "Waiting for the daemon" in stopping.errors, 30, "that it is waited for")
        self.workspace.release.callback(None)
        self.assertEqual((await stopping.finish(30)).exit_code, 0)
        await self.unlock()
        self.assertEqual((await self.result(session, under_way)).body["status"], "completed")
        self.assertEqual([each["id"] for each in await self.waiting()], [waits])
        self.assertEqual(len(self.workspace.requests), 1)
        self.assertEqual(kinds(await self.audit("--run", under_way))[-1], "execution.succeeded")
