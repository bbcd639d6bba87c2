"""The route of own tools: the launch key opens services for a live session, once, and an agent's token opens none."""

from __future__ import annotations

from typing import Any

from cryptography import x509

from aileron.features.egress._file import EgressFile
from aileron.features.egress._sessions import EgressSessions
from aileron.features.egress.running import RunningEgress
from aileron.features.own_tools._reads import SessionReads
from aileron.features.own_tools._recorder import ToolRecorder
from aileron.features.own_tools._writes import Writes
from aileron.features.own_tools.opening import OpenedTools, ToolSessions
from aileron.features.own_tools.running import RunningOwnTools
from aileron.features.own_tools.settings import OwnToolsSettings
from aileron.features.own_tools.values import ToolAnswer, ToolRequest, ToolService
from aileron.model.errors import BindingRequired, NotFound
from aileron.testing import MemoryOperatorLimits, MemoryTrust
from tests.api.case import LAUNCH_KEY, ApiCase, Heard, running

GITHUB = ToolService(
    "github",
    "builtin://github",
    frozenset({"uploads.example", "api.example", "api.example:8443"}),
    {"GH_TOKEN": "none"},
)
TRACKER = ToolService("tracker", "local://me/tracker", frozenset({"tracker.example"}), {"TRACKER_TOKEN": "none"})


class ScriptedDoor:
    """A door to two services, one more that lacks a credential, and no request."""

    def find_services(self, names: tuple[str, ...]) -> tuple[ToolService, ...]:
        """Return those of these names."""
        if "unbound" in names:
            raise BindingRequired("No credential is bound to it.")
        known = {"github": GITHUB, "tracker": TRACKER}
        if not known.keys() >= set(names):
            raise NotFound("There is no such service.")
        return tuple(known[name] for name in names)

    async def handle(self, request: ToolRequest) -> ToolAnswer:
        """Answer nothing."""
        raise AssertionError(request)


class OwnToolsCase(ApiCase):
    """A daemon with own tools, and a session."""

    def setUp(self) -> None:
        super().setUp()
        self.restart_tools()
        self.session = self.open_session()

    def restart_tools(self, kind: type[ToolSessions] = ToolSessions) -> None:
        """Begin another life of own tools and of the proxy."""
        recorder = ToolRecorder(self.store.audit, self.clock, self.fresh_id)
        self.tools = kind(ScriptedDoor(), self.clock, recorder)
        nothing: Any = None
        reads, writes = SessionReads(nothing), Writes(nothing, nothing, nothing, self.clock, "", 25)
        egress = EgressSessions(
            file=EgressFile(self.state_directory.root / "egress.toml", MemoryTrust(self.vault)),
            trust=self.runner,
            audit=self.store.audit,
            operator_limits=MemoryOperatorLimits(self.vault),
            clock=self.clock,
            ids=self.fresh_id,
            listen=lambda: 3128,
        )
        egress.register_opener(self.tools)
        settings = OwnToolsSettings(services=("github",), projects=("/home/me/shop",))
        own_tools = RunningOwnTools(self.tools, recorder, reads, writes, nothing, settings)
        self.build(features=running(RunningEgress(egress), own_tools))

    def configured(self, directory: str, token: str = LAUNCH_KEY) -> Heard:
        """Ask what is configured for a session in a directory."""
        opened = self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, {"agent": "pi", "working_dir": directory})
        return self.agents.ask("GET", f"/v1/sessions/{opened.json['id']}/own-tools", token)

    def open(self, *services: str, token: str = LAUNCH_KEY, session_id: str | None = None) -> Heard:
        """Open services."""
        path = f"/v1/sessions/{session_id or self.session['id']}/own-tools"
        return self.agents.ask("POST", path, token, {"services": list(services)})

    def dial(self, *words: str) -> Heard:
        """Ask for a connection to the proxy."""
        path = f"/v1/sessions/{self.session['id']}/egress"
        return self.agents.ask("POST", path, LAUNCH_KEY, {"allow": list(words)})

    def end(self) -> None:
        """End the session."""
        self.agents.ask("POST", f"/v1/sessions/{self.session['id']}/end", self.session["token"], {})


class OpenTests(OwnToolsCase):
    """What launchers are answered."""

    def test_configured(self) -> None:
        """A launcher reads which services are configured for the session's directory; an agent cannot."""
        for directory, services in (("/home/me/shop/x", ["github"]), ("/home/me", [])):
            self.assertEqual({"services": services}, self.configured(directory).json)
        self.assertIn(self.configured("/home/me/shop", self.agent_token()).status, (401, 403))
        path = "/v1/sessions/nobody/own-tools"
        self.assertEqual(404, self.agents.ask("GET", path, LAUNCH_KEY).status)

    def test_open(self) -> None:
        """The launch key opens services; the answer has what tools need, and an equal call gets the same."""
        first, second = self.open("github", "tracker"), self.open("tracker", "github")
        self.assertEqual((200, 200), (first.status, second.status))
        self.assertEqual(first.json, second.json)
        found = first.json
        x509.load_pem_x509_certificate(found.pop("certificate").encode())
        expected = {
            "hosts": ["api.example", "api.example:8443", "tracker.example", "uploads.example"],
            "services": [
                {"name": "github", "connector": "builtin://github"},
                {"name": "tracker", "connector": "local://me/tracker"},
            ],
            "variables": {"GH_TOKEN": "none", "TRACKER_TOKEN": "none"},
        }
        self.assertEqual(expected, found)
        self.assertEqual(["own_tools.opened"], [each for each in self.events() if each.startswith("own_tools")])
        self.assertEqual(200, self.dial().status)

    def test_refused(self) -> None:
        """Other services, unknown or unbound ones, none, and other tokens are refused, each by its kind."""
        kinds = {
            "not_found": ("nothing",),
            "binding_required": ("github", "unbound"),
            "invalid_request": (),
        }
        for kind, services in kinds.items():
            self.assertEqual(kind, self.open(*services).kind)
        self.assertEqual(403, self.open("github", token=self.session["token"]).status)
        self.assertEqual(404, self.open("github", session_id="nobody").status)
        self.assertEqual(400, self.dial().status, "nothing was opened")
        self.open("github")
        self.assertEqual((409, "conflict"), (self.open("github", "tracker").status, self.open("tracker").kind))

    def test_ended(self) -> None:
        """A session that has ended is given nothing, and what it had is gone."""
        self.open("github")
        self.end()
        self.assertEqual(self.tools.list_hosts(self.session["id"]), frozenset())
        self.assertEqual(404, self.open("github").status)
        self.build(features=running())
        self.assertEqual(404, self.open("github").status)

    def test_ended_meanwhile(self) -> None:
        """If a session ends while its services are opened, they are closed again."""
        end = self.end

        class EndsMeanwhile(ToolSessions):
            async def open(self, session_id: str, names: tuple[str, ...]) -> OpenedTools:
                end()
                return await super().open(session_id, names)

        self.restart_tools(EndsMeanwhile)
        self.assertEqual(404, self.open("github").status)
        self.assertEqual(self.tools.list_hosts(self.session["id"]), frozenset())

    def test_restarted(self) -> None:
        """After a restart of the daemon, services are not opened again, and connections are refused in words."""
        self.open("github")
        self.assertEqual(200, self.dial("api.example").status)
        self.restart_tools()
        self.assertEqual(200, self.dial("api.example").status)
        again = self.open("github")
        self.assertEqual((409, "conflict"), (again.status, again.kind))
        self.assertIn("launch the agent again", again.json["error"]["message"])
