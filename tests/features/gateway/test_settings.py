"""The gateway's part of the configuration, and what the environment and the command line say over it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.yaml_keys import NotConfig
from aileron.daemon._config import Config, read_config
from aileron.daemon._settings import DaemonSettings
from aileron.features import FeatureSet
from aileron.features.gateway.settings import TAKEN, GatewayEnvironment
from aileron.features.gateway.values import (
    ANTHROPIC,
    CHATGPT,
    OPENAI,
    Dialect,
    GatewaySettings,
    Provider,
    UpstreamSource,
)
from aileron.home.paths import Home
from aileron.model.authority import PendingLimits
from aileron.model.errors import InvalidRequest
from tests.daemon.test_config import ConfigCase

_WHOLE = """\
gateway:
  silence_seconds: 60
  accounting: false
  max_body_bytes: 33554432
  providers:
    openai: {base_url: "https://llm.example/v1x/", credential: "vault:api_key/openai/default"}
    groq: {base_url: "https://api.groq.com/openai"}
    claude-proxy: {base_url: "http://127.0.0.1:4000", prefix: /local/claude, dialect: anthropic}
metrics:
  token_sha256: %s
"""


def _certificate() -> tuple[str, str]:
    """A certificate and its key, in PEM."""
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a root of the company's")])
    begins = datetime(2026, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begins, begins + timedelta(days=1)).sign(key, None)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made.public_bytes(Encoding.PEM).decode(), secret.decode()


class GatewayCase(ConfigCase):
    """Reads configurations."""

    def read(self, text: str) -> GatewaySettings:
        """What a configuration says of the gateway."""
        found: GatewaySettings = read_config(text, FeatureSet()).of_features.get("gateway", GatewaySettings())
        return found


class GatewayTests(GatewayCase):
    """What may be said of the gateway as a whole."""

    def test_whole(self) -> None:
        """Every key is read; what a built-in provider is not told stays as it is, and so does all unsaid."""
        found = read_config(_WHOLE % ("0f" * 32), FeatureSet())
        said = UpstreamSource.CONFIG
        binding = "api_key/openai/default"
        self.assertEqual(
            found.of_features["gateway"],
            GatewaySettings(
                providers=(
                    Provider("openai", "https://llm.example/v1x", "/openai", Dialect.OPENAI, binding, said),
                    ANTHROPIC,
                    CHATGPT,
                    Provider("groq", "https://api.groq.com/openai", "/groq", source=said),
                    Provider("claude-proxy", "http://127.0.0.1:4000", "/local/claude", Dialect.ANTHROPIC, source=said),
                ),
                silence_seconds=60.0,
                max_body_bytes=33554432,
                accounting=False,
            ),
        )
        self.assertEqual(found.metrics_token_digest, bytes.fromhex("0f" * 32))
        self.assertNotIn("0f" * 4, repr(found))
        self.assertEqual(self.read("hosts: []"), GatewaySettings())
        self.assertEqual(self.read("gateway: {}"), GatewaySettings())
        self.assertEqual(self.read("gateway: {providers: {}}"), GatewaySettings())
        (openai, *_) = self.read('gateway: {providers: {openai: {credential: "vault:api_key/o/d"}}}').providers
        self.assertEqual((openai.base_url, openai.source), (OPENAI.base_url, UpstreamSource.DEFAULT))

    def test_unknown(self) -> None:
        """A key that is unknown or said twice is refused at its line, at every level."""
        self.refused("gateway:\n  silence: 1\n", 2, "unknown key")
        self.refused("gateway:\n  providers:\n    x:\n      url: a\n", 4, "unknown key")
        self.refused("gateway:\n  providers:\n    openai: {}\n    openai: {}\n", 4, "twice")
        self.refused("metrics:\n  token: a\n", 2, "unknown key")
        for text in ("gateway: 5", "gateway: {providers: [openai]}", "gateway: {providers: {x: https://x.test}}"):
            self.refused(text, 1, "mapping")

    def test_bounds(self) -> None:
        """A number beyond its bounds, and a switch that is neither true nor false, are refused."""
        for number in ("0", "86401", "1.5", "'60'", "-1", "010", "1_0", "0x10", "9" * 5000, "null"):
            self.refused(f"gateway:\n  silence_seconds: {number}\n", 2, "from 1 to 86400")
        self.assertEqual(self.read("gateway: {silence_seconds: 86400}").silence_seconds, 86400.0)
        self.assertEqual(self.read("gateway: {in_band_turns: 2}").of_features, {"in_band_turns": 2})
        self.refused("gateway: {max_body_bytes: 0}", 1, "whole number")
        self.refused(f"gateway: {{max_body_bytes: {2**40 + 1}}}", 1, "whole number")
        self.assertEqual(self.read(f"gateway: {{max_body_bytes: {2**40}}}").max_body_bytes, 2**40)
        for text in ("yes", "'true'", "True", "1", "null"):
            self.refused(f"gateway: {{accounting: {text}}}", 1, "true or false")

    def test_audit(self) -> None:
        """The shape of completions is recorded if config.yaml says so, and only then."""
        read = [self.read(f"gateway: {{{said}}}").audit for said in ("in_band_turns: 2", "audit: off", "audit: shape")]
        self.assertEqual(read, [False, False, True])
        for text in ("true", "contents", "null", "[shape]"):
            self.refused(f"gateway: {{audit: {text}}}", 1, "off, shape")

    def test_scraper(self) -> None:
        """The digest of a scraper's token is 64 hexadecimal digits in lower case, and is never repeated."""
        digits = "12" * 32
        self.assertEqual(
            read_config(f"metrics: {{token_sha256: {digits}}}", FeatureSet()).metrics_token_digest, b"\x12" * 32
        )
        self.assertEqual(read_config("metrics: {}", FeatureSet()), Config())
        for text in ("", "AB" * 32, "ab" * 31, "ab" * 33, "[]", "null"):
            error = self.assertRaises(NotConfig, read_config, f"metrics:\n  token_sha256: {text}\n", FeatureSet())
            self.assertEqual((error.line, "abab" in error.problem), (2, False))

    def test_certificates(self) -> None:
        """Certificates are taken by themselves; what is none, or comes with a key, is refused."""
        pem, key = _certificate()

        def config(text: str) -> str:
            return "gateway:\n  ca_certificates: |\n" + "".join(f"    {line}\n" for line in text.splitlines())

        self.assertEqual(self.read(config(f"our root:\n{pem}{pem}")).ca_certificates, pem * 2)
        for bad in (pem + key, "hello", key, pem.replace("M", "!", 1), pem + pem[:100], pem.replace("END", "BEGIN")):
            self.refused(config(bad), 2, "certificates")
        self.refused("gateway: {ca_certificates: 5}", 1, "certificates")
        self.refused(f"gateway: {{ca_certificates: '{'é' * 9}'}}", 1, "certificates")
        self.refused(f"gateway: {{ca_certificates: {'x' * (2**18 + 1)}}}", 1, "at most")


class ProviderTests(GatewayCase):
    """What may be said of a provider."""

    def providers(self, *lines: str) -> str:
        """A configuration of these providers, the first on line 3."""
        return "gateway:\n  providers:\n" + "".join(f"    {line}\n" for line in lines)

    def test_names(self) -> None:
        """A name is short and plain, 32 are the most, dialects are known, and only a built-in has no URL."""
        for name in ("Groq", "9x", "-x", "x_y", "'x y'", "x" * 33, "'x\\n'", "ü", "''", "[a]", "<<"):
            self.refused(self.providers(f"? {name}\n    : {{base_url: 'https://x.test'}}"), 3, "name")
        name = "x" * 32
        found = self.read(self.providers(f"{name}: {{base_url: 'https://x.test'}}"))
        self.assertEqual(found.providers[-1].prefix, f"/{name}")
        self.refused(self.providers("openai: {}", "groq: {prefix: /x}"), 4, "base_url")
        lines = [f"x{number}: {{base_url: 'https://x.test'}}" for number in range(33)]
        self.assertEqual(len(self.read(self.providers(*lines[:32])).providers), 35)
        self.refused(self.providers(*lines), 3, "32")
        self.refused(self.providers("x: {base_url: 'https://x.test', dialect: gemini}"), 3, "anthropic, openai")
        self.refused(self.providers("x: {base_url: 'https://x.test', dialect: 5}"), 3, "anthropic, openai")

    def test_base_url(self) -> None:
        """A base URL that could lead elsewhere is refused at its line, and not repeated."""
        self.refused(self.providers("x:", "  base_url: https://user:canary@x.test"), 4, "no user")
        self.refused(self.providers("x:", "  base_url: 5"), 4, "must begin with https://")
        error = self.assertRaises(
            NotConfig, read_config, self.providers("x: {base_url: 'https://a:canary@x.test'}"), FeatureSet()
        )
        self.assertNotIn("canary", error.problem)

    def test_prefixes(self) -> None:
        """A prefix is of plain segments."""
        for text in (
            "x",
            "/",
            "/x/",
            "//x",
            "/x//y",
            "/../x",
            "/.x",
            "/x%2f",
            "/X",
            "/x y",
            "/x?",
            "5",
            "/x" * 9,
            "''",
        ):
            self.refused(self.providers(f"x: {{base_url: 'https://x.test', prefix: {text!r}}}"), 3, "plain path")
        found = self.read(self.providers("x: {base_url: 'https://x.test', prefix: /a/b-c_d.e/1}"))
        self.assertEqual(found.providers[-1].prefix, "/a/b-c_d.e/1")

    def test_taken(self) -> None:
        """No prefix is, begins or continues another, or begins as another route of the site does."""
        for name in TAKEN:
            self.refused(self.providers(f"x: {{base_url: 'https://x.test', prefix: /{name}/x}}"), 3, "another prefix")
        self.refused(self.providers("api: {base_url: 'https://x.test'}"), 3, "another prefix")
        self.refused(self.providers("openai: {prefix: /v1}"), 3, "another prefix")
        for prefix in ("/openai", "/openai/x", "/a/b", "/a", "/a/b/c"):
            said = self.providers("y: {base_url: 'https://y.test', prefix: /a/b}", "openai: {}").rstrip()
            self.refused(f"{said}\n    x: {{base_url: 'https://x.test', prefix: {prefix}}}\n", 5, "another's")
        self.refused(self.providers("x: {base_url: 'https://x.test', prefix: /anthropic}"), 3, "another's")
        found = self.read(self.providers("x: {base_url: 'https://x.test', prefix: /openai2}", "openai: {prefix: /o}"))
        self.assertEqual([each.prefix for each in found.providers], ["/o", "/anthropic", "/chatgpt", "/openai2"])

    def test_credentials(self) -> None:
        """A credential names a binding of the vault; a key in its place is refused, and not repeated."""
        for text in ("canary-sk-1", "vault:", "vault:api_key/openai", "vault:a/b/c/d", "vault:api_key/../x", "5", "[]"):
            error = self.assertRaises(
                NotConfig, read_config, self.providers(f"openai: {{credential: '{text}'}}"), FeatureSet()
            )
            self.assertEqual((error.line, "canary" in error.problem), (3, False))
            self.assertIn("vault:api_key/", error.problem)


_SECRET = "http://user:canary@proxy.test:3128"


class EnvironmentTests(SynchronousTestCase):
    """Base URLs and proxies by variables."""

    def settings(self, environ: dict[str, str], config: str = "") -> GatewaySettings:
        """What a gateway with this environment and configuration is told."""
        found = read_config(config, FeatureSet()).of_features.get("gateway", GatewaySettings())
        return GatewayEnvironment.read(environ).over(found)

    def test_base_urls(self) -> None:
        """A base URL by variable wins over the configuration; the rest of what that says of the provider stays."""
        config = (
            "gateway: {silence_seconds: 5, providers: {openai: "
            '{base_url: "https://a.test", prefix: /o, credential: "vault:api_key/o/d"}}}'
        )
        gateway = self.settings({"AILERON_OPENAI_BASE_URL": "http://127.0.0.1:9/"}, config)
        openai, anthropic, _ = gateway.providers
        self.assertEqual(
            (openai.base_url, openai.prefix, openai.credential, openai.source),
            ("http://127.0.0.1:9", "/o", "api_key/o/d", UpstreamSource.ENVIRONMENT),
        )
        self.assertEqual((anthropic, gateway.silence_seconds), (ANTHROPIC, 5.0))
        moved = self.settings({"AILERON_ANTHROPIC_BASE_URL": "https://b.test/x"}).providers
        self.assertEqual((moved[0], moved[1].base_url), (OPENAI, "https://b.test/x"))
        self.assertEqual(self.settings({"PATH": "p"}), GatewaySettings())
        self.assertEqual(self.settings({"AILERON_OPENAI_BASE_URL": "", "HTTPS_PROXY": ""}), GatewaySettings())

    def test_bad_base_url(self) -> None:
        """A bad one is refused by its variable's name, whatever the configuration says, and not repeated."""
        for text in ("http://evil.test", "https://user:canary@x.test", "canary"):
            error = self.assertRaises(InvalidRequest, GatewayEnvironment.read, {"AILERON_OPENAI_BASE_URL": text})
            self.assertIn("AILERON_OPENAI_BASE_URL must ", error.message)
            self.assertNotIn("canary", error.message)

    def test_proxies(self) -> None:
        """Proxies go by lower-case names; what is written so goes first, and no representation shows a password."""
        environ = {"HTTPS_PROXY": _SECRET, "NO_PROXY": "a.test", "ALL_PROXY": "http://b.test", "http_proxy": ""}
        gateway = self.settings({**environ, "HTTP_PROXY": "http://c.test", "no_proxy": "*"})
        self.assertEqual(
            gateway.environment, (("https_proxy", _SECRET), ("all_proxy", "http://b.test"), ("no_proxy", "*"))
        )
        environ = {"HTTPS_PROXY": _SECRET}
        given = DaemonSettings(Home(Path("/h")), None, environ=environ)
        for each in (self.settings(environ), GatewayEnvironment.read(environ), given):
            self.assertNotIn("canary", repr(each))

    def test_command_line(self) -> None:
        """What the command line says wins; where it says nothing the file does, and where neither does, the product."""
        given = DaemonSettings(Home(Path("/h")), None, listens={"listen": "tcp:1"}, pending={"per_home": 3})
        said = "{listen: 'tcp:2', operator_listen: 'tcp:3', hosts: [box], pending: {per_home: 4, per_action: 5}}"
        limits = PendingLimits(PendingLimits().per_session, 3, 5)
        self.assertEqual(
            given.over(read_config(said, FeatureSet())).config,
            Config("tcp:1", "tcp:3", "fresh", ("box",), pending=limits),
        )
