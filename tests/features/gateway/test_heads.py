"""What of a head goes on, both ways, and what does not."""

from __future__ import annotations

from tests.features.gateway.case import HOST, KEY, OK, GatewayCase, get, request, status_of


def lines_of(heard: bytes) -> list[bytes]:
    """The field lines of the first head."""
    return heard.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]


class RequestHeadTests(GatewayCase):
    """Towards the provider."""

    def sent(self, *lines: str, target: str = "/v1/chat/completions", provider: str = "openai") -> bytes:
        """What the provider hears of a request with these fields."""
        return self.ask(request(target, *lines), provider)[1].take()

    def test_host(self) -> None:
        """The Host is the provider's, where the client's stood."""
        raw = f"GET /local/x?q=%2e%2e/..&r HTTP/1.1\r\nA: 1\r\nhOsT:  {HOST}\r\nB: 2\r\n\r\n".encode()
        _, there = self.ask(raw, "local")
        self.assertEqual(
            there.take(), b"GET /base/path/x?q=%2e%2e/..&r HTTP/1.1\r\nA: 1\r\nhOsT: 127.0.0.1:9\r\nB: 2\r\n\r\n"
        )

    def test_hop_by_hop(self) -> None:
        """What is of one hop, by its name or because Connection names it, stays; nothing else does."""
        heard = self.sent(
            "Connection: Keep-Alive, X-One",
            "connection:x-TWO ,,",
            "X-One: 1",
            "x-two: 2",
            "X-Three: 3",
            "Keep-Alive: timeout=5",
            "TE: trailers",
            "Upgrade: h2c",
            "Proxy-Authorization: Basic eA==",
            "Proxy-Connection: keep-alive",
            "Trailer: X-T",
            "Test: 4",
        )
        self.assertEqual(
            lines_of(heard), [b"Host: api.openai.com", b"X-Three: 3", b"Trailer: X-T", b"Test: 4", b"Content-Length: 2"]
        )

    def test_each_alone(self) -> None:
        """One line of one hop is enough, in whatever letters and however often."""
        for name in ("Connection", "keep-alive", "PROXY-AUTHENTICATE", "Proxy-Connection", "tE", "upGRADE"):
            line = f"{name}: x\r\n".encode()
            for lines in (line, line + b"X-End: 2\r\n" + line.lower()):
                answer = b"HTTP/1.1 200 OK\r\n" + lines + b"Content-Length: 2\r\n\r\nok"
                self.assertEqual(self.answered(get(), answer), answer.replace(line, b"").replace(line.lower(), b""))

    def test_empty_connection(self) -> None:
        """A Connection that names nothing takes nothing with it, either way."""
        for value in ("", ",", " , ", "close,"):
            heard = self.sent(f"Connection: {value}", "X-A: 1")
            self.assertEqual(lines_of(heard), [b"Host: api.openai.com", b"X-A: 1", b"Content-Length: 2"], value)
        answer = b"HTTP/1.1 200 OK\r\nConnection: ,\r\nContent-Length: 2\r\n\r\nok"
        self.assertEqual(self.answered(get(), answer), OK)

    def test_framing_is_not_for_one_hop(self) -> None:
        """Who names Host or a length in Connection does not change what the request is."""
        heard = self.sent("Connection: host, content-length, close")
        self.assertEqual(lines_of(heard), [b"Host: api.openai.com", b"Content-Length: 2"])

    def test_key_field(self) -> None:
        """The gateway key stays here, whatever case its field is written in."""
        self.session()
        heard = self.sent("A: 1", f"x-AILERON-gateway-KEY: {KEY}", "B: 2")
        self.assertEqual(lines_of(heard), [b"Host: api.openai.com", b"A: 1", b"B: 2", b"Content-Length: 2"])


class AnswerHeadTests(GatewayCase):
    """Towards the client."""

    def test_interim(self) -> None:
        """Interim answers go on as soon as they come, without what is of one hop, and the final one after them."""
        line, there = self.ask(request("/v1/messages", "Expect: 100-continue"), "anthropic")
        there.end.write(b"HTTP/1.1 100 Continue\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n")
        self.assertEqual(self.after(line), b"HTTP/1.1 100 Continue\r\n\r\n")
        there.end.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 20")
        self.assertEqual(self.after(line), b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 P\r\n\r\n")
        there.end.write(OK[len(b"HTTP/1.1 20") :])
        self.assertEqual(self.after(line), OK)

    def test_long_head(self) -> None:
        """A head that does not end is not waited for."""
        line, there = self.ask(get())
        there.end.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000)
        self.assertEqual(status_of(self.after(line)), 502)
        self.assertTrue(there.lost)
