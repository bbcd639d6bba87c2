"""The gateway's numbers: for the operator, for a session of its own, and for a scraper."""

from __future__ import annotations

import subprocess
import sys

from attrs import evolve
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from zope.interface import implementer

from aileron.api import PROOF, operator_site, token_digest
from aileron.api._guard import Who
from aileron.api._sites import agent_routes, operator_routes
from aileron.interfaces import ITotals
from aileron.testing import scripted_offer
from aileron.values import Ending, GatewayTotals, Histogram, LongTurns, Traffic, Usage

from .case import COOKIE, LAUNCH_KEY, ApiCase, Site
from .test_guard import routes
from .test_openapi import Room
from .test_routes import BrokenRunner

SCRAPER = "a-token-that-the-operator-made"
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
OWN = Traffic(begun=2, usage=Usage(20, 10, 5))


@implementer(ITotals)
class FixedTotals:
    """Totals of a busy provider and an idle one, and of one session."""

    def __init__(self) -> None:
        self.session_id = ""

    def snapshot(self) -> GatewayTotals:
        return GatewayTotals({"anthropic": IDLE, "openai": BUSY})

    def of_session(self, session_id: str) -> Traffic | None:
        return OWN if session_id == self.session_id else None


class CountedCase(ApiCase):
    """Dependencies with totals, and a scraper's token."""

    def setUp(self) -> None:
        """Add both."""
        super().setUp()
        self.totals = FixedTotals()
        self.build(totals=self.totals, metrics_token_digest=token_digest(SCRAPER))

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
        """The status shows all calls and those of each provider."""
        totals = self.operator.ask("GET", "/v1/status", self.operator_token()).json["gateway"]["totals"]
        self.assertEqual(
            {name: totals[name] for name in ("requests", "input_tokens", "output_tokens")},
            {"requests": 13, "input_tokens": 1205, "output_tokens": 40},
        )
        busy = totals["providers"][1]
        self.assertEqual((busy["name"], busy["requests"], busy["under_way"], busy["untold"]), ("openai", 7, 1, 1))
        self.assertEqual((busy["cached_tokens"], busy["sent_bytes"], busy["received_bytes"]), (1000, 300, 9000))
        self.assertEqual((busy["answers"]["4xx"], busy["endings"]["cut"]), (1, 2))

    def test_who(self) -> None:
        """The launch key's holder sees the totals, an agent does not."""
        self.assertIn("totals", self.agents.ask("GET", "/v1/status", LAUNCH_KEY).json["gateway"])
        self.assertNotIn("gateway", self.agents.ask("GET", "/v1/status", self.agent_token()).json)

    def test_uncounted(self) -> None:
        """Where nobody counts there is nothing."""
        self.build(totals=None)
        totals = self.operator.ask("GET", "/v1/status", self.operator_token()).json["gateway"]["totals"]
        self.assertEqual(totals, {"requests": 0, "input_tokens": 0, "output_tokens": 0, "providers": []})

    def test_sessions(self) -> None:
        """A session that called shows its own calls, to itself too; any other shows none."""
        opened, other = self.open_session(), self.open_session()
        self.totals.session_id = opened["id"]
        expected = {"requests": 2, "input_tokens": 20, "output_tokens": 10}
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

    def value(self, family: Metric, name: str, **labels: str) -> float:
        """One sample."""
        (found,) = [each.value for each in family.samples if each.name == name and each.labels == labels]
        return found

    def test_daemon(self) -> None:
        """The daemon's own state is told."""
        self.open_session()
        found = self.scrape()
        self.assertEqual(self.value(found["aileron_build_info"], "aileron_build_info", version="1.2.3"), 1)
        for name, value in (("uptime_seconds", 60), ("actions", 2), ("sessions", 1), ("pending_approvals", 0)):
            self.assertEqual(self.value(found[f"aileron_{name}"], f"aileron_{name}"), value, name)
        states = {each.labels["state"]: each.value for each in found["aileron_vault_state"].samples}
        self.assertEqual(states, {"missing": 0, "locked": 0, "unlocked": 1, "lost": 0})
        self.assertEqual(self.value(found["aileron_store_up"], "aileron_store_up"), 1)

    def test_gateway(self) -> None:
        """The gateway's counters are told for each provider."""
        found = self.scrape()
        requests = found["aileron_gateway_requests"]
        self.assertEqual(requests.type, "counter")
        self.assertEqual(self.value(requests, "aileron_gateway_requests_total", provider="openai", code="2xx"), 4)
        cut = self.value(
            found["aileron_gateway_endings"], "aileron_gateway_endings_total", provider="openai", ending="cut"
        )
        self.assertEqual(cut, 2)
        for name, value in (
            ("input_tokens", 1200),
            ("cached_input_tokens", 1000),
            ("output_tokens", 34),
            ("request_body_bytes", 300),
            ("response_body_bytes", 9000),
            ("answers_told", 3),
            ("answers_untold", 1),
        ):
            family = found[f"aileron_gateway_{name}"]
            self.assertEqual(self.value(family, f"aileron_gateway_{name}_total", provider="openai"), value, name)
        self.assertEqual(
            self.value(found["aileron_gateway_under_way"], "aileron_gateway_under_way", provider="openai"), 1
        )

    def test_histograms(self) -> None:
        """Buckets say how many waits did not exceed them; the last one holds all."""
        family = self.scrape()["aileron_gateway_first_byte_seconds"]
        self.assertEqual(family.type, "histogram")
        name = "aileron_gateway_first_byte_seconds"
        for bound, count in (("0.1", 3), ("1.0", 3), ("+Inf", 5)):
            self.assertEqual(self.value(family, f"{name}_bucket", provider="openai", le=bound), count)
        self.assertEqual(self.value(family, f"{name}_count", provider="openai"), 5)
        self.assertEqual(self.value(family, f"{name}_sum", provider="openai"), 8.5)
        self.assertLessEqual({"aileron_gateway_added_seconds", "aileron_gateway_duration_seconds"}, set(self.scrape()))

    def test_process(self) -> None:
        """What the library tells of the process is among it, where it tells anything."""
        if sys.platform == "linux":
            self.assertIn("process_resident_memory_bytes", self.scrape())

    def test_labels(self) -> None:
        """No label grows with what the daemon does."""
        opened = self.open_session()
        self.totals.session_id = opened["id"]
        heard = self.operator.ask("GET", "/metrics", SCRAPER)
        self.assertNotIn(opened["id"], heard.text)
        labels = {label for family in self.scrape().values() for each in family.samples for label in each.labels}
        self.assertEqual(labels, {"version", "state", "provider", "code", "ending", "le"})

    def test_before_the_first_call(self) -> None:
        """A daemon that relayed nothing yet is scraped as well."""
        self.build(totals=None)
        self.assertIn("aileron_uptime_seconds", self.scrape())

    def test_no_store(self) -> None:
        """What is in the store is left out while that does not answer."""
        self.build(runner=BrokenRunner.of(scripted_offer()))
        found = self.scrape()
        self.assertEqual(self.value(found["aileron_store_up"], "aileron_store_up"), 0)
        self.assertTrue({"aileron_sessions", "aileron_pending_approvals"}.isdisjoint(found))

    def test_reactor(self) -> None:
        """Long turns of the reactor are there by kind, with the longest, where somebody measures them."""
        self.assertNotIn("aileron_reactor_stalls", self.scrape())
        self.build(long_turns=lambda: LongTurns(2, 3, 0.75), metrics_token_digest=token_digest(SCRAPER))
        found = self.scrape()
        stalls = found["aileron_reactor_stalls"]
        self.assertEqual(
            [self.value(stalls, "aileron_reactor_stalls_total", kind=kind) for kind in ("busy", "blocked")], [2, 3]
        )
        longest = "aileron_reactor_longest_stall_seconds"
        self.assertEqual(self.value(found[longest], longest), 0.75)

    def test_library(self) -> None:
        """A daemon that is never scraped does not load what it takes."""
        script = "import sys, aileron.api; sys.exit('prometheus_client' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", script], check=False).returncode, 0)


class ScraperTests(CountedCase):
    """Who may scrape, and what a scraper may."""

    def test_operator(self) -> None:
        """The operator may, in a terminal or a browser."""
        self.assertEqual(self.operator.ask("GET", "/metrics", self.operator_token()).status, 200)
        browser, _session = self.operators.open_browser()
        self.assertEqual(self.operator.ask("GET", "/metrics", browser=browser).status, 200)
        headers = {**browser.headers(COOKIE, "GET", "/metrics"), PROOF: SCRAPER}
        self.assertEqual(self.operator.ask("GET", "/metrics", headers=headers).status, 401)

    def test_beside_the_pages(self) -> None:
        """No page stands in its place."""
        self.operator = Site(self, operator_site(self.deps, web=Room), operator_routes())
        self.assertEqual(self.operator.ask("GET", "/metrics").status, 401)
        self.assertIn("aileron_uptime_seconds", self.scrape())

    def test_others(self) -> None:
        """Nobody else may, and where no scraper is configured, no token is one."""
        tokens = (None, "", "x", SCRAPER + "x", SCRAPER.upper(), LAUNCH_KEY, self.agent_token(), "ail_o_" + "x" * 43)
        for token in tokens:
            heard = self.operator.ask("GET", "/metrics", token)
            self.assertEqual((heard.status, heard.kind), (401, "unauthorized"), token)
        self.build(metrics_token_digest=None)
        for token in (*tokens, SCRAPER):
            self.assertEqual(self.operator.ask("GET", "/metrics", token).status, 401, token)

    def test_nothing_else(self) -> None:
        """The scraper's token opens no other route of either site."""
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

    def test_nothing_is_shown(self) -> None:
        """Neither token nor digest is shown by anything."""
        heard = self.operator.ask("GET", "/metrics", SCRAPER)
        for text in (heard.text, repr(self.deps), self.operator.ask("GET", "/v1/openapi.json").text):
            self.assertNotIn(SCRAPER, text)
            self.assertNotIn(token_digest(SCRAPER).hex(), text)
            self.assertNotIn(repr(token_digest(SCRAPER)), text)
