"""A command without a sandbox: the variables that lead its requests to the daemon, and who may use its proxy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from aileron.api.channels.peer import Socket
from aileron.client import Daemon
from aileron.features.launch._services import SessionServices
from aileron.features.launch._tool_command import ToolCommand, command_agent, find_own_process
from aileron.features.launch.access import SandboxAccess
from aileron.features.launch.plan import LaunchPlan
from aileron.model.errors import Forbidden, InvalidRequest
from aileron.model.tool_claims import NO_CALLER

from .test_enclosing import URL, AnsweringDaemon


class ToolCommandTests(SynchronousTestCase):
    """L{ToolCommand}."""

    def setUp(self) -> None:
        self.daemon, self.said = AnsweringDaemon(), list[str]()
        self.reactor = MemoryReactorClock()
        self.environment = {"GH_TOKEN": "ghp_canary", "NO_PROXY": "api.github.com", "http_proxy": "http://proxy.test"}

    def find_daemon(self) -> Daemon:
        """Find it."""
        return cast("Daemon", self.daemon)

    def command(self, *names: str) -> ToolCommand:
        """Make it, for these services."""
        services = SessionServices(SandboxAccess(services=names), self.environment, self.find_daemon, self.said.append)
        return ToolCommand(self.reactor, services, self.environment, self.said.append)

    def test_led(self) -> None:
        """Its variables name the proxy, the files of the authority, and placeholders; afterwards nothing is left."""
        lead = self.successResultOf(Deferred.fromCoroutine(self.command("github").open("S1")))
        with lead(LaunchPlan(("/usr/bin/gh", "pr"), {**self.environment, "OURS": "1"}), URL) as runs:
            ((port, _factory, _backlog, interface),) = self.reactor.tcpServers
            self.assertEqual((port, interface), (0, "127.0.0.1"))
            environment = runs.environment
            bundle = Path(environment["SSL_CERT_FILE"])
            self.assertIn("BEGIN CERTIFICATE", bundle.read_text())
            self.assertEqual(environment["NODE_EXTRA_CA_CERTS"], str(bundle.with_name("added.pem")))
        self.assertEqual(runs.argv, ("/usr/bin/gh", "pr"))
        self.assertFalse(bundle.exists())
        self.assertTrue(environment["HTTPS_PROXY"].startswith("http://127.0.0.1:"))
        self.assertEqual(environment["http_proxy"], "http://proxy.test")
        self.assertEqual([environment[name] for name in ("GH_TOKEN", "OURS")], ["aileron-placeholder", "1"])
        self.assertNotIn("github.com", environment["NO_PROXY"])
        self.assertNotIn("ghp_canary", str(environment))
        self.assertIn("For the command GH_TOKEN, GITHUB_TOKEN contain placeholders", self.said[0])

    def test_nothing(self) -> None:
        """Without a service nothing is started."""
        self.failureResultOf(Deferred.fromCoroutine(self.command().open("S1")), InvalidRequest)

    def test_agent(self) -> None:
        """All commands have one name in sessions, and nothing draws on the whole terminal."""
        agent = command_agent("/opt/x/gh")
        self.assertEqual((agent.claim, agent.name, agent.full_screen(())), ("command", "/opt/x/gh", False))


class OwnProcessTests(SynchronousTestCase):
    """L{find_own_process}."""

    def test_other_user(self) -> None:
        """A connection of another user, and one that is not known, are refused."""
        ends = ("127.0.0.1", 5), ("127.0.0.1", 6)
        for found in (Socket(os.getuid() + 1, 7), None):
            self.assertRaises(Forbidden, find_own_process, *ends, lambda _client, _server, found=found: found)
        own = find_own_process(*ends, lambda _client, _server: Socket(os.getuid(), 7))
        self.assertEqual(own, NO_CALLER)
