"""``config.yaml``: obeyed by the life of the daemon that begins after it was trusted, and by no other."""

import socket
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from tests.functional.canary import in_files
from tests.functional.operated import OperatedTestCase
from tests.functional.process import Finished

_MOVED = {"AILERON_OPENAI_BASE_URL": "http://127.0.0.1:9/evil"}
_CANARY = "canary-of-the-proxy"
_PROXIED = {"HTTPS_PROXY": f"http://me:{_CANARY}@127.0.0.1:3128", "no_proxy": "localhost,.x.test"}


class ConfigurationTests(OperatedTestCase):
    """With a daemon that runs."""

    async def restart(self) -> str:
        """Another life of the daemon; where agents find it."""
        await self.command("daemon", "stop")
        await self.unlock()
        return str(self.home.discovery()["url"])

    async def test_trusted(self) -> None:
        """A trusted file says where it listens, and what it loads; with a byte more in the file it is as before."""
        await self.operator("vault", "init")
        before = self.home.discovery()["url"]
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            port = free.getsockname()[1]
        text = f"listen: tcp:{port}:interface=127.0.0.1\nconnector_packages: [acme.nowhere]\n"
        self.state.config.write_text(text)
        self.assertEqual(await self.restart(), before)
        await self.operator("config", "trust", "--yes")
        self.assertEqual(self.home.discovery()["url"], before)
        chosen = await self.restart()
        self.assertEqual(chosen, f"http://127.0.0.1:{port}")
        self.assertIn("acme.nowhere", (await self.operator("doctor", code=1)).stdout)
        self.state.config.write_text(text + "hosts: [evil.test]\n")
        await self.restart()
        found = await self.operator("doctor", code=0)
        self.assertIn("config.yaml changed since you trusted it", found.stdout)


class GatewayTests(OperatedTestCase):
    """Where providers are, by file and by environment."""

    async def gateway(self) -> Mapping[str, Any]:
        """What a program of the user's is told of the gateway."""
        found: Mapping[str, Any] = (await self.status())["gateway"]
        return found

    async def upstream(self, name: str) -> tuple[str, str, str]:
        """A provider's base URL, prefix, and who said the former."""
        (found,) = [each for each in (await self.gateway())["providers"] if each["name"] == name]
        return found["base_url"], found["prefix"], found["source"]

    async def unlock_within(self, environment: Mapping[str, str], code: int = 0) -> Finished:
        """Another life of the daemon, started from surroundings with these variables."""
        await self.command("daemon", "stop")
        return self._expect(await self.operator_within(environment, "vault", "unlock"), code)

    async def test_environment(self) -> None:
        """Whoever starts the daemon says where providers are, in sight; a proxy's password is in no file and answer."""
        await self.operator("vault", "init")
        told = await self.unlock_within({**_MOVED, **_PROXIED})
        self.assertIn("AILERON_OPENAI_BASE_URL", told.stderr)
        self.assertEqual(await self.upstream("openai"), ("http://127.0.0.1:9/evil", "/openai", "environment"))
        shown, found = await self.command("status"), await self.operator("doctor", code=0)
        self.assertRegex(shown.stdout, r"https_proxy +http://127.0.0.1:3128\n +no_proxy +localhost,.x.test\n")
        self.assertIn(
            "openai goes to http://127.0.0.1:9/evil (at /openai, set by AILERON_OPENAI_BASE_URL)", found.stdout
        )
        self.assertIn("proxy http://127.0.0.1:3128", found.stdout)
        for text in (shown.stdout, found.stdout, str(await self.gateway()), told.stderr):
            self.assertNotIn(_CANARY, text)
        self.assertEqual(in_files(self.home.root, _CANARY), [])

    async def test_started_by_an_agent(self) -> None:
        """A daemon that an agent starts is locked, and none replaces it before the user has seen where it leads."""
        await self.operator("vault", "init")
        await self.command("daemon", "stop")
        self._expect(await self.run_command(self.home.script("aileron", "daemon", "start", **_MOVED)), 0)
        self.assertEqual((await self.status())["vault_state"], "locked")
        self.assertEqual((await self.upstream("openai"))[2], "environment")
        refused = self._expect(await self.operator_within({}, "vault", "unlock"), 1)
        self.assertIn("AILERON_OPENAI_BASE_URL: daemon http://127.0.0.1:9/evil, this terminal not set", refused.stderr)
        self.assertEqual((await self.status())["vault_state"], "locked")
        await self.unlock_within({})
        self.assertEqual(await self.upstream("openai"), ("https://api.openai.com", "/openai", "default"))

    async def test_bad(self) -> None:
        """A base URL that is none keeps the daemon from starting; the variable is told, and what it holds is not."""
        await self.operator("vault", "init")
        bad = {"AILERON_ANTHROPIC_BASE_URL": f"http://me:{_CANARY}@evil.test"}
        refused = await self.unlock_within(bad, code=1)
        self.assertIn("AILERON_ANTHROPIC_BASE_URL must have no user name and no password.", refused.stderr)
        self.assertNotIn("Traceback", refused.stderr)
        self.assertEqual((_CANARY in refused.stderr, in_files(self.home.root, _CANARY)), (False, []))
        under_twistd = await self.run_command(self.home.script("twistd", "-n", "aileron", **bad))
        self.assertEqual(under_twistd.exit_code, 1)
        self.assertIn("AILERON_ANTHROPIC_BASE_URL must have", under_twistd.stderr)
        self.assertNotIn("Traceback", under_twistd.stderr)
        await self.unlock()
