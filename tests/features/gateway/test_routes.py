"""The route table: which requests are the gateway's, whose they are, and what counts as asking a model."""

from __future__ import annotations

from typing import Any

from aileron.base.http1 import parse_request
from tests.features.gateway.case import GatewayCase, get, request, status_of

ASK = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
)


ASKED = (
    ("POST", "/v1/chat/completions", "openai", "/v1/chat/completions", True),
    ("GET", "/v1/responses", "openai", "/v1/responses", False),
    ("POST", "/v1/messages/count_tokens?beta=true", "anthropic", "/v1/messages/count_tokens?beta=true", True),
    ("GET", "/v1/models", "openai", "/v1/models", False),
    ("GET", "/v1/models/ft:gpt-4/x", "openai", "/v1/models/ft:gpt-4/x", False),
    ("HEAD", "/v1/models", "openai", "/v1/models", False),
    ("HEAD", "/", "anthropic", "/", False),
    ("HEAD", "/api/hello", "anthropic", "/api/hello", False),
    ("POST", "/api/event_logging/batch", "anthropic", "/api/event_logging/batch", False),
    ("DELETE", "/openai/v1/files/f?x=/../", "openai", "/v1/files/f?x=/../", False),
    ("PATCH", "/anthropic/v1/x", "anthropic", "/v1/x", False),
    ("OPTIONS", "/openai/", "openai", "/", False),
    ("POST", "/openai/v1/chat/completions", "openai", "/v1/chat/completions", True),
    ("POST", "/openai/responses", "openai", "/responses", False),
    ("POST", "/chatgpt/responses", "chatgpt", "/backend-api/codex/responses", True),
    ("GET", "/chatgpt/models?client_version=1", "chatgpt", "/backend-api/codex/models?client_version=1", False),
    ("POST", "/local/v1/chat/completions", "local", "/base/path/v1/chat/completions", True),
    ("GET", "/local/a//b/", "local", "/base/path/a//b/", False),
    ("GET", "/local/?", "local", "/base/path/?", False),
    ("GET", "/local/x%20y;v=1", "local", "/base/path/x%20y;v=1", False),
)

NOT_ASKED = (
    ("GET", "/v1/chat/completions"),
    ("POST", "/v1/chat/completions/"),
    ("POST", "/v1//chat/completions"),
    ("POST", "//v1/chat/completions"),
    ("POST", "/V1/chat/completions"),
    ("POST", "/v1/chat%2fcompletions"),
    ("POST", "/v1/models"),
    ("GET", "/v1/messages"),
    ("GET", "/"),
    ("GET", "/v1/actions"),
    ("GET", "/openai"),
    ("GET", "/openaix/v1"),
    ("GET", "/OpenAI/v1"),
    ("GET", "/s/"),
    ("GET", "/v1/health"),
)


class RouteTests(GatewayCase):
    """The table."""

    def test_asked(self) -> None:
        """Each route goes to its provider, path and query as they came, and is counted as what it is."""
        for method, target, provider, onward, inference in ASKED:
            body = b"{}" if method in {"POST", "PATCH"} else b""
            line, there = self.ask(request(target, method=method, body=body), provider)
            self.assertEqual(there.take().partition(b" HTTP/1.1\r\n")[0].decode(), f"{method} {onward}")
            self.assertEqual(self.meters.all[-1].begun, (provider, None, inference), target)
            line.end.abortConnection()
            self.net.run()

    def test_asks_a_model(self) -> None:
        """A named route asks, at the root and below each prefix, by POST alone; what only looks like one does not."""
        for path in ASK:
            self.assertEqual(self.asks("POST", path), ("anthropic" if "messages" in path else "openai", True))
            for prefix in ("openai", "anthropic", "local"):
                self.assertEqual(self.asks("POST", f"/{prefix}{path}"), (prefix, True))
            for method in ("GET", "DELETE", "PUT", "post"):
                self.assertEqual(self.asks(method, f"/local{path}"), ("local", False))
            for other in (path + "/", path + "/x", path.upper(), path.replace("v", "%76"), "/v2" + path):
                self.assertEqual(self.asks("POST", f"/local{other}"), ("local", False), other)
        for path in ("/v1/models", "/v1/files", "/v1/responses/resp_1", "/v1/organization/admin_api_keys", "/"):
            self.assertEqual(self.asks("POST", f"/openai{path}"), ("openai", False))

    def asks(self, method: str, path: str) -> tuple[str, bool] | None:
        """Whom a request goes to, and whether it asks a model; L{None}: it is not the gateway's."""
        to = self.gateway._table.decide(_head(path.encode(), method.encode()), path.encode())
        return None if to is None else (to.provider.name, to.inference)

    def test_models(self) -> None:
        """A list of models is Anthropic's where the client speaks as Anthropic's do."""
        for line in ("anthropic-version: 2023-06-01", "X-Api-Key: k", "x-api-key: k\r\nX-API-Key: k"):
            _, there = self.ask(get("/v1/models", line), "anthropic")
            self.assertIn(b"Host: api.anthropic.com\r\n", there.take())
            there.end.abortConnection()
            self.net.run()
        self.assertEqual(self.reached(), ["anthropic"])

    def test_not_asked(self) -> None:
        """Whatever is not in the table is the site's own, whole."""
        for method, target in NOT_ASKED:
            heard = self.line().say(request(target, "Content-Type: application/json", method=method))
            self.assertEqual((status_of(heard), heard.partition(b"\r\n\r\n")[2]), (200, b"ours: " + target.encode()))
        self.assertEqual(self.reached(), [])

    def test_many_paths(self) -> None:
        """More paths than are remembered, and longer ones, go where they belong all the same."""
        for number in range(1100):
            self.assertIsNone(self.gateway._table.decide(_head(b"/nothing/%d" % number), b"/nothing/%d" % number))
        long = "/local/" + "x" * 5000
        _, there = self.ask(get(long), "local")
        self.assertIn(b"GET /base/path/" + b"x" * 5000 + b" ", there.take())

    def test_little_is_remembered(self) -> None:
        """Neither a long path nor a long method stays in memory."""
        remembered = self.gateway._table._remembered
        for method, path in (("GET", "/openai/" + "x" * 300), ("M" * 300, "/openai/x")):
            self.line().say(request(path, method=method, body=b""))
            self.assertEqual(remembered.cache_info().currsize, 0, method)
        self.line().say(get("/openai/x"))
        self.assertEqual(remembered.cache_info().currsize, 1)


class OwnPortTests(GatewayCase):
    """A provider that is configured to be this daemon."""

    own_ports = (7001, 9)

    def test_own_port(self) -> None:
        """What would come back to this daemon is not sent."""
        heard = self.line().say(get("/local/x"))
        self.assertEqual(self.refused(heard, 502, "network_error")["error"]["code"], "network_error")
        self.assertEqual(self.reached(), [])


def _head(target: bytes, method: bytes = b"GET") -> Any:
    return parse_request(method + b" " + target + b" HTTP/1.1\r\nHost: h\r\n\r\n")
