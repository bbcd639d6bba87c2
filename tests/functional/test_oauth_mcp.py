"""A person signs in at a real MCP server that says where; calls, renewals, a revocation, and another sign-in."""

import html
import re
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

from tests.functional import canary
from tests.functional.operated import PASSPHRASE, OperatedTestCase
from tests.functional.ports import another_port
from tests.functional.process import Command
from tests.functional.reactor import until

_CONNECTOR = """
[connector]
name = "local://me/notes"
version = "1.0.0"
kind = "mcp"
private_network = true

[mcp]
url = "{url}"

[credential]
kind = "oauth2"
discover = true
"""
_ACTION = """\
+++
name = "look"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/notes"
version = "1.0.0"
capabilities = ["list_tools"]

[[execute]]
id = "look"
connector = "local://me/notes"
op = "list_tools"
inputs = {}

[approval]
required = false
+++
# look

Lists the tools.
"""
_NAME = "oauth2/notes/default"


class OAuthOfMcpTests(OperatedTestCase):
    """The server and the browser are real, but that the page asks nothing."""

    async def serve(self) -> str:
        """Start the server; its URL."""
        self.directory = self.home.root / "server"
        self.directory.mkdir()
        port = another_port()
        program = Path(__file__).with_name("oauth_mcp_server.py")
        arguments = (sys.executable, str(program), str(port), str(self.directory))
        running = self.start(
            Command(arguments=arguments, environment=self.home.environment(), directory=self.home.root)
        )
        url = f"http://127.0.0.1:{port}"
        await until(self.reactor, lambda: self._listens(port), 60, f"a server: {running!r}")
        return f"{url}/mcp"

    @staticmethod
    def _listens(port: int) -> bool:
        with socket.socket() as there:
            return there.connect_ex(("127.0.0.1", port)) == 0

    def happened(self) -> list[list[str]]:
        """What the server has noted."""
        return [line.split() for line in (self.directory / "happened").read_text().splitlines()]

    async def sign_in(self, *command: str) -> str:
        """Sign in, with a browser that follows where it is sent; what the terminal showed."""
        seen, program = self.home.root / "seen", self.home.root / "browser"
        seen.unlink(missing_ok=True)
        program.write_text(f'#!/bin/sh\nprintf "%s" "$*" > {seen}.part && mv {seen}.part {seen}\n')
        program.chmod(0o700)
        running = self.on_terminal("binding", *command, BROWSER=str(program))
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        await running.expect("Sign in there")
        self.assertNotIn("signed-in", [line[0] for line in self.so_far])
        running.send("y")
        await until(self.reactor, seen.exists, 30, f"a page to open: {running!r}")
        page = Path(seen.read_text()).read_text()
        (url,) = set(re.findall(r'http://127[^"<]+/authorize\?[^"<]+', page))
        url = html.unescape(url)
        for _ in range(3):
            reply = await self.web.ask("GET", url)
            where = (reply.headers.getRawHeaders("location") or [""])[0]
            url = f"{urlsplit(url).scheme}://{urlsplit(url).netloc}{where}" if where.startswith("/") else where
        await running.expect("Save this credential")
        running.send("y")
        self.assertEqual((await running.finish(60)).exit_code, 0, running.output)
        return running.output

    @property
    def so_far(self) -> list[list[str]]:
        """What has happened since the last sign-in began."""
        return self.happened()[self.before :] if (self.directory / "happened").exists() else []

    async def test_life(self) -> None:
        """Called, renewed, revoked, refused for want of a scope, signed in again; no secret is in a file or shown."""
        self.before = 0
        url = await self.serve()
        await self.operator("vault", "init")
        self._put_connector("notes", _CONNECTOR.format(url=url))
        path = self.home.project / "look.md"
        path.write_text(_ACTION)
        await self.add(path)
        shown = await self.sign_in("setup", "local://me/notes")
        for each in (url, f"{url.removesuffix('/mcp')}/register", "notes"):
            self.assertIn(each, shown)
        self.assertEqual([each[0] for each in self.happened()], ["registered", "signed-in"])

        session = await self.session()
        for _ in range(2):
            looked = await self.run_action(session, "look", {}, wait=60)
            self.assertEqual(looked.status, 200, looked.text)
            self.assertIn("add_note", looked.text)
        self.assertEqual([each[0] for each in self.happened()[2:]], ["refreshed"] * 2)
        self.assertEqual({each[1] for each in self.happened()[1:]}, {url})

        (self.directory / "revoked").touch()
        looked = await self.run_action(session, "look", {}, wait=60)
        self.assertEqual((looked.status, looked.body["error"]["class"]), (412, "binding_failed"), looked.text)
        (binding,) = (await self.told("binding", "list"))["items"]
        self.assertEqual(binding["state"]["status"], "needs_you")
        (told,) = await self.audit("--type", "binding.needs_you")
        self.assertIn("invalid_grant", told["payload"]["reason"])

        (self.directory / "revoked").unlink()
        self.before = len(self.happened())
        shown += await self.sign_in("renew", _NAME)
        self.assertEqual((await self.run_action(session, "look", {}, wait=60)).status, 200)
        (self.directory / "more").touch()
        self.assertEqual((await self.run_action(session, "look", {}, wait=60)).status, 502)
        (binding,) = (await self.told("binding", "list"))["items"]
        self.assertEqual((binding["state"]["status"], binding["state"]["wanted"]), ("needs_you", ["notes", "admin"]))
        self.before = len(self.happened())
        shown += await self.sign_in("renew", _NAME)
        self.assertIn("notes, admin", shown)
        self.assertEqual((await self.run_action(session, "look", {}, wait=60)).status, 200)

        secrets = {each for line in self.happened() for each in line[2:]}
        self.assertEqual(len(secrets), 3 + 2 * 8)
        for secret in secrets:
            self.assertEqual(canary.in_files(self.home.aileron, secret), [])
            self.assertNotIn(secret, shown)
