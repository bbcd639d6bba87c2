"""An agent elsewhere, with an address, a token and an authority: the daemon behind nginx, and nobody else."""

import asyncio
import contextlib
import json
import re
import socket
import ssl
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import attrs
import mcp.types as t
from mcp import Client, StdioServerParameters
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ServerFactory

from aileron.client import Connections, DaemonUnreachable
from tests.extent import seldom
from tests.features.gateway.certificates import Authority, self_signed, serving
from tests.features.gateway.wires import TlsPeer
from tests.functional import nginx, opencode
from tests.functional.home import Home, installed
from tests.functional.mcp_client import McpClient
from tests.functional.mcp_http import talk
from tests.functional.operated import SHIP, OperatedTestCase
from tests.functional.reactor import until
from tests.functional.script import Call, Say
from tests.functional.slack import Message

LARGE = 300_000
EXPIRED = {"begins": timedelta(days=-9), "ends": timedelta(days=-1)}
COMING = {"begins": timedelta(days=1), "ends": timedelta(days=9)}
NAME, CHAIN = "for another name", "not from a trusted authority"


class Peer(TlsPeer):
    """Somebody in the daemon's place.

    :ivar wire: what came, as it travelled.
    """

    wire = b""

    def hear(self, data: bytes) -> bytes:
        """Note it."""
        self.wire += data
        return super().hear(data)


class Breaking(Peer):
    """Takes a request by TLS, and answers beside it."""

    def hear(self, data: bytes) -> bytes:
        """Answer as soon as there is a request."""
        answer = super().hear(data)
        return b"what is no record of TLS" if self.received else answer


class Peers(ServerFactory):
    """Whoever listens with a certificate.

    :ivar met: one for each connection.
    """

    noisy = False

    def __init__(self, certificate: bytes, kind: type[Peer] = Peer) -> None:
        self._context: ssl.SSLContext = serving(certificate)
        self._kind = kind
        self.met: list[Peer] = []

    def buildProtocol(self, addr: IAddress | None) -> Peer:
        """One more connection."""
        self.met.append(self._kind(self._context))
        return self.met[-1]


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

    async def behind_nginx(self) -> str:
        """Where the daemon is found behind nginx, which is told what the page about agents shows."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        place, url = self.home.root / "nginx", self.home.discovery()["url"]
        place.mkdir()
        self.start(nginx.command(place, url, port, self.authority.issue("localhost"), self.home.environment()))
        await until(self.reactor, lambda: _listens(port), 30, "nginx")
        return f"https://localhost:{port}"

    def listening(self, peers: Peers) -> str:
        """The address of somebody in the daemon's place."""
        port = self.reactor.listenTCP(0, peers, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        return f"https://localhost:{cast(IPv4Address, port.getHost()).port}"

    async def opened(self) -> dict[str, str]:
        """What ``aileron session open`` prints for an environment."""
        printed = (await self.command("sessions", "open", "builder", "--hours", "4")).stdout
        return dict(line.split("=", 1) for line in printed.splitlines())

    async def agent(self, ours: Mapping[str, str]) -> McpClient:
        """An ``aileron-mcp`` there, its hands shaken; it is killed at the end."""
        environment = self.elsewhere.environment(**ours)
        client = self.start_mcp(environment, self.elsewhere.project, self.forked("aileron-mcp"))
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
        ours = {**await self.opened(), "AILERON_URL": await self.behind_nginx(), "AILERON_CA": str(self.ca)}
        program, *arguments = self.forked("aileron-mcp")
        environment = self.elsewhere.environment(**ours)
        server = StdioServerParameters(
            command=program, args=arguments, env=environment, cwd=str(self.elsewhere.project)
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
        self.assertFalse(self.elsewhere.aileron.exists())
        self.assertEqual(list(self.elsewhere.user.iterdir()), [])

    def reading(self) -> Path:
        """An action that answers with all that stands in a channel."""
        path = self.action_file("read-channel", gated=False)
        text = path.read_text().replace("post_message", "find_messages")
        text = text.replace('text = "${args.summary}"', 'oldest = "0", limit = 10')
        path.write_text(re.sub(r'(?s)\[\[inputs\]\]\nname = "summary".*?\n\n', "", text))
        return path

    @seldom
    async def test_agent(self) -> None:
        """The real OpenCode asks for an action there, and gets a long stream of its model by the gateway there."""
        said = " ".join(["w" * 999] * (LARGE // 1000))
        llm = self.llm([Call("_ship_update", SHIP), Say(said)])
        self.home = attrs.evolve(self.home, variables={"AILERON_OPENAI_BASE_URL": llm.url})
        await self.furnish()
        url = await self.behind_nginx()
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
        session = await self.told("sessions", "show", opened["id"])
        self.assertEqual(session["gateway"]["requests"], 2)


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
            peers = Peers(certificate)
            lost = await self.lost(self.listening(peers))
            self.assertIn(words, str(lost))
            self.assertEqual((lost.sent, lost.misdirected), (False, True))
            self.assert_nothing_of("ail_a_test", peers)

    async def test_broken_afterwards(self) -> None:
        """Who breaks TLS when the request has come is not taken for somebody to whom nothing was sent."""
        peers = Peers(self.authority.issue("localhost"), Breaking)
        lost = await self.lost(self.listening(peers))
        self.assertIn(b"ail_a_test", peers.met[0].received)
        self.assertIn("was lost", str(lost))
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
            peers = Peers(certificate)
            for told in await self.called({**opened, "AILERON_URL": self.listening(peers), **more}):
                self.assertIn(words, told)
                self.assertIn("AILERON_URL, AILERON_TOKEN and AILERON_CA", told)
            self.assert_nothing_of(opened["AILERON_TOKEN"], peers)

    async def called(self, ours: Mapping[str, str]) -> list[str]:
        """What the agent is told of the daemon, and of each call."""
        agent = await self.agent(ours)
        tools = {"aileron_diagnostics": {}, "check_action_status": {"approval_id": "x"}, "ship_update": SHIP}
        return [(await agent.call(tool, given)).text for tool, given in tools.items()]

    def assert_nothing_of(self, token: str, peers: Peers) -> None:
        """Nothing came after the handshake, and nothing of the token in it."""
        self.assertEqual(b"".join(each.received for each in peers.met), b"")
        self.assertNotIn(token.encode(), b"".join(each.wire for each in peers.met))


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _text(result: t.CallToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, t.TextContent))
