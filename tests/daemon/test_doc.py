"""The page about the configuration tells what is so."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.daemon._config import Config, read_config
from aileron.daemon._config_gateway import TAKEN
from aileron.values import (
    BASE_URL_VARIABLES,
    PROXY_VARIABLES,
    Dialect,
    GatewaySettings,
    McpSettings,
    PendingLimits,
    Provider,
)

_PAGE = (Path(__file__).parents[2] / "doc" / "configuration.md").read_text(encoding="utf-8")
_ROWS = dict(re.findall(r"^\| `([\w.<>]+)` \| [^|]+ \| ([^|]+) \|$", _PAGE, re.MULTILINE))
_EXAMPLES = re.findall(r"```yaml\n(.*?)```", _PAGE, re.DOTALL)
_PROVIDER = "gateway.providers.<name>."
_GATEWAY = set(GatewaySettings.__annotations__) - {"providers", "environment"}
_FIELDS = {
    *(f"mcp.{name}" for name in McpSettings.__annotations__),
    *("listen", "operator_listen", "hosts", "agent_uids", "clients", "metrics.token_sha256", "notifications"),
    *("audit.keep_payloads_days", "audit.anchor.file", "audit.anchor.webhook"),
    *(f"pending.{name}" for name in PendingLimits.__annotations__),
    *(f"gateway.{name}" for name in _GATEWAY),
    *(f"{_PROVIDER}{name}" for name in set(Provider.__annotations__) - {"name", "source"}),
}


class PageTests(SynchronousTestCase):
    """doc/configuration.md against the daemon."""

    def test_keys(self) -> None:
        """The table has every key that is read, and no other."""
        self.assertEqual(set(_ROWS), _FIELDS)
        named = {"metrics": "metrics_token_digest", "notifications": "notices"}
        parts = {name.partition(".")[0] for name in _ROWS}
        self.assertEqual({named.get(part, part) for part in parts}, set(Config.__annotations__))

    def test_limits(self) -> None:
        """The numbers and addresses that hold without the file are those of the page."""
        limits = PendingLimits()
        pending = {name: _ROWS[f"pending.{name}"] for name in PendingLimits.__annotations__}
        self.assertEqual(pending, {name: str(getattr(limits, name)) for name in pending})
        settings = McpSettings()
        told = {name: _ROWS[f"mcp.{name}"].strip("`") for name in McpSettings.__annotations__}
        self.assertEqual(told, {name: str(getattr(settings, name)).lower() for name in told})
        gateway = GatewaySettings()
        self.assertEqual(float(_ROWS["gateway.silence_seconds"]), gateway.silence_seconds)
        self.assertEqual(_ROWS["gateway.accounting"], f"`{str(gateway.accounting).lower()}`")
        self.assertEqual((gateway.max_body_bytes, gateway.ca_certificates), (None, ""))
        for text in (*(f"`/{first}`" for first in TAKEN), *(f"`{dialect}`" for dialect in Dialect)):
            self.assertIn(text, _PAGE)
        for provider in gateway.providers:
            self.assertIn(f"`{provider.base_url}`", _PAGE)
        for variable in (*BASE_URL_VARIABLES.values(), *(name.upper() for name in PROXY_VARIABLES)):
            self.assertIn(f"`{variable}`", _PAGE)

    def test_example(self) -> None:
        """The examples are configurations that say what the page says of them."""
        config = read_config(_EXAMPLES[0])
        self.assertEqual((config.listen, config.hosts), ("tcp:8081:interface=0.0.0.0", ("aileron.internal",)))
        self.assertEqual(config.pending.per_session, 5)
        gateway = read_config(_EXAMPLES[1]).gateway
        found = {each.name: (each.base_url, each.prefix, each.credential) for each in gateway.providers}
        self.assertEqual(found["openai"], ("https://llm.example.com/openai", "/openai", None))
        self.assertEqual(found["groq"], ("https://api.groq.com/openai", "/groq", "api_key/groq/default"))
        self.assertEqual(found["local"], ("http://127.0.0.1:11434", "/local", None))
        self.assertEqual(len(_EXAMPLES), 2)
