"""Which requests ask a model something: of those alone the answers tell tokens, and they alone get a key put in."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.gateway._routes import RouteTable, routes
from aileron.http1 import parse_request
from aileron.values import ANTHROPIC, OPENAI, GatewaySettings, Provider

GROQ = Provider("groq", "https://groq.invalid/openai", "/groq")
ASK = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
)


class ModelCallsTests(SynchronousTestCase):
    """What the route table says of them."""

    def setUp(self) -> None:
        """A table of three providers."""
        self.table = RouteTable(routes(GatewaySettings((OPENAI, ANTHROPIC, GROQ))))

    def asks(self, method: str, path: str) -> tuple[str, bool] | None:
        """Whom a request goes to, and whether it asks a model; L{None}: it is not the gateway's."""
        to = self.table.decide(parse_request(f"{method} {path} HTTP/1.1\r\n\r\n".encode()), path.encode())
        return None if to is None else (to.provider.name, to.inference)

    def test_asked(self) -> None:
        """A named route asks, at the root as below each provider's prefix."""
        for path in ASK:
            whose = "anthropic" if "messages" in path else "openai"
            self.assertEqual(self.asks("POST", path), (whose, True))
            for provider in (OPENAI, ANTHROPIC, GROQ):
                self.assertEqual(self.asks("POST", provider.prefix + path), (provider.name, True))

    def test_not_asked(self) -> None:
        """Another method or path asks for something else, and so does what only looks like such a path."""
        for path in ASK:
            for method in ("GET", "DELETE", "PUT", "post"):
                self.assertEqual(self.asks(method, GROQ.prefix + path), ("groq", False))
            for other in (path + "/", path + "/x", path.upper(), path.replace("v", "%76"), "/v2" + path):
                self.assertEqual(self.asks("POST", GROQ.prefix + other), ("groq", False), other)
        for path in ("/v1/models", "/v1/files", "/v1/responses/resp_1", "/v1/organization/admin_api_keys", "/"):
            self.assertEqual(self.asks("POST", OPENAI.prefix + path), ("openai", False))
        self.assertEqual(self.asks("GET", "/v1/models"), ("openai", False))
