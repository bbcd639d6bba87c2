"""The gateway's numbers for the operator, for a session of its own and for a scraper."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from attrs import evolve
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from aileron.api import operator_site, token_digest
from aileron.api._sites import agent_routes, operator_routes
from aileron.api.guard import Who
from aileron.features.gateway.values import Ending, Histogram, ProviderTool, ToolCount, ToolKind, Traffic
from aileron.model.reactor import LongTurns
from aileron.model.usage import Usage
from aileron.testing import scripted_offer
from tests.features.gateway.running import FixedWatch, relaying

from .case import LAUNCH_KEY, ApiCase, Site, running
from .test_guard import routes
from .test_openapi import Room
from .test_routes import BrokenRunner

SCRAPER = "a-token-that-the-operator-made"
_FROZEN = Path(__file__).with_name("metrics.txt")
_DASHBOARD = Path(__file__).parents[2] / "packaging" / "grafana" / "aileron.json"
WAITS = Histogram((0.1, 1.0), (3, 0, 2), 8.5)
BUSY = Traffic(
    begun=7,
    answers={"none": 1, "1xx": 0, "2xx": 4, "3xx": 0, "4xx": 1, "5xx": 0},
    endings={**dict.fromkeys(Ending, 0), Ending.COMPLETE: 4, Ending.CUT: 2},
    sent_bytes=300,
    received_bytes=9000,
    usage=Usage(1200, 34, 1000),
    told=3,
    untold=1,
    first_byte=WAITS,
    added=Histogram((0.001,), (5, 0), 0.002),
    whole=WAITS,
)
IDLE = evolve(BUSY, begun=6, usage=Usage(5, 6))


_MCP = ProviderTool(ToolKind.REMOTE_MCP, "mcp.example.com")
_TOOLS = tuple(ToolCount("openai", session, _MCP, refused, 2) for session in ("a", None) for refused in (True, False))


class CountedCase(ApiCase):
    """Dependencies with totals, and a scraper's token."""

    def setUp(self) -> None:
        super().setUp()
        gateway = relaying(providers={"anthropic": IDLE, "openai": BUSY}, usage=self.store.usage)
        gateway.watch_requests(FixedWatch(tools=_TOOLS))
        self.build(features=running(gateway), metrics_token_digest=token_digest(SCRAPER))

    def scrape(self) -> dict[str, Metric]:
        """What a scraper gets, by name."""
        heard = self.operator.ask("GET", "/metrics", SCRAPER)
        self.assertEqual(
            (heard.status, heard.headers["content-type"]), (200, "text/plain; version=0.0.4; charset=utf-8")
        )
        return {family.name: family for family in text_string_to_metric_families(heard.text)}


class TotalsTests(CountedCase):
    """Totals where they are shown."""

    def test_status(self) -> None:
        """The status shows all calls and those of each provider, but not to an agent; nothing where nobody counts."""
        totals = self.operator.ask("GET", "/v1/status", self.operator_token()).json["gateway"]["totals"]
        self.assertEqual(
            {name: totals[name] for name in ("requests", "input_tokens", "output_tokens")},
            {"requests": 13, "input_tokens": 1205, "output_tokens": 40},
        )
        busy = totals["providers"][1]
        self.assertEqual((busy["name"], busy["requests"], busy["under_way"], busy["untold"]), ("openai", 7, 1, 1))
        self.assertEqual((busy["cached_tokens"], busy["sent_bytes"], busy["received_bytes"]), (1000, 300, 9000))
        self.assertEqual((busy["answers"]["4xx"], busy["endings"]["cut"]), (1, 2))
        tools = [{"provider": "openai", "kind": "remote_mcp", "requests": 8, "refused": 4}]
        self.assertEqual(totals["provider_tools"], tools)
        self.assertIn("totals", self.agents.ask("GET", "/v1/status", LAUNCH_KEY).json["gateway"])
        self.assertNotIn("gateway", self.agents.ask("GET", "/v1/status", self.agent_token()).json)
        self.build(features=running(relaying()))
        totals = self.operator.ask("GET", "/v1/status", self.operator_token()).json["gateway"]["totals"]
        self.assertEqual(
            totals, {"requests": 0, "input_tokens": 0, "output_tokens": 0, "providers": [], "provider_tools": []}
        )

    def test_sessions(self) -> None:
        """A session that called shows its own calls as they are stored, to itself too; any other shows none.

        Their cost is there only where a provider told one.
        """
        opened, other = self.open_session(), self.open_session()
        self.store.usage.note("openai", opened["id"], Usage(20, 10, 5))
        expected: dict[str, object] = {"requests": 1, "input_tokens": 20, "output_tokens": 10, "cached_tokens": 5}
        shown = self.operator.ask("GET", f"/v1/sessions/{opened['id']}", self.operator_token()).json
        self.assertEqual(shown["gateway"], expected)
        self.store.usage.note("openrouter", opened["id"], Usage(cost_microdollars=140))
        expected |= {"requests": 2, "cost_microdollars": 140}
        own = self.agents.ask("GET", "/v1/sessions", opened["token"]).json["items"]
        self.assertEqual([item["gateway"] for item in own], [expected])
        listed = self.operator.ask("GET", "/v1/sessions", self.operator_token()).json["items"]
        self.assertEqual(
            {item["id"]: item.get("gateway") for item in listed}, {opened["id"]: expected, other["id"]: None}
        )
        shown = self.operator.ask("GET", f"/v1/sessions/{opened['id']}", self.operator_token()).json
        self.assertEqual(shown["gateway"], expected)
        ended = self.agents.ask("POST", f"/v1/sessions/{opened['id']}/end", opened["token"]).json
        self.assertEqual(ended["gateway"], expected)


class MetricsTests(CountedCase):
    """The text that Prometheus collects."""

    def test_text(self) -> None:
        """The daemon's state, each provider's counters and long turns are told as frozen, beside the library's own."""
        self.build(long_turns=lambda: LongTurns(2, 3, 0.75))
        self.open_session()
        text = self.operator.ask("GET", "/metrics", SCRAPER).text
        ours = [line for line in text.splitlines() if line.removeprefix("# TYPE ").startswith("aileron_")]
        self.assertEqual(ours, _FROZEN.read_text(encoding="utf-8").splitlines())
        if sys.platform == "linux":
            self.assertIn("process_resident_memory_bytes", self.scrape())

    def test_dashboard(self) -> None:
        """The dashboard for Grafana asks for nothing that is not told."""
        board = json.loads(_DASHBOARD.read_text(encoding="utf-8"))
        expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        asked = {name for each in expressions for name in re.findall(r"\b(?:aileron|process)_[a-z_]+", each)}
        told = {line.split("{")[0].split(" ")[0] for line in _FROZEN.read_text(encoding="utf-8").splitlines()}
        self.assertGreater(len(asked), 10)
        self.assertEqual(asked - told, {"process_resident_memory_bytes", "process_cpu_seconds_total"})
        self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))

    def test_little(self) -> None:
        """Where nothing was relayed yet, nobody measures turns, or the store is gone, the rest is told."""
        self.build(runner=BrokenRunner.of(scripted_offer()), features=running())
        found = self.scrape()
        self.assertEqual([each.value for each in found["aileron_store_up"].samples], [0])
        self.assertIn("aileron_uptime_seconds", found)
        absent = {"aileron_sessions", "aileron_pending_approvals", "aileron_reactor_stalls"}
        self.assertTrue(absent.isdisjoint(found))

    def test_library(self) -> None:
        """A daemon that is never scraped does not load what it takes."""
        script = "import sys, aileron.api; sys.exit('prometheus_client' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", script], check=False).returncode, 0)


class ScraperTests(CountedCase):
    """Who may scrape, and what a scraper may."""

    def test_others(self) -> None:
        """Nobody else may, where no scraper is configured no token is one, and no page stands in its place."""
        tokens = (None, "", "x", SCRAPER + "x", SCRAPER.upper(), LAUNCH_KEY, self.agent_token(), "ail_o_" + "x" * 43)
        for token in tokens:
            heard = self.operator.ask("GET", "/metrics", token)
            self.assertEqual((heard.status, heard.kind), (401, "unauthorized"), token)
        self.operator = Site(self, operator_site(self.deps, web=Room), operator_routes())
        self.assertEqual(self.operator.ask("GET", "/metrics").status, 401)
        self.assertIn("aileron_uptime_seconds", self.scrape())
        self.build(metrics_token_digest=None)
        for token in (*tokens, SCRAPER):
            self.assertEqual(self.operator.ask("GET", "/metrics", token).status, 401, token)

    def test_nothing_else(self) -> None:
        """The scraper's token opens no other route of either site, and neither it nor its digest is shown."""
        tried = 0
        for method, path, allowed in routes(operator_routes().endpoints):
            if Who.ANYONE in allowed or path == "/metrics":
                continue
            heard = self.operator.ask(method, path, SCRAPER)
            self.assertEqual((heard.status, heard.kind), (403, "forbidden"), f"{method} {path}")
            tried += 1
        for method, path, allowed in routes(agent_routes().endpoints):
            if Who.ANYONE in allowed:
                continue
            self.assertEqual(self.agents.ask(method, path, SCRAPER).status, 401, f"{method} {path}")
            tried += 1
        self.assertGreater(tried, 40)
        heard = self.operator.ask("GET", "/metrics", SCRAPER)
        for text in (heard.text, repr(self.deps), self.operator.ask("GET", "/v1/openapi.json").text):
            self.assertNotIn(SCRAPER, text)
            self.assertNotIn(token_digest(SCRAPER).hex(), text)
            self.assertNotIn(repr(token_digest(SCRAPER)), text)
