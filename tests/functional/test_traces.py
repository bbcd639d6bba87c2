"""A daemon with a collector of traces: one trace from the tool call to the service, and a log in JSON."""

import hashlib
import json
from functools import partial
from typing import Any

from mcp import Client, StdioServerParameters
from twisted.web.resource import Resource
from twisted.web.server import Request

from tests.functional.loopback import LoopbackSite
from tests.functional.mcp_http import connected, talk
from tests.functional.operated import CONNECTOR, GATED, SHIP, UNGATED, OperatedTestCase
from tests.functional.reactor import until

_PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Collector(Resource):
    """Takes spans as an OpenTelemetry collector does.

    :ivar spans: all spans that came in.
    :ivar busy: how often it asks to wait before it takes spans, and the number of times that it did.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.spans: list[dict[str, Any]] = []
        self.busy = [0, 0]

    def render_POST(self, request: Request) -> bytes:
        """Take spans, and reject the first of them."""
        if self.busy[0] > self.busy[1]:
            self.busy[1] += 1
            request.setResponseCode(503)
            request.setHeader("Retry-After", "1")
            return b"later"
        body = json.loads(request.content.read())  # type: ignore[union-attr]
        for resource in body["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                self.spans += scope["spans"]
        return b'{"partialSuccess": {"rejectedSpans": 1, "errorMessage": "too old"}}'

    def named(self, name: str) -> list[dict[str, Any]]:
        """The spans of this name."""
        return [each for each in self.spans if each["name"] == name]


class TraceTests(OperatedTestCase):
    """Runs of a daemon that has a collector."""

    def setUp(self) -> None:
        super().setUp()
        self.collector = Collector()
        self.site = LoopbackSite.listen(self.reactor, self.collector)
        self.finally_(self.site.stop)

    async def begin(self, *, traced: bool) -> None:
        """Start a daemon with the collector, and the connector declared or not."""
        await self.furnish()
        if traced:
            path = self.state.connectors / "slack.toml"
            path.write_text(path.read_text().replace("private_network = true", "private_network = true\ntraced = true"))
            await self.operator("connector", "trust", CONNECTOR, "--yes")
        await self.set_config(f"log:\n  format: json\ntracing:\n  endpoint: {self.site.url}/v1/traces\n")

    def log(self) -> list[dict[str, Any]]:
        """The entries of the log since the daemon was started with its format."""
        text = (self.state.log / "aileron.log").read_text()
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    async def test_one_trace(self) -> None:
        """The call, the wait over a restart, the effect and the service are in one trace, linked to the agent's."""
        await self.begin(traced=True)
        session = await self.session()
        found = self.home.discovery()
        url = f"{found['url']}/v1/actions/{GATED}/run"
        reply = await self.web.ask("POST", url, session.token, {"args": SHIP}, Prefer="wait=0", traceparent=_PARENT)
        run_id = reply.body["run_id"]
        await self.command("daemon", "stop")
        await self.unlock()
        await self.approve(run_id)
        await self.posted()
        await until(self.reactor, lambda: bool(self.collector.named("step post")), 30, "spans")
        spans = {each["name"]: each for each in self.collector.spans}
        self.assertEqual(spans.keys(), {"request", f"run {GATED}", "approval", "execution", "step post"})
        (trace_id,) = {each["traceId"] for each in spans.values()}
        self.assertEqual(spans["request"]["links"], [{"traceId": _PARENT[3:35], "spanId": _PARENT[36:52]}])
        (post,) = [each for each in self.workspace.requests if each.path == "/api/chat.postMessage"]
        self.assertEqual(post.headers["traceparent"], f"00-{trace_id}-{spans['step post']['spanId']}-01")
        self.assertNotIn(SHIP["summary"], json.dumps(self.collector.spans))
        lines = [each for each in self.log() if each.get("run") == run_id]
        self.assertIn(("run_action", 202), [(each.get("route"), each.get("status")) for each in lines])
        self.assertTrue(any("ended: completed" in each["message"] for each in lines))
        self.assertNotIn(session.token, (self.state.log / "aileron.log").read_text())

    async def test_mcp(self) -> None:
        """A tool call over HTTP or standard streams is linked to the client's trace, and leads to the service."""
        await self.begin(traced=True)
        await self.set_config(f"mcp: {{http: true}}\ntracing: {{endpoint: '{self.site.url}/v1/traces'}}\n")
        session = await self.session()
        ours = {"AILERON_URL": self.home.discovery()["url"], "AILERON_TOKEN": session.token}
        program, *arguments = self.forked("aileron-mcp")
        environment = self.home.environment(**ours)
        server = StdioServerParameters(command=program, args=arguments, env=environment, cwd=str(self.home.project))
        url = f"{ours['AILERON_URL']}/mcp"

        async def call(by_http: bool, parent: str) -> bool:
            connecting = connected(url, session.token, "auto") if by_http else Client(server, mode="auto")
            async with connecting as client:
                meta: Any = {"traceparent": parent}
                return bool((await client.call_tool("post_note", SHIP, meta=meta)).is_error)

        parents = [_PARENT.replace("b7ad", number) for number in ("0001", "0002", "bad!")]
        for count, (by_http, parent) in enumerate(zip((True, False, False), parents, strict=True), 1):
            self.assertFalse(await talk(self.reactor, partial(call, by_http, parent)))
            await self.posted(count)
        await until(self.reactor, lambda: len(self.collector.named("step post")) == 3, 30, "spans")
        links = {}
        for request in self.collector.named("request"):
            links[request["traceId"]] = [each["spanId"] for each in request.get("links", ())]
        self.assertEqual(sorted(links.values()), [[], [parents[0][36:52]], [parents[1][36:52]]])
        sent = [each.headers["traceparent"] for each in self.workspace.requests if each.path == "/api/chat.postMessage"]
        steps = [f"00-{each['traceId']}-{each['spanId']}-01" for each in self.collector.named("step post")]
        self.assertEqual((sorted(sent), {each[3:35] for each in sent}), (sorted(steps), links.keys()))

    async def test_busy(self) -> None:
        """A collector that asks to wait gets the spans afterwards; those that it rejects are counted."""
        await self.begin(traced=False)
        scraper = "the-scrapers-own-token"
        digest = hashlib.sha256(scraper.encode()).hexdigest()
        await self.set_config(
            f"tracing: {{endpoint: '{self.site.url}/v1/traces'}}\nmetrics: {{token_sha256: {digest}}}\n"
        )
        self.collector.busy[0] = 2
        await self.run_action(await self.session(), UNGATED, SHIP)
        await until(self.reactor, lambda: bool(self.collector.named("step post")), 30, "spans")
        self.assertEqual(self.collector.busy, [2, 2])
        url = f"{self.home.discovery()['operator_url']}/metrics"
        reply = await self.web.ask("GET", url, scraper)
        self.assertIn('aileron_tracing_spans_total{outcome="dropped"} 1.0', reply.text)

    async def test_undeclared(self) -> None:
        """A service whose connector does not declare it gets no header, and a collector that is away stops no run."""
        await self.begin(traced=False)
        await self.site.stop()
        session = await self.session()
        await self.run_action(session, UNGATED, SHIP)
        await self.posted()
        self.assertTrue(all("traceparent" not in each.headers for each in self.workspace.requests))
