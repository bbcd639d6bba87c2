"""A vault that a transit engine unlocks when the daemon starts, or later, through outages and refusals."""

import signal
import stat
from pathlib import Path

from aileron.home.lock import running_pid
from tests.features.key_sources.transit_double import ENCRYPT_TOKEN, KEY_NAME, TOKEN
from tests.functional import canary
from tests.functional.operated import UNGATED, OperatedTestCase
from tests.functional.postgresql import start_server
from tests.functional.process import Finished, Running
from tests.functional.reactor import until
from tests.functional.transit_server import TransitServer, make_certificate


class TransitTestCase(OperatedTestCase):
    """A home whose vault has a transit engine as a key source, and C{aileron daemon run} as a container starts it."""

    executes_daemons = True

    async def prepare(self) -> None:
        """Have a vault with the source, and no daemon."""
        self.place = Path(self.mktemp()).absolute()
        authority, certificate = make_certificate(self.place)
        self.server = TransitServer(certificate)
        self.server.start()
        self.addCleanup(self.server.stop)
        self.token_file = self.write("token", TOKEN)
        self.encrypt_file = self.write("encrypt", ENCRYPT_TOKEN)
        await self.furnish()
        self.added = await self.add_transit(authority)
        await self.command("daemon", "stop")

    def write(self, name: str, text: str) -> Path:
        """Write a file that only this user can read, outside of the home."""
        path = self.place / name
        path.write_text(text)
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
        return path

    async def add_transit(self, authority: Path, code: int = 0) -> Finished:
        """Add the source."""
        words = ("--url", self.server.url, "--key", KEY_NAME, "--ca-file", str(authority))
        files = ("--token-file", str(self.token_file), "--encrypt-token-file", str(self.encrypt_file))
        return await self.operator("vault", "key-source", "add", "transit", *words, *files, code=code)

    async def run_daemon(self) -> Running:
        """Start C{aileron daemon run}, and wait for the daemon."""
        running = self.start(self.home.script("aileron", "daemon", "run"))
        await running.expect("The daemon is running")
        return running

    async def vault_state(self) -> str:
        """The vault's state."""
        return str((await self.status())["vault_state"])

    async def ready(self) -> int:
        """The status of the route for load balancers."""
        return (await self.web.ask("GET", f"{self.home.discovery()['url']}/v1/ready", None, None)).status

    async def assert_works(self) -> None:
        """Check that an action runs with its credential, which only an open vault has."""
        before = len(self.workspace.messages)
        self.assertEqual(await self.ready(), 200)
        outcome = await self.run_action(await self.session(), UNGATED, wait=20)
        self.assertEqual((outcome.status, len(self.workspace.messages)), (200, before + 1), outcome)

    def assert_nowhere(self, *running: Running) -> None:
        """Check that no file of the home, no process and no output shows a token."""
        pid = running_pid(self.state)
        assert pid
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        for word in (TOKEN, ENCRYPT_TOKEN):
            self.assertEqual(canary.in_files(self.home.root, word), [])
            for each in (pid, *children):
                self.assertEqual(canary.in_process(each, word), [])
            said = self.added.stdout + self.added.stderr + "".join(each.output + each.errors for each in running)
            self.assertEqual(list(canary.in_bytes("output", said.encode(), word)), [])


class TransitTests(TransitTestCase):
    """With the store in the home."""

    async def test_unlocked(self) -> None:
        """A daemon starts with an open vault; after another passphrase too; a removed source does not unlock it."""
        await self.prepare()
        running = await self.run_daemon()
        self.assertEqual(await self.vault_state(), "unlocked")
        await self.assert_works()
        self.assert_nowhere(running)
        records = [each["type"] for each in await self.audit("--type", "vault.key_source_added")]
        self.assertEqual(records, ["vault.key_source_added"])
        (source,) = (await self.told("vault", "key-source", "list"))["items"]
        self.assertEqual((source["kind"], source["name"]), ("transit", "transit"))
        await self.operator("vault", "key-source", "remove", source["id"])
        await running.signal(signal.SIGTERM)
        asked = self.server.count
        running = await self.run_daemon()
        self.assertEqual((await self.vault_state(), self.server.count), ("locked", asked))
        await running.signal(signal.SIGTERM)

    async def test_away(self) -> None:
        """While the server is away or sealed, the daemon runs locked and says why; then it unlocks without a person."""
        await self.prepare()
        self.server.stop()
        running = await self.run_daemon()
        self.assertEqual((await self.vault_state(), await self.ready()), ("locked", 423))
        status = await self.command("status")
        self.assertIn("could not be reached", status.stderr)
        self.assertIn("Aileron tries again by itself.", status.stderr)
        self.server.double.status = 503
        self.server.start()
        await until(self.reactor, lambda: "sealed" in running.errors, 30, "that the server is sealed")
        self.assertEqual(await self.vault_state(), "locked")
        self.server.double.status = None
        await running.expect("The vault is unlocked")
        await self.assert_works()
        self.assertNotIn("key source", (await self.command("status")).stderr)
        self.assert_nowhere(running)
        self.assertEqual((await running.signal(signal.SIGTERM)).exit_code, 0)

    async def test_refused(self) -> None:
        """A refused token ends the attempts, and the person is told; the passphrase goes on working."""
        await self.prepare()
        self.server.double.tokens.clear()
        running = await self.run_daemon()
        self.assertEqual(await self.vault_state(), "locked")
        self.assertIn("refused the token", (await self.command("status")).stderr)
        asked = self.server.count
        await self.unlock()
        self.assertEqual((await self.vault_state(), self.server.count), ("unlocked", asked))
        await self.assert_works()
        self.assertFalse(running.is_over)
        self.assert_nowhere(running)

    async def test_unlocked_meanwhile(self) -> None:
        """A vault that a person unlocks, then locks, while the server is away stays locked when the server is back."""
        await self.prepare()
        self.server.stop()
        running = await self.run_daemon()
        await self.unlock()
        await self.assert_works()
        await self.operator("vault", "lock")
        self.server.start()
        with self.assertRaises(AssertionError):
            await running.expect("The vault is unlocked", 5)
        self.assertEqual((await self.vault_state(), self.server.count), ("locked", 2))


class ServerStoreTests(TransitTestCase):
    """With the store on a PostgreSQL server: a daemon starts only with its vault unlocked."""

    async def move(self) -> None:
        """Move the store, as several daemons would share it."""
        server = start_server()
        name = server.make_database()
        self.addCleanup(server.drop, name)
        url = server.url(name)
        await self.unlock()
        self.state.config.write_text(f"store:\n  url: {url}\n  daemons: several\n")
        await self.operator("config", "trust", "--yes")
        await self.command("daemon", "stop")
        await self.command("store", "migrate", "--to", url)

    async def test_away(self) -> None:
        """While the server is away, C{daemon run} waits with the start, and can be ended; then the daemon works."""
        await self.prepare()
        await self.move()
        self.server.double.status = 503
        running = self.start(self.home.script("aileron", "daemon", "run"))
        await running.expect("as soon as its vault can be unlocked")
        self.assertIn("is sealed", (await self.command("status", code=1)).stderr)
        self.assertEqual((await running.signal(signal.SIGTERM)).exit_code, 0)
        running = self.start(self.home.script("aileron", "daemon", "run"))
        await running.expect("as soon as its vault can be unlocked")
        self.assertIs(running_pid(self.state), None)
        self.server.double.status = None
        await running.expect("The daemon is running")
        self.assertEqual(await self.vault_state(), "unlocked")
        await self.assert_works()
        self.assert_nowhere(running)
        self.assertEqual((await running.signal(signal.SIGTERM)).exit_code, 0)

    async def test_refused(self) -> None:
        """A refusal ends the wait with a failure that says why, so that a container is started again."""
        await self.prepare()
        await self.move()
        self.server.double.status = 503
        running = self.start(self.home.script("aileron", "daemon", "run"))
        await running.expect("as soon as its vault can be unlocked")
        self.server.double.status = None
        self.server.double.tokens.clear()
        finished = await running.finish(60)
        self.assertEqual(finished.exit_code, 1)
        self.assertIn("refused the token", finished.stderr)
