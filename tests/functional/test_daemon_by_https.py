"""An agent elsewhere, with an address, a token and an authority: the daemon behind what ends TLS, and nobody else."""

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import attrs
import mcp.types as t
from mcp import Client, StdioServerParameters
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Protocol, ServerFactory

from aileron.client import Connections, DaemonUnreachable
from tests.functional import nginx, opencode
from tests.functional.front import Front
from tests.functional.home import Home, installed
from tests.functional.mcp_client import McpClient, Server
from tests.functional.mcp_http import talk
from tests.functional.operated import SHIP, OperatedTestCase
from tests.functional.reactor import until
from tests.functional.script import Call, Say
from tests.functional.slack import Message
from tests.gateway.certificates import Authority, self_signed
from tests.installed import seldom

LARGE = 300_000
EXPIRED = {"begins": timedelta(days=-9), "ends": timedelta(days=-1)}
COMING = {"begins": timedelta(days=1), "ends": timedelta(days=9)}
NOBODY = "http://127.0.0.1:9"
NAME, CHAIN = "for another name", "not trusted here, or not valid now"


class ElsewhereCase(OperatedTestCase):
    """A daemon, and an agent that has nothing of its home."""

    def setUp(self) -> None:
        """Make an empty home for the agent, with the authority that is to vouch for the daemon."""
        super().setUp()
        self.elsewhere = Home.make()
        self.addCleanup(self.elsewhere.remove)
        self.authority = Authority.made()
        self.ca = self.elsewhere.project / "ca.pem"
        self.ca.write_text(self.authority.pem)

    def front(self, certificate: bytes, url: str | None = None) -> tuple[Front, str]:
        """What ends TLS with this certificate before the daemon, and its address.

        :param url: the daemon's; None: that of the one that runs.
        """
        front = Front(self.reactor, urlsplit(url or self.home.discovery()["url"]).port or 0)
        self.finally_(front.stop)
        return front, f"https://localhost:{front.listen(certificate)}"

    async def opened(self) -> dict[str, str]:
        """What ``aileron sessions open`` prints for an environment."""
        printed = (await self.command("sessions", "open", "builder", "--hours", "4")).stdout
        return dict(line.split("=", 1) for line in printed.splitlines())

    async def agent(self, ours: Mapping[str, str]) -> McpClient:
        """The installed ``aileron-mcp`` there, its hands shaken; it is killed at the end."""
        server, program = Server(), installed("aileron-mcp")
        environment = self.elsewhere.environment(**ours)
        self.reactor.spawnProcess(server, program, (program,), environment, str(self.elsewhere.project))
        self.finally_(lambda: self._end_server(server))
        client = McpClient(self.reactor, server)
        await client.shake_hands()
        return client


class Talk:
    """What an agent with the SDK's own client does, and finds."""

    def __init__(self, server: StdioServerParameters) -> None:
        self._server = server
        self._changed = asyncio.Event()
        self.tools: list[str] = []
        self.words: list[str] = []
        self.results: dict[str, t.CallToolResult] = {}

    async def hold(self) -> None:
        """Read, post, ask for what is gated, and list anew whenever told to, until there is one action more."""
        async with Client(self._server, mode="legacy", message_handler=self._hear) as client:
            self.results["long"] = await client.call_tool("read_channel", {"channel": "C0001"})
            self.results["free"] = await client.call_tool("post_note", SHIP)
            self.results["gated"] = await client.call_tool("ship_update", SHIP, progress_callback=self._wait)
            await self._list(client)
            while "another" not in self.tools:
                await self._changed.wait()
                await self._list(client)

    async def _list(self, client: Client) -> None:
        self._changed.clear()
        self.tools = [tool.name for tool in (await client.list_tools()).tools]

    async def _hear(self, message: object) -> None:
        if isinstance(message, t.ToolListChangedNotification):
            self._changed.set()

    async def _wait(self, progress: float, total: float | None, message: str | None) -> None:
        self.words.append(message or f"{progress} of {total}")


class WorkingTests(ElsewhereCase):
    """The way there is the right one."""

    async def test_tools(self) -> None:
        """Tools are listed, called, waited for through a restart, and told anew; what they say may be long."""
        await self.furnish()
        self.workspace.messages.append(Message("C0001", "w" * LARGE, None, "1700000000.000000"))
        await self.add(self.reading())
        front, url = self.front(self.authority.issue("localhost"))
        ours = {**await self.opened(), "AILERON_URL": url, "AILERON_CA": str(self.ca)}
        command = self.elsewhere.script("aileron-mcp", **ours)
        server = StdioServerParameters(
            command=command.arguments[0], env=dict(command.environment), cwd=str(command.directory)
        )
        agent = Talk(server)
        talking = Deferred.fromCoroutine(talk(self.reactor, agent.hold))
        await self.waiting()
        await self.kill_daemon()
        await self.unlock()
        await self.add(self.action_file("another", gated=False))
        await until(self.reactor, lambda: bool(agent.words), 30, "a word of progress")
        [approval] = await self.waiting()
        await self.approve(approval["id"])
        await talking
        for name, result in agent.results.items():
            self.assertFalse(result.is_error, f"{name}: {result}")
        self.assertIn("w" * LARGE, _text(agent.results["long"]))
        self.assertEqual(len(self.workspace.messages), 3)
        self.assert_sealed(front, ours["AILERON_TOKEN"])
        self.assertFalse(self.elsewhere.aileron.exists())
        self.assertEqual(list(self.elsewhere.user.iterdir()), [])

    def reading(self) -> Path:
        """An action that answers with all that stands in a channel."""
        path = self.action_file("read-channel", gated=False)
        text = path.read_text().replace("post_message", "find_messages")
        text = text.replace('text = "${args.summary}"', 'oldest = "0", limit = 10')
        path.write_text(re.sub(r'(?s)\[\[inputs\]\]\nname = "summary".*?\n\n', "", text))
        return path

    def assert_sealed(self, front: Front, secret: str) -> None:
        """It came, and not in the clear."""
        self.assertIn(secret.encode(), front.clear)
        self.assertNotIn(secret.encode(), front.wire)

    @seldom
    async def test_agent(self) -> None:
        """The real OpenCode asks for an action there, and gets a long stream of its model by the gateway there."""
        said = " ".join(["w" * 999] * (LARGE // 1000))
        llm = self.llm([Call("_ship_update", SHIP), Say(said)])
        self.home = attrs.evolve(self.home, variables={"AILERON_OPENAI_BASE_URL": llm.url})
        await self.furnish()
        front, url = self.front(self.authority.issue("localhost"))
        opened = json.loads((await self.command("sessions", "open", "builder", "--json")).stdout)
        ours = {"AILERON_URL": url, "AILERON_TOKEN": opened["AILERON_TOKEN"], "AILERON_CA": str(self.ca)}
        servers = {"aileron": opencode.stdio_server([installed("aileron-mcp")], ours)}
        config = opencode.configuration(f"{url}/s/{opened['gateway_key']}", servers)
        agent = self.start(opencode.headless(self.elsewhere, "tell the team", config, NODE_EXTRA_CA_CERTS=str(self.ca)))
        [approval] = await self.waiting()
        await self.approve(approval["id"])
        finished = await agent.finish(120)
        self.assertEqual((finished.exit_code, opencode.texts(finished)), (0, [said]), finished.stderr)
        await self.posted()
        for secret in (opened["AILERON_TOKEN"], opened["gateway_key"]):
            self.assert_sealed(front, secret)
        session = await self.told("sessions", "show", opened["id"])
        self.assertEqual(session["gateway"]["requests"], 2)


class NginxTests(ElsewhereCase):
    """The real nginx, told what the page about agents shows."""

    async def test_how_to(self) -> None:
        """A call is made, another waits for its approval through a restart of the daemon."""
        await self.furnish()
        url, opened = self.home.discovery()["url"], await self.opened()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        place = self.home.root / "nginx"
        place.mkdir()
        self.start(nginx.command(place, url, port, self.authority.issue("localhost"), self.home.environment()))
        await until(self.reactor, lambda: _listens(port), 30, "nginx")
        agent = await self.agent({**opened, "AILERON_URL": f"https://localhost:{port}", "AILERON_CA": str(self.ca)})
        self.assertFalse((await agent.call("post_note", SHIP)).is_error)
        calling = Deferred.fromCoroutine(agent.call("ship_update", SHIP, 150))
        await self.waiting()
        await self.kill_daemon()
        await self.unlock()
        [approval] = await self.waiting()
        await self.approve(approval["id"])
        result = await calling
        self.assertFalse(result.is_error, result.text)
        self.assertEqual(len(self.workspace.messages), 2)


class Rude(Protocol):
    """Says something and hangs up."""

    def __init__(self, words: bytes) -> None:
        self._words = words

    def connectionMade(self) -> None:
        """Do it at once."""
        cast(Any, self.transport).write(self._words)
        cast(Any, self.transport).loseConnection()


class Rudely(ServerFactory):
    """Where everybody is met so."""

    noisy = False

    def __init__(self, words: bytes) -> None:
        self._words = words

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """One more connection."""
        return Rude(self._words)


class Breaking(Front):
    """Takes a request by TLS, and answers beside it."""

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """One more connection."""
        return _Beside(self)


class _Beside(Protocol):
    def __init__(self, front: Front) -> None:
        self._front = front

    def dataReceived(self, data: bytes) -> None:
        self._front.clear += data
        cast(Any, self.transport).transport.write(b"what is no record of TLS")


class RefusedTests(ElsewhereCase):
    """What answers could be anybody: it gets not a byte but a handshake's."""

    async def test_certificates(self) -> None:
        """Another name, another's authority, past or before its time, and on its own word: nobody of these is asked."""
        issue, other = self.authority.issue, Authority.made("Somebody Else")
        for certificate, words in (
            (issue("elsewhere.test"), NAME),
            (issue("127.0.0.1"), NAME),
            (other.issue("localhost"), CHAIN),
            (issue("localhost", **EXPIRED), CHAIN),
            (issue("localhost", **COMING), CHAIN),
            (self_signed("localhost"), CHAIN),
        ):
            front, url = self.front(certificate, NOBODY)
            daemon = Connections(self.reactor).trusting(str(self.ca)).daemon(url, "ail_a_test")
            with self.assertRaises(DaemonUnreachable) as lost:
                await daemon.status()
            self.assertIn(words, str(lost.exception))
            self.assertEqual((lost.exception.sent, lost.exception.misdirected), (False, True))
            self.assert_nothing_of("ail_a_test", front)

    async def test_no_handshake(self) -> None:
        """Who speaks no TLS, or hangs up, was sent nothing, which is said."""
        for words, told, misdirected in ((b"HTTP/1.1 400 \r\n\r\n", "not speak TLS", True), (b"", "No Aileron", False)):
            port = self.reactor.listenTCP(0, Rudely(words), interface="127.0.0.1")
            self.addCleanup(port.stopListening)
            lost = await self.lost(f"https://localhost:{cast(IPv4Address, port.getHost()).port}")
            self.assertIn(told, str(lost))
            self.assertEqual((lost.sent, lost.misdirected), (False, misdirected))

    async def test_broken_afterwards(self) -> None:
        """Who breaks TLS when the request has come is not taken for somebody to whom nothing was sent."""
        front = Breaking(self.reactor, 9)
        self.finally_(front.stop)
        lost = await self.lost(f"https://localhost:{front.listen(self.authority.issue('localhost'))}")
        self.assertIn(b"ail_a_test", front.clear)
        self.assertIn("cut off", str(lost))
        self.assertEqual((lost.sent, lost.misdirected), (True, False))

    async def lost(self, url: str) -> DaemonUnreachable:
        """Why no action could be run there."""
        daemon = Connections(self.reactor).trusting(str(self.ca)).daemon(url, "ail_a_test")
        with self.assertRaises(DaemonUnreachable) as lost:
            await daemon.run("ship-update", SHIP, "key", 0)
        return cast(DaemonUnreachable, lost.exception)

    async def test_told(self) -> None:
        """The agent is told, of the daemon and of each call, that nothing was sent, and what is wrong."""
        await self.operator("vault", "init")
        opened = await self.opened()
        good, bad = self.authority.issue("localhost"), self.authority.issue("localhost", **EXPIRED)
        plain = f"http://aileron.internal:{urlsplit(opened['AILERON_URL']).port}"
        for certificate, more, words in (
            (bad, {"AILERON_CA": str(self.ca)}, CHAIN),
            (good, {}, CHAIN),
            (good, {"AILERON_URL": plain}, "plain HTTP"),
        ):
            front, url = self.front(certificate)
            for told in await self.called({**opened, "AILERON_URL": url, **more}):
                self.assertIn(words, told)
                self.assertIn("AILERON_URL, AILERON_TOKEN and AILERON_CA", told)
            self.assert_nothing_of(opened["AILERON_TOKEN"], front)

    async def called(self, ours: Mapping[str, str]) -> list[str]:
        """What the agent is told of the daemon, and of each call."""
        agent = await self.agent(ours)
        tools = {"aileron_diagnostics": {}, "check_action_status": {"approval_id": "x"}, "ship_update": SHIP}
        return [(await agent.call(tool, given)).text for tool, given in tools.items()]

    def assert_nothing_of(self, token: str, front: Front) -> None:
        """Nothing came after the handshake, and nothing of the token in it."""
        self.assertEqual(front.clear, b"")
        self.assertNotIn(token.encode(), front.wire)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _text(result: t.CallToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, t.TextContent))
