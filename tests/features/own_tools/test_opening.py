"""Sessions open the hosts of their own services, each with its own authority, until the session or daemon ends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.own_tools._recorder import ToolRecorder
from aileron.features.own_tools.opening import OpenedTools, ToolSessions
from aileron.features.own_tools.values import ToolAnswer, ToolService
from aileron.model.audit import Event
from aileron.model.errors import Conflict, StoreUnavailable
from aileron.model.interfaces.store import IAudit
from aileron.model.queries import AuditQuery
from aileron.model.tool_claims import ToolCaller
from aileron.testing import AuditProxy, memory_store
from tests.features.own_tools.test_http import head
from tests.features.own_tools.tls import Net, Served, Tool, WaitingDoor, make_tool

GITHUB = ToolService("github", "builtin://github", frozenset({"api.example", "api.example:8443"}))
TRACKER = ToolService("tracker", "local://me/tracker", frozenset({"tracker.example"}))


class FullAudit(AuditProxy):
    """A record that takes nothing while C{full}."""

    def __init__(self, audit: IAudit) -> None:
        super().__init__(audit)
        self.full = False

    async def append(self, *events: Event) -> None:
        """Store events, or fail."""
        if self.full:
            raise StoreUnavailable("The disk is full.")
        await super().append(*events)


CALLER = ToolCaller(7, 123, "gh pr list")


class OpeningCase(SynchronousTestCase):
    """Two services, and sessions that open them."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(datetime.now(UTC).timestamp())  # OpenSSL looks at the machine's clock
        self.audit = FullAudit(memory_store(self, self.clock).audit)
        self.door = WaitingDoor((GITHUB, TRACKER))
        self._ids = iter(range(10_000))
        self.net = Net()
        self.restart()

    def restart(self) -> None:
        """Begin another life of the daemon."""
        self.recorder = ToolRecorder(self.audit, self.clock, lambda: f"{next(self._ids):026}")
        self.prepared: list[str] = []
        self.tools = ToolSessions(self.door, self.clock, self.recorder, lambda: self.prepared.append("once"))

    def now(self, coroutine: Any) -> Any:
        """Return what a coroutine returns at once."""
        return self.successResultOf(Deferred.fromCoroutine(coroutine))

    def open(self, *names: str, session_id: str = "one") -> OpenedTools:
        """Open services for a session."""
        opened: OpenedTools = self.now(self.tools.open(session_id, names))
        return opened

    def refused(self, *names: str, session_id: str = "one") -> str:
        """Check that services are not opened, and return the reason."""
        opening = Deferred.fromCoroutine(self.tools.open(session_id, names))
        return str(self.failureResultOf(opening, Conflict).value)

    def connect(self, opened: OpenedTools, host: str, session_id: str = "one", name: str = "api.example") -> Tool:
        """Return a tool that has connected to a host of a session."""
        tool, below = make_tool(self.clock, opened.authority.pem, name)

        def serve(transport: Any) -> Any:
            served = self.tools.serve(session_id, host, transport, CALLER)
            assert served is not None
            return served

        self.net.connect(below, Served(serve))
        self.net.run()
        return tool

    def say(self, tool: Tool, data: bytes) -> None:
        """Send something."""
        tool.transport.write(data)
        self.net.run()

    def records(self, type_: str) -> list[Any]:
        """Return the payloads of events, the oldest first."""
        found = self.now(self.audit.list(AuditQuery(type=type_))).items
        return [each.event.payload for each in reversed(found)]


class OpeningTests(OpeningCase):
    """Services that are opened."""

    def test_opened(self) -> None:
        """What was opened is recorded first, and is the same for equal calls."""
        opened = self.open("tracker", "github", "github")
        self.assertIs(opened, self.open("github", "tracker"))
        self.assertEqual(("github", "tracker"), opened.names)
        hosts = ["api.example", "api.example:8443", "tracker.example"]
        self.assertEqual([{"services": ["github", "tracker"], "hosts": hosts}], self.records("own_tools.opened"))
        self.assertEqual((GITHUB,), opened.find_services("api.example"))
        self.assertEqual(["once"], self.prepared)

    def test_not_recorded(self) -> None:
        """What cannot be recorded is not opened."""
        self.audit.full = True
        opening = Deferred.fromCoroutine(self.tools.open("one", ("github",)))
        self.failureResultOf(opening, StoreUnavailable)
        self.assertEqual(self.tools.list_hosts("one"), frozenset())
        self.audit.full = False
        self.open("github")

    def test_others(self) -> None:
        """Who has the launch key neither adds nor changes a service afterwards."""
        self.open("github")
        for names in (("github", "tracker"), ("tracker",)):
            self.assertIn("Launch the agent again", self.refused(*names))
        self.assertEqual("", self.tools.find_basis("one", "tracker.example:443"))
        self.assertIsNone(self.tools.serve("one", "tracker.example:443", self.net, CALLER))  # type: ignore[arg-type]

    def test_hosts(self) -> None:
        """Hosts are opened at their own ports, and no others, such as those above or below them."""
        self.open("github")
        for host in ("api.example:443", "api.example:8443"):
            self.assertEqual("own tools: github", self.tools.find_basis("one", host))
        for host in ("api.example:80", "example:443", "www.api.example:443", "tracker.example:443", ""):
            self.assertEqual("", self.tools.find_basis("one", host))

    def test_other_session(self) -> None:
        """A session opens no host of another one, and trusts no certificate of another one."""
        one, two = self.open("github"), self.open("tracker", session_id="two")
        self.assertEqual("", self.tools.find_basis("two", "api.example:443"))
        self.assertIsNone(self.tools.serve("two", "api.example:443", self.net, CALLER))  # type: ignore[arg-type]
        self.assertRaises(ValueError, two.authority.make_options, "api.example")
        third = self.open("github", session_id="three")
        self.assertNotEqual(one.authority.pem, third.authority.pem)
        tool = self.connect(one, "api.example:443", "three")
        self.assertIsNotNone(tool.reason)

    def test_served(self) -> None:
        """Connections are served over TLS, each with its number, and what cannot be read is recorded."""
        opened = self.open("github")
        self.door.usual = ToolAnswer(200, "OK")
        for host in ("api.example:443", "api.example:8443"):
            tool = self.connect(opened, host)
            self.say(tool, head(host=host))
        self.assertEqual([1, 2], [each.connection for each in self.door.requests])
        self.assertEqual(["api.example", "api.example:8443"], [each.host for each in self.door.requests])
        tool = self.connect(opened, "api.example:443")
        self.say(tool, head(host="tracker.example"))
        (refused,) = self.records("own_tools.refused")
        self.assertEqual("api.example", refused["host"])
        self.assertIn("does not name the host", refused["reason"])

    def test_ended(self) -> None:
        """A session that has ended opens nothing any more."""
        self.open("github")
        self.tools.end("one")
        self.tools.end("one")
        self.assertEqual(self.tools.list_hosts("one"), frozenset())
        self.assertEqual("", self.tools.find_basis("one", "api.example:443"))
        self.assertIsNone(self.tools.serve("one", "api.example:443", self.net, CALLER))  # type: ignore[arg-type]


class RestartTests(OpeningCase):
    """After a restart of the daemon."""

    def setUp(self) -> None:
        super().setUp()
        self.open("github")
        self.restart()

    def test_open(self) -> None:
        """The services are not opened again: the tools in the sandbox trust the authority that is gone."""
        for names in (("github",), ("tracker",)):
            self.assertIn("launch the agent again", self.refused(*names))
        self.open("github", session_id="two")

    def test_refused(self) -> None:
        """A session's connections to the hosts that it had are refused in words; others are not."""
        self.now(self.tools.recall("one"))
        self.assertIn("api.example:443", self.tools.list_hosts("one"))
        for host in ("api.example:443", "api.example:8443"):
            self.assertIn("launch the agent again", self.tools.find_problem("one", host))
            self.assertEqual("", self.tools.find_basis("one", host))
        for session_id, host in (("one", "tracker.example:443"), ("one", "api.example:80"), ("two", "api.example:443")):
            self.now(self.tools.recall(session_id))
            self.assertEqual("", self.tools.find_problem(session_id, host))
        self.tools.end("one")
        self.assertEqual(self.tools.list_hosts("one"), frozenset())

    def test_not_restarted(self) -> None:
        """What was opened since is not refused."""
        self.open("tracker", session_id="two")
        self.now(self.tools.recall("two"))
        self.assertEqual("", self.tools.find_problem("two", "tracker.example:443"))
        self.assertEqual("own tools: tracker", self.tools.find_basis("two", "tracker.example:443"))
