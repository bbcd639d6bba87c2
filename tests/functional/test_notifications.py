"""The operator is told of what waits: by a webhook, a desktop, a library in a thread, and the terminal of a launch."""

import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, gatherResults
from twisted.web.resource import Resource
from twisted.web.server import Request

from tests.functional.loopback import LoopbackSite, headers_of
from tests.functional.operated import GATED, SHIP, AgentSession, OperatedTestCase
from tests.functional.reactor import until

_KEY = "key-of-the-office"
_CANARY = "canary-of-the-arguments"
_ARGUMENTS = {**SHIP, "summary": f"{SHIP['summary']} {_CANARY}"}
_CONFIG = """\
notifications:
  desktop: {{command: {desktop}}}
  webhooks:
    office: {{url: "{url}/office", signed: true}}
  apprise: [phone]
"""
_DESKTOP = '#!/bin/sh\nfor each in "$@"; do echo "$each"; done >> {told}\nenv >> {environment}\n'
_AGENT = '#!/bin/sh\nprintf %s "$OPENCODE_CONFIG_CONTENT" > {given}.new && mv {given}.new {given}\nexec sleep 60\n'


class Listener(Resource):
    """Takes whatever is posted.

    :ivar posted: path, headers and body of each.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.posted: list[tuple[str, Mapping[str, str], bytes]] = []

    def render_POST(self, request: Request) -> bytes:
        """Take it."""
        assert request.content is not None
        self.posted.append((request.path.decode(), headers_of(request), request.content.read()))
        return b"{}"

    def at(self, path: str) -> list[tuple[Mapping[str, str], bytes]]:
        """What was posted to one path."""
        return [(headers, body) for where, headers, body in self.posted if where == path]


class NotificationsTests(OperatedTestCase):
    """A daemon with three channels."""

    def setUp(self) -> None:
        """Listen."""
        super().setUp()
        self.listener = Listener()
        self.site = LoopbackSite.listen(self.reactor, self.listener)
        self.finally_(self.site.stop)
        self.desktop, self.told_desktop = self.home.root / "desktop", self.home.root / "told"
        self.desktop_environment = self.home.root / "environment"
        script = _DESKTOP.format(told=self.told_desktop, environment=self.desktop_environment)
        self.program(self.desktop, script)

    def program(self, path: Path, script: str) -> None:
        """Make it one."""
        path.parent.mkdir(exist_ok=True)
        path.write_text(script)
        path.chmod(0o755)

    async def configure(self) -> None:
        """Have all three channels told."""
        await self.furnish(_CONFIG.format(desktop=self.desktop, url=self.site.url))
        await self.add_channel("office", _KEY)
        await self.add_channel("phone", f"{self.site.url.replace('http', 'json', 1)}/phone")

    async def add_channel(self, name: str, secret: str) -> None:
        """Put what a channel needs into the vault."""
        await self.feed(secret, "notification", "add", name)

    async def arrived(self, count: int) -> None:
        """Wait until each channel was told so often."""

        def everywhere() -> bool:
            numbers = (len(self.listener.at("/office")), len(self.listener.at("/phone")), self.desktop_told())
            return min(numbers) >= count

        await until(self.reactor, everywhere, 30, "a message by each channel")

    def desktop_told(self) -> int:
        """How often the desktop was told."""
        return self.told_desktop.read_text().count("--app-name=Aileron") if self.told_desktop.exists() else 0

    async def test_burst(self) -> None:
        """A burst of approvals is one message by each channel, without their arguments; a restart repeats none."""
        await self.configure()
        session = await self.session()
        asking = [Deferred.fromCoroutine(self.run_action(session, GATED, _ARGUMENTS)) for _ in range(5)]
        self.assertEqual([reply.status for reply in await gatherResults(asking)], [202] * 5)
        await self.arrived(1)
        await self.pause(3)
        ((headers, body),) = self.listener.at("/office")
        said = dict(part.split("=", 1) for part in headers["aileron-signature"].split(","))
        self.assertEqual(hmac.digest(_KEY.encode(), f"{said['t']}.".encode() + body, "sha256").hex(), said["v1"])
        told = json.loads(body)
        self.assertEqual((told["count"], told["title"]), (5, "Aileron: 5 requests are waiting for your approval"))
        self.assertEqual(told["url"], f"{self.home.discovery()['operator_url']}/approvals")
        ((_, phone),) = self.listener.at("/phone")
        self.assertIn("5 pending approvals", phone.decode())
        desktop = self.told_desktop.read_text()
        self.assertIn("Aileron: 5 requests are waiting for your approval", desktop)
        for text in (body.decode(), phone.decode(), desktop):
            self.assertNotIn(_CANARY, text)
        self.assertNotIn("AILERON", self.desktop_environment.read_text())
        await self.kill_daemon()
        await self.unlock()
        await self.pause(4)
        self.assertEqual((len(self.listener.posted), self.desktop_told()), (2, 1))
        await self.look_for_secrets()

    async def look_for_secrets(self) -> None:
        """Nothing that lies in the vault stands in a log."""
        for log in self.state.log.iterdir():
            text = log.read_text()
            self.assertNotIn(_KEY, text)
            self.assertNotIn("/phone", text)


class BellTests(OperatedTestCase):
    """An agent that is a shell script, launched in a terminal."""

    async def test_full_screen(self) -> None:
        """An agent that draws gets one sequence into its terminal, and no line."""
        await self.furnish()
        given, agent = self.home.root / "given", self.home.root / "programs" / "opencode"
        agent.parent.mkdir()
        agent.write_text(_AGENT.format(given=given))
        agent.chmod(0o755)
        path = f"{agent.parent}:{self.home.environment()['PATH']}"
        running = self.start(self.home.on_terminal("aileron", "launch", "opencode", PATH=path))
        await until(self.reactor, given.exists, 30, "an agent")
        entry: Mapping[str, Any] = json.loads(given.read_text())["mcp"]["aileron"]["environment"]
        session = AgentSession("", entry["AILERON_TOKEN"], "")
        self.assertEqual((await self.run_action(session, GATED)).status, 202)
        await running.expect("\x1b\\]9;1 pending approval: http://[a-z]+.aileron.localhost:[0-9]+/approvals\a")
        self.assertNotIn("aileron: 1 pending approval", running.output)
        await running.kill()
