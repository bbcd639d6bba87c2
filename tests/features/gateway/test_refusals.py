"""What is refused before anything leaves: with which status, in whose shape."""

from __future__ import annotations

from aileron.features.gateway._admission import GatewaySwitch
from aileron.features.gateway.values import Ending
from aileron.model.errors import NetworkError
from aileron.model.vault import VaultState
from aileron.testing import MemoryVault
from tests.features.gateway.case import HOST, OK, GatewayCase, get, request, status_of

TOKENS = tuple(f"ail_{kind}_" + "t" * 43 for kind in "aolgi")

BROWSERS = (
    "Origin: https://evil.example",
    f"Origin: http://{HOST}",
    "Origin: null",
    "Sec-Fetch-Site: same-origin",
    "Sec-Fetch-Site: cross-site",
    "sec-fetch-dest: document",
    "Sec-Fetch-Mode: cors\r\nSec-Fetch-Site: same-site",
)

WALKS = (
    "/local/../x",
    "/local/x/..",
    "/local/.",
    "/local/./x",
    "/local/x/%2e%2E/y",
    "/local/.%2e/y",
    "/local/%2e/y",
    "/local/x/..;/y",
    "/local/x/%2e%2e;a=b/y",
    "/local/x\\..\\y",
    "/local/x%5c..%5Cy",
    "/local/x%2fy",
    "/local/x%2Fy",
    "/local/x#/../y",
    "/api/../v1/messages",
    "/v1/models/../messages",
    "/v1/models/..",
)


class PrefixTests(GatewayCase):
    """Paths of both providers' APIs that are relayed below a prefix alone."""

    def test_named(self) -> None:
        """Files and batches without a prefix are refused, whatever their type, with the base URL that relays them."""
        multipart = "Content-Type: multipart/form-data; boundary=x"
        for target, line, prefix in (
            ("/v1/files", multipart, "/openai/v1"),
            ("/v1/batches", "Content-Type: application/json", "/openai/v1"),
            ("/v1/audio/transcriptions", multipart, "/openai/v1"),
            ("/v1/files/file-1/content", "X: 1", "/openai/v1"),
            ("/v1/messages/batches", "anthropic-version: 2023-06-01", "/anthropic/v1"),
            ("/v1/files?limit=1", "x-api-key: k", "/anthropic/v1"),
        ):
            body = self.refused(self.line().say(request(target, line)), 404, "not_found")
            self.assertIn(f"{prefix},", body["error"]["message"])
            self.assertIn("gateway.providers", body["error"]["message"])
        self.assertEqual(self.reached(), [])

    def test_with_a_prefix(self) -> None:
        """Below the prefix the same goes to the provider."""
        _, there = self.ask(request("/openai/v1/files", "Content-Type: multipart/form-data; boundary=x"))
        self.assertTrue(there.heard.startswith(b"POST /v1/files HTTP/1.1\r\n"))

    def test_no_api(self) -> None:
        """Paths that neither API has are the site's own."""
        for target in ("/v1/filesystem", "/v2/files", "/files", "/v1/messages/other", "/v1/actions"):
            self.assertIn(b"ours:", self.line().say(get(target)), target)


class ShapeTests(GatewayCase):
    """Each provider's shape, each route's status."""

    def test_shapes(self) -> None:
        """A refusal has the shape of the provider's own, and a status that the clients of its route show at once."""
        openai = {"error": {"type": "invalid_request_error", "param": None, "code": "forbidden"}}
        anthropic = {"type": "error", "error": {"type": "permission_error"}}
        for status, shape, *targets in (
            (403, openai, "/v1/chat/completions", "/local/x"),
            (400, openai, "/v1/responses", "/openai/v1/responses", "/chatgpt/responses"),
            (403, anthropic, "/v1/messages", "/api/hello", "/anthropic/x"),
        ):
            for target in targets:
                body = self.refused(self.line().say(request(target, BROWSERS[0])), status, "forbidden")
                self.assertIn("browser", body["error"].pop("message"))
                self.assertEqual(body, shape, target)

    def test_head(self) -> None:
        """A refused HEAD is answered without a body."""
        heard = self.line().say(request("/", BROWSERS[0], method="HEAD", body=b""))
        head, _, body = heard.partition(b"\r\n\r\n")
        self.assertEqual((status_of(head), body), (403, b""))

    def test_websocket(self) -> None:
        """A WebSocket upgrade on codex's route is answered 426 at once, and nothing is sent."""
        lines = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
        heard = self.line().say(get("/v1/responses", *lines))
        self.refused(heard, 426, "invalid_request")
        self.assertIn(b"\r\nUpgrade: ", heard)
        self.assertEqual(self.reached(), [])

    def test_upgrade_elsewhere(self) -> None:
        """Elsewhere an upgrade is one hop's, and the request goes on without it."""
        _, there = self.ask(get("/openai/x", "Connection: Upgrade", "Upgrade: websocket"))
        self.assertNotIn(b"pgrade", there.take())

    def test_body_behind(self) -> None:
        """A refusal reaches a client that goes on sending, once, and its connection is closed soon."""
        line = self.line()
        heard = line.say(request("/v1/messages", BROWSERS[0], body=b"x" * 100_000)[:-1])
        heard += line.say(b"x" + request())
        self.refused(heard, 403, "forbidden")
        self.wait(3)
        self.assertTrue(line.lost)
        self.assertFalse(line.end.other.connected)
        self.assertEqual(self.reached(), [])


class RefusedTests(GatewayCase):
    """What is refused."""

    def forbidden(self, *lines: str, target: str = "/v1/messages") -> None:
        """Assert that it is, with 403, and goes nowhere."""
        self.refused(self.line().say(request(target, *lines)), 403, "forbidden")
        self.assertEqual(self.reached(), [], lines)

    def test_browsers(self) -> None:
        """Whatever only a browser sends is refused; Node's fetch sends the mode alone."""
        for line in BROWSERS:
            self.forbidden(line)
        _, there = self.ask(request("/v1/messages", "Sec-Fetch-Mode: cors"), "anthropic")
        self.assertIn(b"Sec-Fetch-Mode: cors\r\n", there.take())

    def test_cookies(self) -> None:
        """A cookie of ours, wherever in the field; another's passes."""
        for value in ("aileron_s=1", "a=1; aileron_s=1", "a=1;aileron_s=1", "a=1,\taileron_s=1"):
            self.forbidden(f"Cookie: {value}")
        _, there = self.ask(request("/v1/messages", "Cookie: a=1; b=xaileron_"), "anthropic")
        self.assertIn(b"Cookie: a=1; b=xaileron_\r\n", there.take())

    def test_tokens(self) -> None:
        """A token of ours, wherever in the head; what only looks like one passes."""
        for token in TOKENS:
            self.forbidden(f"Authorization: Bearer {token}")
            self.forbidden(f"x-api-key: {token}")
            self.forbidden(f"x-api-key: a\r\nX-Api-Key: {token}")
            self.forbidden(f"Cookie: a={token}")
            self.forbidden(f"X-{token}: 1")
            self.forbidden(target=f"/v1/messages?key={token}")
            self.forbidden(target=f"/anthropic/{token}/x")
            self.forbidden("Connection: x-a", f"X-A: {token}")
        _, there = self.ask(request("/v1/messages", "x-api-key: ail_x_" + "t" * 43), "anthropic")
        self.assertIn(b"ail_x_", there.take())

    def test_walks(self) -> None:
        """A path that some servers take for another one, and a method that would make a tunnel of the connection."""
        for target in WALKS:
            self.refused(self.line().say(get(target)), 400, "invalid_request")
        self.refused(self.line().say(request("/openai/x", method="CONNECT", body=b"")), 403, "forbidden")
        self.assertEqual(self.reached(), [])

    def test_dots_that_do_not_walk(self) -> None:
        """Names with dots, and whatever stands in a query, pass."""
        for target in ("/local/...", "/local/.x/..y/z..", "/local/a?b=/../%2f\\"):
            _, there = self.ask(get(target), "local")
            self.assertIn(target.removeprefix("/local").encode(), there.take())
            there.end.abortConnection()
            self.net.run()

    def test_long_head(self) -> None:
        """A head of more than 64 KiB, whole or not, is refused; one of less passes."""
        for end in ("\r\n\r\n", ""):
            heard = self.line().say(get("/openai/x").strip() + b"\r\nX: " + b"x" * 66_000 + end.encode())
            self.assertEqual(status_of(heard), 431)
        self.assertEqual(self.reached(), [])
        self.assertEqual(self.answered(get("/openai/x", "X: " + "x" * 60_000), OK), OK)


class VaultTests(GatewayCase):
    """A vault that is shut."""

    def test_states(self) -> None:
        """Locked or lost: refused on every route, and counted; where there is none yet, what needs none passes."""
        for state in (VaultState.LOCKED, VaultState.LOST):
            self.gateway._door = GatewaySwitch(MemoryVault(state), self.clock)
            for target, status in (("/v1/messages", 403), ("/v1/chat/completions", 403), ("/v1/responses", 400)):
                self.refused(self.line().say(request(target)), status, "vault_locked")
        self.assertEqual((self.reached(), {meter.ending for meter in self.meters.all}), ([], {Ending.REFUSED}))
        self.gateway._door = GatewaySwitch(MemoryVault(VaultState.MISSING), self.clock)
        self.line().say(request("/v1/messages"))
        self.assertEqual(self.reached(), ["anthropic"])


class UnreachableTests(GatewayCase):
    """Providers that cannot be reached."""

    def test_cause(self) -> None:
        """The cause is told, with 502, in the provider's shape."""
        self.places["anthropic"].open = False
        line = self.line()
        line.say(request("/v1/messages"))
        self.places["anthropic"].refuse(NetworkError("api.anthropic.com refused the connection."))
        body = self.refused(self.after(line), 502, "network_error")
        self.assertEqual(body["error"], {"type": "api_error", "message": "api.anthropic.com refused the connection."})
        self.assertEqual(self.meters.all[0].ending, Ending.UNREACHABLE)

    def test_anything_else(self) -> None:
        """Another failure is told as one of the network, without its words."""
        self.places["openai"].open = False
        line = self.line()
        line.say(request())
        self.places["openai"].refuse(ValueError("secret"))
        body = self.refused(self.after(line), 502, "network_error")
        self.assertNotIn("secret", str(body))
        self.assertEqual(body["error"]["type"], "server_error")
