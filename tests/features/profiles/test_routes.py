"""Profiles behind the sites: what a session is given, what it lists, and what it may call."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.yaml_keys import NotConfig, parse_yaml, read_keys
from aileron.features.profiles.running import ProfileFilter, RunningProfiles
from aileron.features.profiles.settings import KEYS
from aileron.features.profiles.values import ProfileSettings
from aileron.model.audit import Record
from aileron.model.queries import AuditQuery
from aileron.model.sessions import ActionSelection
from aileron.testing import scripted_offer
from tests.api.case import LAUNCH_KEY, ApiCase, running
from tests.web.case import WebCase, read

CONFIG = """
profiles:
  reader:
    allow: ["look-*"]
    agents: [claude]
  all: {}
"""


def settings(text: str) -> ProfileSettings:
    """The profiles of a configuration."""
    node = parse_yaml(text)
    assert node is not None
    found: ProfileSettings = read_keys(node, "", KEYS)["profiles"]
    return found


class SettingsTests(SynchronousTestCase):
    """The key C{profiles}."""

    def test_read(self) -> None:
        """Profiles keep their order, selectors, agents and directories."""
        found = settings("profiles: {b: {allow: [x], deny: ['tag:y']}, a: {agents: ['c*'], projects: [/work]}}")
        self.assertEqual(list(found.profiles), ["b", "a"])
        self.assertEqual(
            (found.profiles["b"].selection.allow, found.profiles["b"].selection.deny), (("x",), ("tag:y",))
        )
        self.assertEqual((found.profiles["a"].agents, found.profiles["a"].projects), (("c*",), ("/work",)))

    def test_refused(self) -> None:
        """What is not understood is refused with its line."""
        for text in (
            "profiles: [a]",
            "profiles: {A: {}}",
            "profiles: {a: {allow: x}}",
            "profiles: {a: {allow: ['effect:all']}}",
            "profiles: {a: {allow: ['tag:']}}",
            "profiles: {a: {projects: [work]}}",
            "profiles: {a: {tools: []}}",
        ):
            self.assertRaises(NotConfig, settings, text)


class RouteTests(ApiCase):
    """A daemon with two profiles, one of which is claude's."""

    def setUp(self) -> None:
        super().setUp()
        profiles = settings(CONFIG)
        self.filters.add(ProfileFilter(profiles))
        self.build(features=running(RunningProfiles(profiles)))

    def open(self, **claims: Any) -> Any:
        """The answer to a request to open a session."""
        return self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, {"agent": "codex", **claims})

    def records(self, type_: str) -> list[Record]:
        """The records of that type."""
        page = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery(limit=100))))
        return [each for each in page.items if each.event.type == type_]

    def actions(self, token: str) -> list[str]:
        """The names of the actions that a session lists."""
        return [each["name"] for each in self.agents.ask("GET", "/v1/actions", token).json["items"]]

    def test_named(self) -> None:
        """A session has the profile that it names; its list, an action's page and a call agree on what it may use."""
        token = self.open(profile="reader").json["token"]
        self.assertEqual(self.actions(token), ["look-up"])
        self.assertEqual(self.agents.ask("GET", "/v1/actions/look-up", token).status, 200)
        self.assertEqual(self.agents.ask("GET", "/v1/actions/ship-update", token).status, 403)
        session = self.agents.ask("GET", "/v1/sessions", token).json["items"][0]
        self.assertEqual((session["profile"], session["selection"]), ("reader", None))
        (record,) = self.records("session.started")
        self.assertEqual(record.event.payload["profile"], "reader")

    def test_default(self) -> None:
        """Without a name the profile of the agent applies; the project's selection takes more away."""
        token = self.open(agent="claude").json["token"]
        self.assertEqual(self.actions(token), ["look-up"])
        token = self.open(selection={"deny": ["look-up"]}).json["token"]
        self.assertEqual(self.actions(token), ["ship-update"])
        self.assertEqual(self.actions(self.open().json["token"]), ["look-up", "ship-update"])

    def test_refused(self) -> None:
        """An unknown profile and what is no selector open no session."""
        wrong: list[dict[str, Any]] = [{"profile": "none"}, {"profile": ""}, {"selection": {"allow": ["a b"]}}]
        for claims in (*wrong, {"selection": []}):
            self.assertEqual(self.open(**claims).status, 400, claims)

    def test_preview(self) -> None:
        """What a session would have is told without opening one."""
        body = {"agent": "claude", "working_dir": "/work"}
        heard = self.agents.ask("POST", "/v1/profiles/preview", LAUNCH_KEY, body)
        self.assertEqual(heard.json, {"profile": "reader", "actions": ["look-up"], "hidden": 1})
        self.assertEqual(self.records("session.started"), [])

    def test_list(self) -> None:
        """The operator sees each profile with the actions that it allows now."""
        items = self.operator.ask("GET", "/v1/profiles", self.operator_token()).json["items"]
        found = [(each["name"], each["actions"]) for each in items]
        self.assertEqual(found, [("reader", ["look-up"]), ("all", ["look-up", "ship-update"])])


class PageTests(WebCase):
    """The page of a session."""

    def test_page(self) -> None:
        """A restricted session's page shows each action with whether it may be used."""
        self.runner.offer(scripted_offer(), scripted_offer("look-up", gated=False))
        profiles = settings(CONFIG)
        self.filters.add(ProfileFilter(profiles))
        self.build(features=running(RunningProfiles(profiles)))
        self.agent("session-1")
        self.assertNotIn("Actions that it may use", self.fragment("/sessions/session-1").text)
        self.agent("session-2", profile="reader", selection=ActionSelection(deny=("tag:x",)))
        text = read(self.fragment("/sessions/session-2").text).text
        self.assertIn("1 of 2 actions. Profile: reader. Restricted further by .aileron.toml", text)
        self.assertIn("look-upYesship-updateNo", text)
