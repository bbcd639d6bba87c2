"""A program that is launched in in-band mode: its variables, and that nothing else of it is changed."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import asdict
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.launch._preview import preview_launch
from aileron.features.launch.agent import Agent
from aileron.features.launch.in_band import in_band_agent
from aileron.features.launch.plan import DaemonFacts
from aileron.features.launch.registration import GatewayAccess, Invocation, McpServer, Registration, Upstream
from aileron.features.launch.routing import STAND_IN_KEY

from .test_launch import LaunchCase

URL, KEY = "http://127.0.0.1:9", "ail_i_secret"
OPENAI, ANTHROPIC = f"{URL}/s/{KEY}/inband/openai/v1", f"{URL}/s/{KEY}/inband/anthropic"
SERVER = McpServer("/opt/bin/aileron-mcp", {"AILERON_TOKEN": "ail_a_secret"})


def upstreams(*, injected: bool = False) -> dict[str, Upstream]:
    """Both providers, where they are by themselves."""
    return {name: Upstream(f"https://api.{name}.com", injected) for name in ("openai", "anthropic")}


def registered(*, injected: bool = False, **environment: str) -> Registration:
    """What comes of a launch of a program."""
    gateway = GatewayAccess(URL, KEY, upstreams(injected=injected))
    return in_band_agent("aider").prepare(Invocation(("--yes",), environment, "/project"))(SERVER, gateway, "/private")


class InBandTests(SynchronousTestCase):
    """The program's registration."""

    def test_addresses(self) -> None:
        """Each variable that names a provider's API leads to in-band mode, and nothing else is set or passed."""
        found = registered(OPENAI_API_KEY="sk-mine")
        addresses = {"OPENAI_BASE_URL": OPENAI, "OPENAI_API_BASE": OPENAI, "ANTHROPIC_BASE_URL": ANTHROPIC}
        self.assertEqual(found.variables, addresses)
        self.assertEqual((found.arguments, found.files), ((), {}))
        (note,) = found.notes
        self.assertIn("reads and changes these requests", note)
        self.assertNotIn(KEY, note)

    def test_bound_key(self) -> None:
        """Where the gateway has a key the program gets a stand-in, unless the user has one, which stays."""
        found = registered(injected=True, OPENAI_API_KEY="sk-mine")
        self.assertEqual(found.variables["ANTHROPIC_API_KEY"], STAND_IN_KEY)
        self.assertNotIn("OPENAI_API_KEY", found.variables)

    def test_sent_elsewhere(self) -> None:
        """A provider that the user sends elsewhere is left alone, and that is said; the other one is not."""
        found = registered(OPENAI_API_BASE="https://other.test/v1", ANTHROPIC_BASE_URL="https://api.anthropic.com/")
        self.assertEqual(found.variables, {"ANTHROPIC_BASE_URL": ANTHROPIC})
        self.assertEqual(len(found.notes), 2)
        self.assertIn("OPENAI_API_BASE sets another address", found.notes[1])
        nothing = registered(OPENAI_BASE_URL="https://a.test", ANTHROPIC_BASE_URL="https://b.test")
        self.assertEqual((nothing.variables, len(nothing.notes)), ({}, 2))

    def test_another_launch(self) -> None:
        """Inside of another launch the addresses of that one are replaced."""
        found = registered(OPENAI_BASE_URL=f"{URL}/s/ail_i_other/inband/openai/v1")
        self.assertEqual(found.variables["OPENAI_BASE_URL"], OPENAI)

    def test_proxy(self) -> None:
        """The user's HTTP proxy is not asked for the daemon."""
        self.assertEqual(registered(HTTP_PROXY="http://proxy.test").variables["NO_PROXY"], "127.0.0.1:9")

    def test_claim(self) -> None:
        """A session is called after the program, whatever path or letters its command has."""
        claims = {"/opt/a b/aider": "aider", "./run me": "run_me", ".x": "x", "...": "program", "ä-1": "ä-1"}
        self.assertEqual({command: in_band_agent(command).claim for command in claims}, claims)
        self.assertEqual(len(in_band_agent("a" * 100).claim), 64)
        self.assertTrue(in_band_agent("opencode").full_screen(()))
        self.assertFalse(in_band_agent("aider").full_screen(()))


class LaunchTests(LaunchCase):
    """The whole launch."""

    def started(self, agent: Agent) -> Mapping[str, str]:
        """The environment of a launch's process, once it got its session."""
        opened = {"id": "S", "token": "ail_a_secret", "gateway_key": "ail_g_secret", "in_band_key": KEY}
        launching = self.launch_agent(agent)
        self.site.answer(201, opened)
        self.assertNoResult(launching)
        return {name.decode(): text.decode() for name, text in self.machine.spawned[0][2].items()}

    def launch_agent(self, agent: Agent) -> Deferred[int]:
        """Launch it with nothing of the user's but a key."""
        invocation = Invocation(("hi",), {"PATH": str(self.bin), "OPENAI_API_KEY": "sk-mine"}, "/project")
        launching = Deferred.fromCoroutine(self.launcher().launch(agent, invocation))
        self.addCleanup(self.abandon, launching)
        self.machine.advance(0)
        return launching

    def test_environment(self) -> None:
        """The session is opened with an in-band key; the program gets this, no other secret of it, and its own key."""
        self.upstreams = upstreams()
        environment = self.started(in_band_agent("opencode"))
        asked = self.site.asked[0]
        self.assertEqual(asked.body, {"agent": "opencode", "working_dir": "/project", "in_band": True})
        self.assertEqual(environment["OPENAI_BASE_URL"], OPENAI)
        self.assertEqual(environment["OPENAI_API_KEY"], "sk-mine")
        for secret in ("ail_a_secret", "ail_g_secret", "AILERON_"):
            self.assertNotIn(secret, str(environment))

    def test_older_daemon(self) -> None:
        """A daemon that gives no such key starts nothing."""
        launching = self.launch_agent(in_band_agent("opencode"))
        self.site.answer(201, {"id": "S", "token": "ail_a_secret", "gateway_key": "ail_g_secret"})
        self.failureResultOf(launching)
        self.assertEqual(self.machine.spawned, [])

    def test_preview(self) -> None:
        """A launch that is only shown has a stand-in for the key."""
        facts = DaemonFacts(URL, "http://localhost:10", "ail_l_key", upstreams())
        invocation = Invocation((), {"PATH": str(self.bin)}, "/project")
        found = preview_launch(in_band_agent("opencode"), invocation, facts, str(self.bin / "python"))
        self.assertIn("<the session's in-band key>", found.added["ANTHROPIC_BASE_URL"])
        self.assertNotIn("ail_", str(asdict(found)))
