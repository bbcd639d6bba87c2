"""Of the connector to a local MCP server: the contract, what is shown, how it gets its credential, and its outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.error import ProcessTerminated
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import canonical
from aileron.connectors import (
    ApiRelay,
    Confinement,
    Enclosure,
    HttpTransport,
    LocalServers,
    LocalSessions,
    McpConnector,
    McpSpec,
    Screened,
)
from aileron.connectors._schema import read_file
from aileron.connectors.programs import Enclose
from aileron.model.connectors import Outcome
from aileron.model.errors import BindingFailed, BindingRequired, CapabilityDenied
from aileron.model.interfaces.connectors import IConnector
from aileron.testing import ConnectorContract, MemoryCredential
from tests.connectors import mcpserver
from tests.connectors.mcpserver import McpRig, McpService, error, result

FILE = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
kind = "mcp"

[mcp]
command = ["/usr/bin/tracker", "--stdio"]
directory = "/srv"
environment = { LANG = "C.UTF-8" }
inherit = ["PATH"]

[credential]
kind = "api_key"
variable = "TRACKER_TOKEN"
readable_by = "the program and everything that it starts"

[operations.create_issue]
tool = "create_issue"
pin = "PIN-OF-CREATE"
timeout_seconds = 3600

[operations.search]
tool = "search"
pin = "PIN-OF-SEARCH"
effect = "read"
"""
SECRET = b"s3cret-value"


def spec_of(text: str = FILE) -> McpSpec:
    """The file, its pins filled in."""
    return mcpserver.spec_of(text)


def enclose(directory: str, network: bool, repository: bool) -> Enclosure:
    """A sandbox of which there is only the name."""
    return Enclosure(directory, confine, b"")


async def confine() -> Confinement:
    """The name."""
    return Confinement(("bwrap",))


@define(eq=False)
class _Pipes:
    """The pipes to the server.

    :ivar takes: how many messages it reads before it reads no more.
    """

    service: LocalService
    protocol: Any
    pid: int | None = None
    takes: int = 1000
    is_over: bool = False
    _producer: Any = None

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Ask for messages as long as it reads."""
        self._producer = producer
        while self._producer is not None and self.takes:
            self.takes -= 1
            producer.resumeProducing()

    def unregisterProducer(self) -> None:
        """Ask for no more."""
        self._producer = None

    def writeToChild(self, childFD: int, data: bytes) -> None:
        """Let the server answer a message."""
        self.service.requests.append(data)
        for message in map(json.loads, data.splitlines()):
            self.service.messages.append((message, {}))
            self.service.reply(self, message)

    def closeChildFD(self, childFD: int) -> None:
        """Its input ends, and so does it."""
        self.dies(0)

    def signalProcess(self, name: str) -> None:
        """Kill it."""
        self.dies(None)

    def loseConnection(self) -> None:
        """There is nothing to close."""

    def dies(self, code: int | None = 1) -> None:
        """It is gone."""
        if not self.is_over:
            self.is_over = True
            why = Failure(ProcessTerminated(code, None if code is not None else 9))
            self.service.reactor.callLater(0, self.protocol.processExited, why)
            self.service.reactor.callLater(0, self.protocol.processEnded, why)


@define(eq=False)
class LocalService(McpService):
    """The server as a process, the clock and the loop.

    :ivar started: its processes, with what each was started by.
    """

    started: list[tuple[_Pipes, tuple[str, ...], Mapping[str, str]]] = field(factory=list)
    takes: int = 1000
    _servers: Any = None

    def spawnProcess(
        self, protocol: Any, program: str, args: tuple[str, ...], env: Mapping[str, str], *_: Any, **__: Any
    ) -> None:
        """Start a process."""
        pipes = _Pipes(self, protocol, takes=self.takes)
        self.started.append((pipes, args, env))
        protocol.makeConnection(pipes)

    def seconds(self) -> float:
        """The time."""
        return self.reactor.seconds()

    def callLater(self, *given: Any, **named: Any) -> Any:
        """Call something when time has passed."""
        return self.reactor.callLater(*given, **named)

    def listenTCP(self, *given: Any, **named: Any) -> Any:
        """Listen."""
        return self.reactor.listenTCP(*given, **named)

    def local(self, spec: McpSpec | None = None, sandbox: Enclose | None = enclose) -> McpConnector:
        """A connector whose server is this process."""
        found = spec or spec_of()
        if self._servers is None:

            async def bridged() -> Any:
                return self.sides.bridge

            self._servers = LocalServers(self, bridged, maybeDeferred)
        assert found.local is not None
        name, environment = found.description.name, {"PATH": "/bin", "OTHER": "x"}
        about, api = found.description, found.local.api
        relay = ApiRelay(about, api, HttpTransport(self.opener), self.reactor, lambda _: None) if api else None
        shared, most = self._servers.of(name), found.max_response_bytes
        sessions = LocalSessions(about, found.local, shared, environment, sandbox, most, relay)
        return McpConnector(found, sessions, self.reactor)

    def reply(self, pipes: _Pipes, message: Mapping[str, Any]) -> None:
        """Answer one message, at the next turn."""
        method = message.get("method", "")
        answering = self.answers.get(method)
        said = answering(message) if answering else self._said(method, message)
        if said is not None:
            self.reactor.callLater(0, pipes.protocol.childDataReceived, 1, said)

    def _said(self, method: str, message: Mapping[str, Any]) -> bytes | None:
        made = getattr(self, "_" + method.replace("/", "_"), None)
        if "id" not in message:
            return None
        return canonical(made(message) if made else error(message, -32601)) + b"\n"


def _line(message: Mapping[str, Any]) -> bytes:
    return canonical(message) + b"\n"


class Contract(ConnectorContract, SynchronousTestCase):
    """The contract of every connector."""

    def rig(self) -> McpRig:
        """Make one."""
        service = LocalService()
        self.addCleanup(service.sides.close)
        return McpRig(service, Screened(service.local()), "file:///usr/bin/tracker", _line)


class LocalCase(SynchronousTestCase):
    """A server and a connector to it."""

    def setUp(self) -> None:
        self.service = LocalService()
        self.addCleanup(self.service.sides.close)

    def start(
        self, connector: IConnector | None = None, *, secret: bytes = SECRET, seconds: float = 20
    ) -> Deferred[Outcome]:
        """Start a call, and let every byte arrive."""
        wrapped = Screened(connector or self.service.local())
        return self.service.start(wrapped, "create_issue", {"title": "x"}, secret=secret, seconds=seconds)

    def fault(self, outcome: Outcome) -> tuple[str, bool, bool]:
        """The kind of its failure, whether it was sent, and whether it is clear what it means."""
        assert outcome.fault is not None
        return outcome.fault.kind, outcome.sent, outcome.classified


class StartTests(LocalCase):
    """How the server is started."""

    def test_started(self) -> None:
        """It is started by its file's own arguments and variables, the credential in one; only then it is talked to."""
        connector = self.service.local()
        request = connector.prepare("create_issue", {"title": "x"}, "file:///usr/bin/tracker", "k1")
        self.assertEqual(self.service.started, [])
        outcome = self.successResultOf(self.start(connector))
        self.assertEqual(outcome.output, {"text": '{"title": "x"}'})
        ((_, args, environment),) = self.service.started
        self.assertEqual(args[-3:], ("bwrap", "/usr/bin/tracker", "--stdio"))
        self.assertEqual(environment, {"PATH": "/bin", "LANG": "C.UTF-8", "TRACKER_TOKEN": "s3cret-value"})
        self.assertNotIn("s3cret-value", " ".join(args) + str(request))

    def test_shown(self) -> None:
        """The approval shows the program, where it runs, and who can read the credential; nothing else is started."""
        connector = self.service.local()
        request = connector.prepare("create_issue", {"title": "x"}, "file:///usr/bin/tracker", "k1")
        shown = json.loads(request.body or b"")
        self.assertEqual(
            shown["server"],
            {
                "argv": ["/usr/bin/tracker", "--stdio"],
                "directory": "/srv",
                "environment": {"LANG": "C.UTF-8"},
                "inherited": ["PATH"],
                "sandbox": "bubblewrap: it writes only to /srv, and has no network",
                "credential": "in the variable TRACKER_TOKEN: the program and everything that it starts can read it",
            },
        )
        for other in (self.service.local(sandbox=None), self.service.local(spec_of(FILE.replace('"--stdio"', '"-x"')))):
            invoking = Deferred.fromCoroutine(other.invoke(request, MemoryCredential(SECRET), 5))
            self.failureResultOf(invoking, CapabilityDenied)
        self.assertEqual(self.service.started, [])

    def test_no_sandbox(self) -> None:
        """Each call needs an approval without a sandbox that the file wants, or a word on who reads the credential."""
        unconfined = spec_of(FILE.replace("inherit =", 'sandbox = "none"\ninherit ='))
        required = spec_of(FILE.replace("inherit =", 'sandbox = "required"\ninherit ='))
        for connector, needs in (
            (self.service.local(), False),
            (self.service.local(sandbox=None), True),
            (self.service.local(unconfined, None), False),
        ):
            operations = connector.describe().operations.values()
            self.assertEqual([bool(each.needs_approval) for each in operations], [needs] * 3)
        silent = self.service.local(spec_of(FILE.replace("readable_by", "# readable_by")))
        for each in silent.describe().operations.values():
            self.assertIn("everything that it starts can read the credential", each.needs_approval)
        connector = self.service.local(required, None)
        self.assertRaises(CapabilityDenied, connector.prepare, "search", {}, "file:///usr/bin/tracker", "k1")

    def test_needs_credential(self) -> None:
        """Without its credential it is not started."""
        connector = self.service.local()
        request = connector.prepare("create_issue", {"title": "x"}, "file:///usr/bin/tracker", "k1")
        self.failureResultOf(Deferred.fromCoroutine(connector.invoke(request, None, 5)), BindingRequired)
        self.assertEqual(self.service.started, [])

    def test_bad_credential(self) -> None:
        """A credential that no variable can have starts nothing, and another one does."""
        connector = self.service.local()
        request = connector.prepare("create_issue", {"title": "x"}, "file:///usr/bin/tracker", "k1")
        running = Deferred.fromCoroutine(connector.invoke(request, MemoryCredential(b"a\0b"), 5))
        self.service.advance()
        self.failureResultOf(running, BindingFailed)
        self.assertEqual(self.service.started, [])
        self.successResultOf(self.start(connector))

    def test_shared(self) -> None:
        """All calls have the same process and session; with another credential there is another, after the first."""
        connector = self.service.local()
        for _ in range(2):
            self.successResultOf(self.start(connector))
        self.assertEqual((len(self.service.started), self.service.methods().count("initialize")), (1, 1))
        self.successResultOf(self.start(connector, secret=b"another"))
        first, second = self.service.started
        self.assertEqual((first[0].is_over, second[2]["TRACKER_TOKEN"]), (True, "another"))

    def test_at_once(self) -> None:
        """Calls of several runs share the pipes, and each gets its own answer, whatever their order."""
        connector, asked = self.service.local(), list[Mapping[str, Any]]()
        self.service.answers["tools/call"] = asked.append
        first, second = self.start(connector), self.start(connector)
        self.assertEqual(len(asked), 2)
        pipes = self.service.started[0][0]
        for number, started in ((1, second), (0, first)):
            said = {"content": [{"type": "text", "text": f"answer {number}"}]}
            pipes.protocol.childDataReceived(1, canonical(result(asked[number], said)) + b"\n")
            self.service.advance()
            self.assertEqual(self.successResultOf(started).output, {"text": f"answer {number}"})

    def test_given_up_call(self) -> None:
        """A call that nobody waits for any more takes nothing from the others, and its late answer goes nowhere."""
        connector, asked = self.service.local(), list[Mapping[str, Any]]()
        self.service.answers["tools/call"] = asked.append
        first, second = self.start(connector, seconds=5), self.start(connector)
        self.service.advance(5)
        self.assertEqual(self.fault(self.successResultOf(first)), ("resource_limit_exceeded", True, False))
        pipes = self.service.started[0][0]
        for message in asked:
            said = {"content": [{"type": "text", "text": "done"}]}
            pipes.protocol.childDataReceived(1, canonical(result(message, said)) + b"\n")
        self.service.advance()
        self.assertEqual(self.successResultOf(second).output, {"text": "done"})


class OutcomeTests(LocalCase):
    """What is known of a call."""

    def answering(self, said: Callable[[Mapping[str, Any]], bytes | None], method: str = "tools/call") -> Outcome:
        """The outcome of a call where a message is answered so."""
        self.service.answers[method] = said
        started = self.start()
        self.service.advance(4)
        return self.successResultOf(started)

    def killed(self, message: Mapping[str, Any]) -> None:
        """It dies of a message."""
        self.service.started[-1][0].dies()

    def test_dies_in_call(self) -> None:
        """Where it dies during a call nobody knows what it did; the next call starts it again."""
        self.assertEqual(self.fault(self.answering(self.killed)), ("external_api_error", True, False))
        self.service.answers.clear()
        self.assertIsNone(self.successResultOf(self.start()).fault)

    def test_dies_before(self) -> None:
        """Where it dies before the call was written, the call was not sent."""
        for method in ("initialize", "tools/list"):
            self.setUp()
            self.service.answers[method] = self.killed
            started = self.start()
            self.service.advance(4)
            if method == "initialize":
                self.failureResultOf(started)
            else:
                self.assertEqual(self.fault(self.successResultOf(started))[1], False)
            self.assertEqual(self.service.calls(), [])

    def test_not_read(self) -> None:
        """Where it never reads the call, this never leaves, and was not sent."""
        self.service.takes = 4  # of the opening and the list
        started = self.start(seconds=5)
        self.assertNoResult(started)
        self.service.advance(5)
        self.assertEqual(self.fault(self.successResultOf(started)), ("resource_limit_exceeded", False, True))

    def test_refused(self) -> None:
        """An error that says that nothing was executed is believed; any other leaves it open."""
        for code, classified in ((-32602, True), (-32603, False)):
            self.setUp()
            fault = self.fault(self.answering(partial(_failing, code)))
            self.assertEqual(fault[1:], (True, classified))

    def test_echo(self) -> None:
        """The credential that it says is not seen."""
        said = {"content": [{"type": "text", "text": "it is s3cret-value"}]}
        outcome = self.answering(lambda message: canonical(result(message, said)) + b"\n")
        self.assertEqual(outcome.output, {"text": "it is [redacted]"})

    def test_too_large(self) -> None:
        """An answer that is too large ends the process, and the call is unknown."""
        large = {"content": [{"type": "text", "text": "x" * 5_000_000}]}
        fault = self.fault(self.answering(lambda message: canonical(result(message, large)) + b"\n"))
        self.assertEqual((fault[1:], self.service.started[0][0].is_over), ((True, False), True))

    def test_asks_back(self) -> None:
        """What it asks during a call is refused, and noted; after too much of it, it is ended."""
        ask = canonical({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {}}) + b"\n"
        said: dict[str, Any] = {"content": []}
        outcome = self.answering(lambda message: ask + canonical(result(message, said)) + b"\n")
        self.assertEqual(outcome.notes["refused"], ["sampling/createMessage"])
        answered = [message for message, _ in self.service.messages if message.get("id") == "s1"]
        self.assertEqual([bool(each.get("error")) for each in answered], [True])


def _failing(code: int, message: Mapping[str, Any]) -> bytes:
    return canonical(error(message, code)) + b"\n"


class FileTests(SynchronousTestCase):
    """The file of such a connector."""

    def test_faults(self) -> None:
        """What it says wrongly is a fault, with its line."""
        for old, new, problem in (
            ('"/usr/bin/tracker"', '"tracker"', "must be an absolute path"),
            ('"/usr/bin/tracker", "--stdio"', "", "`command` must"),
            ('"--stdio"', '"a\\u0000b"', "must not hold a null character"),
            ('directory = "/srv"', "", "`directory` is missing"),
            ('"/srv"', '"srv"', "`directory` must be an absolute path"),
            ('["PATH"]', '["AILERON_KEY"]', "none of Aileron's"),
            ('variable = "TRACKER_TOKEN"', "", "`variable` is missing"),
            ('variable = "TRACKER_TOKEN"', "stdin = true", "`stdin` is not a known key"),
            ("everything that it starts", "nobody", "`readable_by` must be one of"),
            ('kind = "api_key"', 'kind = "oauth2"', "must be one of: api_key"),
            ('directory = "/srv"', 'directory = "/srv"\nurl = "https://x.example/mcp"', "is not a known key"),
        ):
            self.assertIn(old, FILE)
            problems = read_file(FILE.replace(old, new).encode(), "tracker.toml").problems
            self.assertIn(problem, " ".join(each.message for each in problems))
            self.assertTrue(all(each.line for each in problems), problems)

    def test_no_hosts(self) -> None:
        """It talks to no host, and no binding may choose where it talks to."""
        about = spec_of().description
        self.assertEqual((about.hosts, about.bindable, about.base_url), ((), False, "file:///usr/bin/tracker"))
