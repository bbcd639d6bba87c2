"""The sandbox of a launch: its services are opened, its tools trust their authority, and no real credential enters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import Daemon, DaemonUnreachable
from aileron.features.launch._enclosing import LaunchSandbox
from aileron.features.launch._services import SessionServices
from aileron.features.launch.access import SandboxAccess
from aileron.features.launch.plan import LaunchPlan
from aileron.features.own_tools.trust import PLACE
from aileron.features.sandbox.sandbox import ProcessPlan
from aileron.features.sandbox.way_out import WayOut
from aileron.model.tool_claims import ToolCaller
from tests.features.gateway.certificates import Authority

URL = "http://127.0.0.1:9"
OPENED: Mapping[str, Any] = {
    "services": [{"name": "github", "connector": "builtin://github"}],
    "certificate": Authority.made().pem,
    "hosts": ["api.github.com"],
    "variables": {"GH_TOKEN": "aileron-placeholder", "GITHUB_TOKEN": "aileron-placeholder"},
}


@define
class RecordingSandbox:
    """A sandbox that notes how it was made."""

    process: ProcessPlan | None = None
    way_out: WayOut | None = None
    given: list[object] = field(factory=list)
    contents: Mapping[str, bytes] = field(factory=dict)

    @contextmanager
    def around(
        self, plan: ProcessPlan, project: object, url: str, way_out: WayOut | None = None
    ) -> Iterator[ProcessPlan]:
        """Note it."""
        self.process, self.way_out = plan, way_out
        self.contents = {ours: Path(ours).read_bytes() for ours in plan.replaced.values() if Path(ours).is_file()}
        self.given += [project, url]
        yield evolve(plan, argv=("bwrap", *plan.argv))


@define
class AnsweringDaemon:
    """Answers each route."""

    asked: list[tuple[tuple[str, ...], Mapping[str, Any]]] = field(factory=list)
    variables: Mapping[str, str] = OPENED["variables"]

    configured: tuple[str, ...] = ()

    async def get(self, *path: str) -> Mapping[str, Any]:
        """Answer with what is configured."""
        self.asked.append((path, {}))
        return {"services": list(self.configured)}

    async def post(self, *path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer."""
        self.asked.append((path, body))
        return (
            {**OPENED, "variables": self.variables} if path[-1] == "own-tools" else {"port": 4711, "ticket": "a-ticket"}
        )


class LaunchSandboxTests(SynchronousTestCase):
    """L{LaunchSandbox}."""

    def setUp(self) -> None:
        self.sandbox, self.daemon, self.said = RecordingSandbox(), AnsweringDaemon(), list[str]()
        self.is_running = True
        self.environment = {"GH_TOKEN": "ghp_canary", "HOME": "/home/me"}
        self.plan = LaunchPlan(("/usr/bin/agent",), {**self.environment, "OURS": "1"}, directory="/tmp/x")

    def enclosure(self, access: SandboxAccess) -> LaunchSandbox:
        """Make it."""
        sandbox: Any = self.sandbox
        project: Any = "the project"

        def find_daemon() -> Daemon | None:
            daemon: Any = self.daemon
            return daemon if self.is_running else None

        services = SessionServices(access, self.environment, find_daemon, self.said.append)
        return LaunchSandbox(sandbox, project, services, self.environment, self.said.append)

    def enclosed(self, access: SandboxAccess) -> ProcessPlan:
        """Open what there is to be reached, put the plan into the sandbox, and return the plan of its process."""
        enclosed = self.successResultOf(Deferred.fromCoroutine(self.enclosure(access).open("S1")))
        with enclosed(self.plan, URL) as runs:
            self.assertEqual(runs.argv, ("bwrap", "/usr/bin/agent"))
        process = self.sandbox.process
        assert process is not None
        self.assertEqual(runs.environment, process.environment)
        self.assertEqual((self.sandbox.given[-2:], process.directories), (["the project", URL], ("/tmp/x",)))
        return process

    def test_plain(self) -> None:
        """Without hosts and services the sandbox has no way out, and the daemon is asked for nothing."""
        process = self.enclosed(SandboxAccess())
        self.assertEqual((process.replaced, process.environment), ({}, self.plan.environment))
        self.assertEqual((self.sandbox.way_out, self.daemon.asked, self.said), (None, [], []))

    def test_own_tools(self) -> None:
        """Placeholders replace the user's credentials, and programs trust the authority whose files are mounted."""
        process = self.enclosed(SandboxAccess(services=("github",)))
        self.assertEqual(self.daemon.asked, [(("sessions", "S1", "own-tools"), {"services": ["github"]})])
        environment = process.environment
        self.assertEqual(
            [environment[name] for name in ("GH_TOKEN", "GITHUB_TOKEN", "OURS")], ["aileron-placeholder"] * 2 + ["1"]
        )
        self.assertNotIn("ghp_canary", str(environment))
        self.assertTrue(environment["SSL_CERT_FILE"].startswith(PLACE))
        self.assertIn(PLACE, process.replaced)
        (line,) = self.said
        self.assertIn("github. Requests to api.github.com go through Aileron", line)
        self.assertIn("your own GH_TOKEN stays outside", line)
        self.assertNotIn("canary", line)

    def test_configured(self) -> None:
        """Where no service is named, those that the daemon has from its configuration are opened, if any."""
        asked = ("sessions", "S1", "own-tools")
        self.assertEqual(self.enclosed(SandboxAccess(configured=True)).replaced, {})
        self.assertEqual(self.daemon.asked, [(asked, {})])
        self.daemon.configured = ("github",)
        self.enclosed(SandboxAccess(configured=True))
        self.assertEqual(self.daemon.asked[1:], [(asked, {}), (asked, {"services": ["github"]})])
        del self.daemon.asked[:]
        self.enclosed(SandboxAccess())
        self.assertEqual(self.daemon.asked, [])

    def test_logins(self) -> None:
        """The file in which gh has stored a login is empty in a sandbox that has a placeholder for it."""
        home = Path(self.mktemp()).resolve()
        stored = home / ".config" / "gh" / "hosts.yml"
        stored.parent.mkdir(parents=True)
        self.environment["HOME"] = str(home)
        stored.write_text("github.com: {oauth_token: gho_canary}")
        process = self.enclosed(SandboxAccess(services=("github",)))
        hidden = process.replaced[str(stored)]
        self.assertEqual(self.sandbox.contents[hidden], b"")
        self.assertFalse(Path(hidden).exists())

    def test_npm(self) -> None:
        """npm is given a file with its placeholder."""
        self.daemon.variables = {"NPM_TOKEN": "aileron-placeholder"}
        process = self.enclosed(SandboxAccess(services=("github",)))
        npmrc = process.replaced[process.environment["NPM_CONFIG_USERCONFIG"]]
        self.assertEqual(self.sandbox.contents[npmrc], b"//api.github.com/:_authToken=aileron-placeholder\n")

    def test_way_out(self) -> None:
        """Connections are asked for with the hosts of the option; those of the services are opened already."""
        self.enclosed(SandboxAccess(("npm",), ("github",)))
        way_out = self.sandbox.way_out
        assert way_out is not None
        self.assertEqual(way_out.words, ("npm", "api.github.com (own tools)"))
        port, _ = self.successResultOf(Deferred.fromCoroutine(self.dial(way_out)))
        caller = {"process": 7, "started": 123, "command": "gh pr list"}
        body = {"allow": ["npm"], "caller": caller}
        self.assertEqual((port, self.daemon.asked[-1]), (4711, (("sessions", "S1", "egress"), body)))
        self.assertTrue(way_out.names_callers)
        self.enclosed(SandboxAccess(("npm",)))
        assert self.sandbox.way_out is not None
        self.assertFalse(self.sandbox.way_out.names_callers)

    async def dial(self, way_out: WayOut) -> tuple[int, bytes]:
        """Ask for one connection."""
        return await way_out.dial(ToolCaller(7, 123, "gh pr list"))

    def test_no_daemon(self) -> None:
        """Without a daemon nothing is opened."""
        self.is_running = False
        opening = Deferred.fromCoroutine(self.enclosure(SandboxAccess(services=("github",))).open("S1"))
        self.failureResultOf(opening, DaemonUnreachable)
