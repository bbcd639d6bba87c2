"""The feature of MCP over HTTP: its settings, and when it starts."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.life import Life
from aileron.daemon._config import read_config
from aileron.features import FeatureSet, ListeningSites
from aileron.features.core import Core
from aileron.features.mcp_http import FEATURE
from aileron.features.mcp_http.running import RunningMcp
from aileron.features.mcp_http.values import PATH, McpSettings
from aileron.model.interfaces.services import IAgentRoutes
from tests.daemon.test_config import ConfigCase

_LIGHT = """
import sys
from twisted.internet.task import Clock
from aileron.features import FeatureSet
from aileron.features.mcp_http import FEATURE
from aileron.daemon._config import read_config

class Core:
    settings = read_config("mcp: {http: false}", FeatureSet()).of_features

for settings in ({}, Core.settings):
    Core.settings = settings
    try:
        FEATURE.start(Core).send(None)
    except StopIteration as ended:
        assert ended.value is None, ended.value
heavy = {name for name in sys.modules if name == "mcp" or name.startswith("aileron.features.mcp_http._")}
sys.exit(f"loads {heavy}" if heavy else 0)
"""


class SettingsTests(ConfigCase):
    """The key C{mcp}."""

    def test_keys(self) -> None:
        """MCP over HTTP is off unless it is said; each of its numbers has bounds."""
        self.assertEqual(read_config("", FeatureSet()).of_features, {})
        found = read_config("mcp: {http: true, sessions: 3, idle_seconds: 60, listed_actions: 7}\n", FeatureSet())
        self.assertEqual(
            found.of_features["mcp"], McpSettings(http=True, sessions=3, idle_seconds=60, listed_actions=7)
        )
        self.refused("mcp: true\n", 1, "mapping")
        bad = ("http: yes please", "sessions: 0", "sessions: 1001", "idle_seconds: 86401", "listed_actions: 1001")
        for text in bad:
            self.refused(f"mcp:\n  {text}\n", 2, f"mcp.{text.partition(':')[0]}")
        self.refused("mcp:\n  port: 1\n", 2, "unknown key")


class ScriptedEndpoint:
    """Notes what is done with it."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def open(self, routes: IAgentRoutes) -> Deferred[None]:
        """Note the routes."""
        self.done.append(routes)
        return succeed(None)

    def close(self) -> Deferred[None]:
        """Note the end."""
        self.done.append("closed")
        return succeed(None)

    def ended(self, session_id: str) -> None:
        """Note the session."""
        self.done.append(session_id)


class StartTests(SynchronousTestCase):
    """When the endpoint runs."""

    def start(self, **settings: Any) -> Any:
        """Return what starts with these settings."""
        process = SimpleNamespace(reactor=Clock(), life=Life())
        core = SimpleNamespace(settings={"mcp": McpSettings(**settings)} if settings else {}, process=process)
        return self.successResultOf(Deferred.fromCoroutine(FEATURE.start(cast("Core", core))))

    def test_only_if_wanted(self) -> None:
        """The endpoint is built only if the settings say so."""
        self.assertIsNone(self.start())
        self.assertIsNone(self.start(http=False))
        running = self.start(http=True)
        self.assertEqual([*running.resources], [PATH])

    def test_light(self) -> None:
        """If MCP is not served over HTTP, the SDK is not loaded."""
        found = subprocess.run([sys.executable, "-c", _LIGHT], capture_output=True, text=True, check=False)
        self.assertEqual((found.returncode, found.stderr), (0, ""))

    def test_life(self) -> None:
        """The endpoint opens once both sites listen, hears of sessions that end, and closes when the daemon ends."""
        endpoint, life, routes = ScriptedEndpoint(), Life(), cast("IAgentRoutes", object())
        running = RunningMcp(cast("Any", endpoint), life)
        self.successResultOf(Deferred.fromCoroutine(running.serve(ListeningSites(routes, (1, 2)))))
        running.session_ended("S1")
        self.assertEqual(endpoint.done, [routes, "S1"])
        self.successResultOf(Deferred.fromCoroutine(life.end()))
        self.assertEqual(endpoint.done, [routes, "S1", "closed"])

    def test_off(self) -> None:
        """With the feature off its key may stay in the file."""
        read = read_config("features: {mcp_http: off}\nmcp: {http: true}\n", FeatureSet())
        self.assertIn("mcp_http", FeatureSet(switches=read.features).off)
