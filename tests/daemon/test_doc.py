"""The page about the configuration tells what is so."""

from __future__ import annotations

import os
import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.yaml_keys import NotConfig
from aileron.daemon import config_keys, describe_keys
from aileron.daemon._config import Config, read_config
from aileron.features import FeatureSet
from aileron.features.gateway.settings import TAKEN
from aileron.features.gateway.values import BASE_URL_VARIABLES, PROXY_VARIABLES, Dialect, GatewaySettings, Provider
from aileron.features.mcp_http.values import McpSettings
from aileron.features.oidc.values import OidcSettings
from aileron.features.own_tools.settings import OwnToolsSettings
from aileron.features.phone.values import PhoneSettings
from aileron.features.prompts.values import PromptSettings
from aileron.features.tracing.settings import TracingSettings
from aileron.features.wake.values import WakeSettings
from aileron.model.authority import PendingLimits

_PATH = Path(__file__).parents[2] / "doc" / "configuration.md"
_PAGE = _PATH.read_text(encoding="utf-8")
_KEYS = {each["key"]: each for each in describe_keys(config_keys(FeatureSet()))}
_TABLE = re.compile(r"(?<=<!-- keys: )([a-z ]+) -->\n.*?(?=<!-- end of keys -->)", re.DOTALL)
_EXAMPLES = re.findall(r"```yaml\n(.*?)```", _PAGE, re.DOTALL)
_GATEWAY = set(GatewaySettings.__annotations__) - {"providers", "environment", "of_features"}
_OF_FEATURES = {"provider_tools", "in_band_turns", "limits", "prices", "runaway", "claims"}
_FIELDS = {
    *(f"mcp.{name}" for name in McpSettings.__annotations__),
    *("listen", "operator_listen", "operator_host", "hosts", "agent_uids", "clients", "connector_packages"),
    *("approvals.rules", *(f"approvals.rules.{name}" for name in ("action", "by", "count", "not_requester"))),
    *("features", "metrics.token_sha256"),
    *("store.url", "store.password_file", "store.daemons", "store.lease_seconds"),
    *("store.drain_seconds", "store.notice_seconds"),
    *("audit.keep_payloads_days", "audit.anchor.file", "audit.anchor.webhook", "log.format"),
    *(f"pending.{name}" for name in PendingLimits.__annotations__),
    *(f"gateway.{name}" for name in _GATEWAY | _OF_FEATURES),
    *(f"gateway.providers.<name>.{name}" for name in set(Provider.__annotations__) - {"name", "source", "of_features"}),
    "gateway.providers.<name>.provider_tools",
    *(f"profiles.<name>.{name}" for name in ("allow", "deny", "agents", "projects")),
    *("gateway.runaway.same_requests", "gateway.runaway.per_minute"),
    *(f"own_tools.{name}" for name in OwnToolsSettings.__annotations__),
    *(f"phone.{name}" for name in PhoneSettings.__annotations__),
    *(f"oidc.{name}" for name in OidcSettings.__annotations__),
    *(f"prompts.{name}" for name in PromptSettings.__annotations__),
    *(f"prompts.rules.{name}" for name in ("allow", "ask", "deny", "project", "reason")),
    *(f"wake.{name}" for name in WakeSettings.__annotations__),
    *(f"notifications.{name}" for name in ("desktop", "desktop.command", "apprise", "people", "contents")),
    *(f"tracing.{name}" for name in TracingSettings.__annotations__),
    *(f"notifications.webhooks.<name>.{name}" for name in ("url", "signed")),
}


def write_tables(page: str) -> str:
    """Return the page with its tables of keys as the code has them: a part's, or all others'."""
    parts = {found[1] for found in _TABLE.finditer(page)}

    def table(found: re.Match[str]) -> str:
        rows = ["| key | meaning | default |", "|---|---|---|"]
        for name, key in _KEYS.items():
            part = name.partition(".")[0]
            if (part if part in parts else "all others") == found[1]:
                rows.append(f"| `{name}` | {key['meaning']} | {_quote_value(key['default'])} |")
        return "\n".join([f"{found[1]} -->", "", *rows, "", ""])

    return _TABLE.sub(table, page)


def _quote_value(default: str) -> str:
    return f"`{default}`" if default in {"true", "false"} else default


class PageTests(SynchronousTestCase):
    """doc/configuration.md against the daemon."""

    def test_tables(self) -> None:
        """The tables are those of the code; C{AILERON_KEYS=yes trial tests.daemon.test_doc} writes them."""
        if "AILERON_KEYS" in os.environ:
            _PATH.write_text(write_tables(_PAGE), encoding="utf-8")
        self.assertEqual(_PATH.read_text(encoding="utf-8"), write_tables(_PAGE))

    def test_keys(self) -> None:
        """Each setting has a key, and each key a meaning and a default that fit a cell of a table."""
        self.assertEqual(set(_KEYS), _FIELDS)
        named = {"metrics": "metrics_token_digest"}
        parts = {name.partition(".")[0] for name in _KEYS}
        parts -= set(FeatureSet().settings())
        self.assertEqual({named.get(part, part) for part in parts}, set(Config.__annotations__) - {"of_features"})
        for name, key in _KEYS.items():
            for words in (key["meaning"], key["default"]):
                self.assertRegex(words, r"\A[^|\n]+[^|\n.]\Z|\A\d+\Z", name)

    def test_bounds(self) -> None:
        """A key that is a number says its bounds as its reader has them."""
        for name, most in (("pending.per_home", 1_000_000), ("mcp.idle_seconds", 86_400)):
            self.assertTrue(_KEYS[name]["meaning"].endswith(f", from 1 to {most}"), name)
            part, _, key = name.partition(".")
            read_config(f"{part}: {{{key}: {most}}}", FeatureSet())
            with self.assertRaises(NotConfig):
                read_config(f"{part}: {{{key}: {most + 1}}}", FeatureSet())

    def test_limits(self) -> None:
        """The numbers and addresses that hold without the file are those of the page."""
        limits = PendingLimits()
        pending = {name: _KEYS[f"pending.{name}"]["default"] for name in PendingLimits.__annotations__}
        self.assertEqual(pending, {name: str(getattr(limits, name)) for name in pending})
        settings = McpSettings()
        told = {name: _KEYS[f"mcp.{name}"]["default"] for name in McpSettings.__annotations__}
        self.assertEqual(told, {name: str(getattr(settings, name)).lower() for name in told})
        gateway = GatewaySettings()
        self.assertEqual(float(_KEYS["gateway.silence_seconds"]["default"]), gateway.silence_seconds)
        self.assertEqual(_KEYS["gateway.accounting"]["default"], str(gateway.accounting).lower())
        self.assertEqual((gateway.max_body_bytes, gateway.ca_certificates), (None, ""))
        for text in (*(f"`/{first}`" for first in TAKEN), *(f"`{dialect}`" for dialect in Dialect)):
            self.assertIn(text, _PAGE)
        for provider in gateway.providers:
            self.assertIn(f"`{provider.base_url}`", _PAGE)
        for variable in (*BASE_URL_VARIABLES.values(), *(name.upper() for name in PROXY_VARIABLES)):
            self.assertIn(f"`{variable}`", _PAGE)

    def test_example(self) -> None:
        """The examples are configurations that say what the page says of them."""
        config = read_config(_EXAMPLES[0], FeatureSet())
        self.assertEqual((config.listen, config.hosts), ("tcp:8081:interface=127.0.0.1", ()))
        self.assertEqual(config.pending.per_session, 5)
        gateway = read_config(_EXAMPLES[1], FeatureSet()).of_features["gateway"]
        found = {each.name: (each.base_url, each.prefix, each.credential) for each in gateway.providers}
        self.assertEqual(found["openai"], ("https://llm.example.com/openai", "/openai", None))
        self.assertEqual(found["groq"], ("https://api.groq.com/openai", "/groq", "api_key/groq/default"))
        self.assertEqual(found["local"], ("http://127.0.0.1:11434", "/local", None))
        self.assertEqual(len(_EXAMPLES), 2)
