"""The installed ``aileron-mcp`` as a process: it serves, follows the daemon, and is gone at once when told to."""

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet.defer import CancelledError
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from aileron.base.bridge import LoopThread, SideGone
from bench.starting import MOST, import_seconds, start_seconds
from tests.extent import is_all
from tests.functional.case import FunctionalTestCase
from tests.functional.home import installed
from tests.functional.loopback import LoopbackSite
from tests.functional.mcp_client import McpClient, Server
from tests.functional.process import Command
from tests.functional.reactor import until

ACTION = {
    "name": "ship-update",
    "version": "1.0.0",
    "tool_name": "ship_update",
    "intent": "",
    "description": "# Ship\n\nPosts.",
    "input_schema": {"type": "object"},
    "enabled": True,
    "gated": True,
    "read_only": False,
    "idempotent": False,
}
STARTED_SECONDS = 20
CALL = 3
ENDED_SECONDS = 30  # for a busy machine; the promise of a second is held by EndTests.assert_ends
# A client that shakes hands, calls, tells its server's process, and waits to be killed.
_CLIENT = """
import json, os, subprocess, sys, time
environment = {**os.environ, "AILERON_URL": sys.argv[2], "AILERON_TOKEN": "ail_a_test"}
server = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
def send(method, params, number):
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    print(json.dumps(message), file=server.stdin, flush=True)
send("initialize", info, 1)
server.stdout.readline()
if sys.argv[3] == "calling":
    send("tools/call", {"name": "ship_update", "arguments": {}}, 2)
print("serving", server.pid, flush=True)
time.sleep(600)
"""


class StubDaemon(Resource):
    """Offers one action; a run, and a poll for a change, wait for ever.

    :ivar runs: the runs that wait and are still connected.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.runs: list[Request] = []

    def render_GET(self, request: Request) -> bytes | int:
        """Status and list."""
        if request.path == b"/v1/status":
            return b'{"version": "stub", "vault_state": "unlocked"}'
        if (request.args or {}).get(b"generation") == [b"1"]:
            return NOT_DONE_YET
        return json.dumps({"generation": 1, "items": [ACTION], "load_errors": []}).encode()

    def render_POST(self, request: Request) -> int:
        """A run."""
        self.runs.append(request)
        request.notifyFinish().addBoth(lambda _: self.runs.remove(request))
        return NOT_DONE_YET


class ServerCase(FunctionalTestCase):
    """A stub of the daemon, and servers that belong to the test."""

    def setUp(self) -> None:
        """Listen."""
        super().setUp()
        self.daemon = StubDaemon()
        self.site = LoopbackSite.listen(self.reactor, self.daemon)
        self.finally_(self.site.stop)

    def started(self) -> McpClient:
        """The installed command for a session at the stub."""
        environment = self.home.environment(AILERON_URL=self.site.url, AILERON_TOKEN="ail_a_test")
        return self.start_mcp(environment, self.home.project)

    async def connected(self, *, calling: bool = False) -> McpClient:
        """One that has shaken hands and listed its tools, perhaps in the middle of a call, of that number."""
        client = self.started()
        await client.shake_hands()
        await client.tools()
        if calling:
            client.server.send("tools/call", {"name": "ship_update", "arguments": {}}, CALL)
            await until(self.reactor, lambda: bool(self.daemon.runs), STARTED_SECONDS, "the run")
        return client


class StartTests(ServerCase):
    """How soon a client is answered."""

    async def test_processor_time(self) -> None:
        """Greeting a client and listing the tools takes at most half as long as importing the SDK."""
        environment = self.home.environment(AILERON_URL=self.site.url, AILERON_TOKEN="ail_a_test")
        taken = await deferToThread(lambda: [self._measure(environment) for _ in range(3)])
        greeted, listed = (min(each) for each in zip(*taken, strict=True))
        self.assertLess(greeted, MOST / 2, taken)
        self.assertLess(listed, MOST, taken)

    def _measure(self, environment: dict[str, str]) -> list[float]:
        sdk = import_seconds()
        return [each / sdk for each in start_seconds(installed("aileron-mcp"), environment)]

    async def test_later(self) -> None:
        """What comes after the first answers, and while the SDK is being loaded, is answered as well, once each."""
        client = self.started()
        await client.shake_hands()
        tools = await client.tools()
        self.assertIn("ship_update", tools)
        numbers = range(10, 15)
        for number in numbers:
            client.server.send("resources/list" if number % 2 else "tools/list", {}, number)
        await until(self.reactor, lambda: all(map(client.server.answer, numbers)), STARTED_SECONDS, "an answer to each")
        answered = [message["id"] for message in client.server.messages if "id" in message]
        self.assertEqual(len(answered), len(set(answered)))
        self.assertEqual(await client.tools(), tools)

    async def test_ended_while_loading(self) -> None:
        """A client that ends as the SDK is being loaded has its server end in time."""
        client = self.started()
        await client.shake_hands()
        client.server.send("resources/list", {}, 10)
        await deferLater(self.reactor, 0.1)
        client.server.process.closeChildFD(0)
        await until(self.reactor, lambda: client.server.status is not None, ENDED_SECONDS, "its end")
        self.assertEqual((client.server.status, client.server.errors), ((0, None), b""))


class EndTests(ServerCase):
    """However it is told to end: status 0, nothing on standard error, in under a second."""

    async def assert_ends(self, end: Callable[[Server], object], *, idle: bool = False) -> None:
        """With a call under way and, where that is asked for or everything is wanted, without one."""
        for calling in (True, False) if idle or is_all() else (True,):
            took = [await self.ended_after(end, calling=calling)]
            while took[-1] >= 1 and len(took) < 4:  # on a machine that is busy with something else
                took.append(await self.ended_after(end, calling=calling))
            self.assertLess(took[-1], 1, took)

    async def ended_after(self, end: Callable[[Server], object], *, calling: bool) -> float:
        """The seconds that it takes to end, however many."""
        server = (await self.connected(calling=calling)).server
        began = self.reactor.seconds()
        end(server)
        await until(self.reactor, lambda: server.status is not None, ENDED_SECONDS, "its end")
        took = self.reactor.seconds() - began
        self.assertEqual((server.status, server.errors), ((0, None), b""))
        # Nothing that a client could take for the end of a call that may still be done.
        self.assertNotIn(CALL, [message.get("id") for message in server.messages])
        await until(self.reactor, lambda: not self.daemon.runs, ENDED_SECONDS, "the end of the wait")
        return took

    async def test_closed(self) -> None:
        """It was started without standard input or output: there is nobody to serve."""
        for closed in ("<&-", ">&-", "<&- >&-")[: 3 if is_all() else 2]:
            arguments = ("/bin/sh", "-c", f'exec "{installed("aileron-mcp")}" {closed}')
            server = self.start(
                Command(arguments=arguments, environment=self.home.environment(), directory=self.home.project)
            )
            finished = await server.finish(STARTED_SECONDS)
            self.assertEqual((finished.exit_code, finished.stdout, finished.stderr), (0, "", ""), closed)

    async def test_streams(self) -> None:
        """Standard input ends, or nobody reads standard output any more."""
        for descriptor in (0, 1):
            await self.assert_ends(partial(_close, descriptor), idle=descriptor == 0)

    async def test_signals(self) -> None:
        """A signal tells it to."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            await self.assert_ends(partial(_signal, number))

    async def test_killed_client(self) -> None:
        """Its client is killed, in the middle of a call or not: it is gone all the same."""
        for calling in (True, False) if is_all() else (True,):
            client = self.start(self._client("calling" if calling else "idle"))
            pid = int((await client.expect(r"serving (\d+)", STARTED_SECONDS))[1])
            if calling:
                await until(self.reactor, lambda: bool(self.daemon.runs), STARTED_SECONDS, "the run")
            os.kill(client.pid, signal.SIGKILL)
            await until(self.reactor, lambda pid=pid: _is_gone(pid), ENDED_SECONDS, "its end")  # type: ignore[misc]
            await until(self.reactor, lambda: not self.daemon.runs, ENDED_SECONDS, "the end of the wait")

    def _client(self, doing: str) -> Command:
        arguments = (sys.executable, "-c", _CLIENT, installed("aileron-mcp"), self.site.url, doing)
        return Command(arguments=arguments, environment=self.home.environment(), directory=self.home.project)

    async def test_killed_daemon(self) -> None:
        """The daemon is gone in the middle of a call: it goes on, says so, and ends when its client does."""
        client = await self.connected(calling=True)
        server = client.server
        await self.site.stop()
        client.asked = CALL
        self.assertIn("aileron daemon start", (await client.call("aileron_diagnostics", {})).text)
        server.process.closeChildFD(0)
        await until(self.reactor, lambda: server.status is not None, ENDED_SECONDS, "its end")
        self.assertEqual((server.status, server.errors), ((0, None), b""))

    async def test_while_starting(self) -> None:
        """A signal while it still loads."""
        for pause in (0.1, 0.3, 0.5):
            server = self.started().server
            await deferLater(self.reactor, pause)
            os.kill(server.process.pid, signal.SIGTERM)
            await until(self.reactor, lambda server=server: server.status is not None, ENDED_SECONDS, "its end")  # type: ignore[misc]
            # Before the first line of ours runs, the signal does what it does to any process.
            self.assertIn(server.status, [(0, None), (None, signal.SIGTERM)])
            self.assertEqual(server.errors, b"")


def _close(descriptor: int, server: Server) -> None:
    server.process.closeChildFD(descriptor)


def _signal(number: int, server: Server) -> None:
    os.kill(server.process.pid, number)


def _is_gone(pid: int) -> bool:
    """Whether a process has ended; nobody may have buried it."""
    try:
        return " Z " in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:4]
    except (FileNotFoundError, ProcessLookupError):  # the latter if it is buried while this reads
        return True


class LoopThreadTests(FunctionalTestCase):
    """The real thread."""

    async def test_stopped_while_it_starts(self) -> None:
        """A stop that comes before the loop runs is not lost, nor one that comes before the thread is started."""
        reactor: Any = self.reactor
        early, never = LoopThread(reactor, "early"), LoopThread(reactor)
        starting = early.start()
        await early.stop()
        await starting
        await never.stop()
        self.assertNotIn("early", [each.name for each in threading.enumerate()])

    async def test_life(self) -> None:
        """It runs coroutines in its own thread, cancels what is left when it stops, and is gone then."""
        reactor: Any = self.reactor
        thread = LoopThread(reactor)
        await thread.start()

        async def name() -> str:
            return threading.current_thread().name

        self.assertEqual(await thread.bridge.ask(name), "aileron-mcp")
        left = thread.bridge.ask(lambda: asyncio.Event().wait())
        left.addErrback(lambda failure: bool(failure.trap(CancelledError)))
        await thread.stop()
        self.assertTrue(await left)
        self.assertNotIn("aileron-mcp", [each.name for each in threading.enumerate()])
        self.assertRaises(SideGone, thread.bridge.post, lambda: None)
