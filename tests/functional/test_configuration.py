"""``config.yaml``: obeyed by the life of the daemon that begins after it was trusted, and by no other."""

import socket
from contextlib import closing

from tests.functional.operated import OperatedTestCase


class ConfigurationTests(OperatedTestCase):
    """With a daemon that runs."""

    async def restart(self) -> str:
        """Another life of the daemon; where agents find it."""
        await self.command("daemon", "stop")
        await self.unlock()
        return str(self.home.discovery()["url"])

    async def test_trusted(self) -> None:
        """It listens where a trusted file says; a byte more in the file, and it listens where it did before."""
        await self.operator("vault", "init")
        before = self.home.discovery()["url"]
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            port = free.getsockname()[1]
        text = f"listen: tcp:{port}:interface=127.0.0.1\n"
        self.state.config.write_text(text)
        self.assertEqual(await self.restart(), before)
        await self.operator("config", "trust", "--yes")
        self.assertEqual(self.home.discovery()["url"], before)
        chosen = await self.restart()
        self.assertEqual(chosen, f"http://127.0.0.1:{port}")
        self.state.config.write_text(text + "hosts: [evil.test]\n")
        await self.restart()
        found = await self.operator("doctor", code=0)
        self.assertIn("config.yaml was changed since you trusted it", found.stdout)

    async def test_unsound(self) -> None:
        """A file with a fault is told with its line, cannot be trusted, and keeps nothing from starting."""
        await self.operator("vault", "init")
        self.state.config.write_text("hosts: []\nlisten_on: tcp:1\n")
        await self.restart()
        found = await self.operator("doctor", code=1)
        self.assertIn("config.yaml:2: ", found.stdout)
        self.assertIn("config.yaml:2: ", (await self.operator("config", "trust", "--yes", code=1)).stderr)
