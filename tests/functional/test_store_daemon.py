"""A home whose store is moved to a PostgreSQL server: the installed daemon works, loses the server, and recovers."""

import shutil
from collections.abc import Mapping
from typing import Any

from tests.functional.operated import GATED, UNGATED, OperatedTestCase
from tests.functional.postgresql import Server, start_server


class DaemonTests(OperatedTestCase):
    """With a daemon and a server of their own."""

    def setUp(self) -> None:
        super().setUp()
        self.server: Server = start_server()
        self.name = self.server.make_database()
        self.addCleanup(self.server.drop, self.name)
        self.url = self.server.url(self.name)

    async def move(self) -> None:
        """The user's own steps: trust the setting, stop, move, unlock."""
        self.state.config.write_text(f"store:\n  url: {self.url}\n")
        await self.operator("config", "trust", "--yes")
        await self.command("daemon", "stop")
        moved = await self.command("store", "migrate", "--to", self.url)
        self.assertIn("verified on both sides", moved.stdout)
        await self.unlock()

    async def runs(self) -> list[Mapping[str, Any]]:
        return list((await self.told("run", "list"))["items"])

    async def test_moved(self) -> None:
        """What was there is there; calls go on; locked, it does not start with an empty store; and back again."""
        await self.furnish()
        session = await self.session()
        await self.run_action(session, UNGATED, wait=30)
        before = await self.runs()
        self.assertEqual(len(before), 1)
        await self.move()
        self.assertEqual(await self.runs(), before)
        session = await self.session()
        self.assertEqual((await self.run_action(session, UNGATED, wait=30)).status, 200)
        await self.run_action(session, GATED)
        (waiting,) = await self.waiting()
        await self.approve(waiting["approval_id"])
        await self.posted(3)
        self.assertEqual(len(await self.runs()), 3)
        self.assertIn("consistent", (await self.command("store", "verify", self.url)).stdout)
        self.assertIn("on a PostgreSQL server", (await self.command("audit", "verify", code=1)).stderr)
        await self.command("daemon", "stop")
        refused = await self.aileron("daemon", "start")
        self.assertNotEqual(refused.exit_code, 0)
        self.assertFalse(self.state.database.exists())
        await self.command("store", "migrate", "--to", "sqlite", "--from", self.url)
        self.state.config.unlink()
        await self.unlock()
        self.assertEqual(len(await self.runs()), 3)

    async def test_trusted_with_start(self) -> None:
        """A config.yaml that was changed while no daemon ran is shown and trusted with the start, and not otherwise."""
        await self.furnish()
        await self.move()
        before = await self.runs()
        await self.command("daemon", "stop")
        self.state.config.write_text(f"store:\n  url: {self.url}\npending:\n  per_session: 7\n")
        refused = await self.operator("vault", "unlock", code=1)
        self.assertIn("aileron config trust", refused.stderr)
        unkeyed = await self.command("config", "trust", "--yes", code=1)
        self.assertIn("no terminal", unkeyed.stderr)
        trusted = await self.operator("config", "trust", "--yes")
        self.assertIn("per_session: 7", trusted.stdout)
        self.assertIn("The daemon is running", trusted.stderr)
        self.assertEqual(await self.runs(), before)
        (given,) = [each for each in await self.audit() if each["type"] == "trust.given"][-1:]
        self.assertEqual(given["actor"], {"type": "human", "id": "passphrase"})
        await self.command("daemon", "stop")
        await self.unlock()  # it is trusted now
        self.assertIn("Nothing new", (await self.operator("config", "trust", "--yes")).stdout)

    async def test_away(self) -> None:
        """While the server is away nothing is done and reads are refused in the envelope; then all goes on."""
        await self.furnish()
        await self.move()
        session = await self.session()
        self.assertEqual((await self.run_action(session, UNGATED, wait=30)).status, 200)
        await self.posted(1)
        self.server.control("stop", "-m", "immediate")
        try:
            refused = await self.run_action(session, UNGATED, wait=30)
            self.assertEqual((refused.status, refused.body["error"]["class"]), (503, "store_unavailable"))
            listed = await self.web.ask("GET", f"{self.home.discovery()['url']}/v1/runs", session.token)
            self.assertEqual((listed.status, listed.body["error"]["class"]), (503, "store_unavailable"))
            paused = await self.command("pause")
            self.assertIn("are not listed", paused.stderr)
            self.assertNotIn("is not saved", paused.stderr)
        finally:
            self.server.control("start")
        refused = await self.run_action(session, UNGATED, wait=30)
        self.assertEqual((refused.status, refused.body["error"]["class"]), (503, "paused"))
        await self.operator("resume")
        self.assertEqual((await self.run_action(session, UNGATED, wait=30)).status, 200)
        await self.posted(2)
        self.assertEqual(len(self.workspace.messages), 2)

    async def test_killed(self) -> None:
        """A daemon that is killed leaves the database to the next one at once; one of another home is refused."""
        await self.furnish()
        await self.move()
        await self.kill_daemon()
        await self.unlock()
        before = await self.audit()
        self.assertGreater(len(before), 3)
        first = self.state.root
        other = first.with_name("other")
        shutil.copytree(first, other, ignore=shutil.ignore_patterns("daemon.*", "run"))
        refused = await self.operator_within({"AILERON_HOME": str(other)}, "vault", "unlock")
        self.assertNotEqual(refused.exit_code, 0)
        self.assertIn("Another daemon uses the database", (other / "log" / "aileron.log").read_text() + refused.stderr)
        self.assertEqual((await self.audit())[: len(before)], before)
