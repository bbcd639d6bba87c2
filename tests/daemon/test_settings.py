"""What the daemon is told by its environment and command line."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.daemon._config import Config, read_config
from aileron.daemon._settings import DaemonSettings, GatewayEnvironment
from aileron.errors import InvalidRequest
from aileron.home import Home
from aileron.values import ANTHROPIC, OPENAI, GatewaySettings, PendingLimits, UpstreamSource

_SECRET = "http://user:canary@proxy.test:3128"


class EnvironmentTests(SynchronousTestCase):
    """Base URLs and proxies by variables."""

    def settings(self, environ: dict[str, str], config: str = "") -> DaemonSettings:
        """What a daemon with this environment and configuration is told."""
        given = DaemonSettings(Home(Path("/h")), None, environment=GatewayEnvironment.read(environ))
        return given.over(read_config(config))

    def test_nothing(self) -> None:
        """An environment that says nothing, or says it empty, leaves the gateway as it is."""
        self.assertEqual(self.settings({"PATH": "p"}).config.gateway, GatewaySettings())
        self.assertEqual(
            self.settings({"AILERON_OPENAI_BASE_URL": "", "HTTPS_PROXY": ""}).config.gateway, GatewaySettings()
        )

    def test_base_urls(self) -> None:
        """A base URL by variable wins over the configuration; the rest of what that says of the provider stays."""
        config = (
            "gateway: {silence_seconds: 5, providers: {openai: "
            '{base_url: "https://a.test", prefix: /o, credential: "vault:api_key/o/d"}}}'
        )
        gateway = self.settings({"AILERON_OPENAI_BASE_URL": "http://127.0.0.1:9/"}, config).config.gateway
        openai, anthropic, _ = gateway.providers
        self.assertEqual(
            (openai.base_url, openai.prefix, openai.credential, openai.source),
            ("http://127.0.0.1:9", "/o", "api_key/o/d", UpstreamSource.ENVIRONMENT),
        )
        self.assertEqual((anthropic, gateway.silence_seconds), (ANTHROPIC, 5.0))
        moved = self.settings({"AILERON_ANTHROPIC_BASE_URL": "https://b.test/x"}).config.gateway.providers
        self.assertEqual((moved[0], moved[1].base_url), (OPENAI, "https://b.test/x"))

    def test_bad_base_url(self) -> None:
        """A bad one is refused by its variable's name, whatever the configuration says, and not repeated."""
        for text in ("http://evil.test", "https://user:canary@x.test", "canary"):
            error = self.assertRaises(InvalidRequest, GatewayEnvironment.read, {"AILERON_OPENAI_BASE_URL": text})
            self.assertIn("AILERON_OPENAI_BASE_URL must ", error.message)
            self.assertNotIn("canary", error.message)

    def test_proxies(self) -> None:
        """Proxies go by lower-case names; what is written so goes first, and says none if it is empty."""
        environ = {"HTTPS_PROXY": _SECRET, "NO_PROXY": "a.test", "ALL_PROXY": "http://b.test", "http_proxy": ""}
        gateway = self.settings({**environ, "HTTP_PROXY": "http://c.test", "no_proxy": "*"}).config.gateway
        self.assertEqual(
            gateway.environment, (("https_proxy", _SECRET), ("all_proxy", "http://b.test"), ("no_proxy", "*"))
        )

    def test_repr(self) -> None:
        """No representation shows a proxy's password."""
        settings = self.settings({"HTTPS_PROXY": _SECRET})
        for each in (settings, settings.environment, settings.config.gateway):
            self.assertNotIn("canary", repr(each))

    def test_command_line(self) -> None:
        """What the command line says wins; where it says nothing the file does, and where neither does, the product."""
        given = DaemonSettings(Home(Path("/h")), None, listens={"listen": "tcp:1"}, pending={"per_home": 3})
        said = "{listen: 'tcp:2', operator_listen: 'tcp:3', hosts: [box], pending: {per_home: 4, per_action: 5}}"
        limits = PendingLimits(PendingLimits().per_session, 3, 5)
        self.assertEqual(given.over(read_config(said)).config, Config("tcp:1", "tcp:3", ("box",), pending=limits))
