"""Calls into which the gateway puts a key, from the client's bytes to the provider's and back."""

from __future__ import annotations

from attrs import evolve

from aileron.features.gateway._injection import SecretLeak
from aileron.features.gateway.values import ANTHROPIC, OPENAI, Ending, GatewaySettings, UpstreamSource
from aileron.model.vault import NewBinding
from tests.features.gateway.case import KEY, OK, GatewayCase, get, request, status_of

SECRET = b"sk-canary-0123456789"
BOUND = evolve(OPENAI, credential="api_key/openai/default")
MOVED = evolve(
    ANTHROPIC,
    credential="api_key/anthropic/default",
    base_url="http://127.0.0.1:8",
    source=UpstreamSource.ENVIRONMENT,
)
KEYED = f"X-Aileron-Gateway-Key: {KEY}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class InjectedCase(GatewayCase):
    """Providers whose keys are bound, one of which is elsewhere now."""

    settings = GatewaySettings((BOUND, MOVED))

    def setUp(self) -> None:
        """Bind the keys; there is a live session."""
        super().setUp()
        for provider in (BOUND, evolve(MOVED, base_url=ANTHROPIC.base_url)):
            scope = provider.scope()
            self.bindings.add(NewBinding("api_key", provider.name, "default", provider.fqn, SECRET, scope=scope))
        self.session()


class RequestTests(InjectedCase):
    """What the provider gets."""

    def test_key(self) -> None:
        """The key stands where the agent's stood, whatever Connection says; host and path are the provider's."""
        named = "Connection: authorization, accept-encoding, keep-alive"
        lines = (KEYED, "Authorization: Bearer dummy", "Accept-Encoding: br", named)
        there = self.ask(request("/v1/responses?a=b", *lines))[1]
        head = b"POST /v1/responses?a=b HTTP/1.1\r\nHost: api.openai.com\r\nContent-Length: 2\r\n"
        ours = b"authorization: Bearer " + SECRET + b"\r\naccept-encoding: identity\r\n\r\n"
        self.assertEqual(there.take(), head + ours + b"{}")

    def test_sent_again(self) -> None:
        """A request that is sent again on a fresh connection has the key too."""
        line, first = self.ask(request("/v1/responses", KEYED))
        first.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        self.after(line)
        first.take()
        first.end.loseConnection()
        line.say(request("/v1/responses", KEYED))
        self.assertIn(SECRET, self.places["openai"].peers[-1].take())

    def test_locked_meanwhile(self) -> None:
        """Where the vault is locked while the connection is opened, on the first try or another, nothing leaves."""
        place = self.places["openai"]
        line, first = self.ask(request("/v1/responses", KEYED))
        first.end.write(OK)
        self.after(line)
        place.open = False
        line.say(request("/v1/responses", KEYED))
        first.end.loseConnection()
        other = self.line()
        other.say(request("/v1/responses", KEYED))
        self.vault.lock()
        for waiting in (line, other):
            there = place.accept()
            self.refused(self.after(waiting), 400, "vault_locked")
            self.assertEqual(there.heard, b"")
            self.assertTrue(there.lost)

    def test_refused(self) -> None:
        """Without a live session, for what asks no model, or for elsewhere nothing is sent; the class says why."""
        unknown = f"X-Aileron-Gateway-Key: ail_g_{'u' * 43}"
        for asked, status, kind in (
            (request("/v1/chat/completions"), 403, "unauthorized"),
            (request("/v1/responses"), 400, "unauthorized"),
            (request("/v1/responses", unknown), 400, "forbidden"),
            (get("/v1/models", KEYED), 403, "forbidden"),
            (request("/openai/v1/files", KEYED), 403, "forbidden"),
            (request("/v1/messages", KEYED), 403, "binding_failed"),
        ):
            self.refused(self.line().say(asked), status, kind)
        self.assertEqual(self.reached(), [])

    def test_ended(self) -> None:
        """A session that has ended gets no key, however often it asks."""
        self.keys.in_memory.clear()
        self.session(live=False)
        for _ in range(2):
            self.refused(self.line().say(request("/v1/responses", KEYED)), 400, "forbidden")
        self.assertEqual(self.reached(), [])


class AnswerTests(InjectedCase):
    """What the client gets."""

    def test_passes(self) -> None:
        """An answer passes byte for byte, though it ends as the key begins; then the connection serves again."""
        line, there = self.ask(request("/v1/responses", KEYED))
        for answer in (
            b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhere: sk-c",
            CHUNKED + b"3\r\nsk-\r\n4\r\ncana\r\n0\r\n\r\n",
        ):
            there.end.write(answer)
            self.assertEqual(self.after(line), answer)
            self.assertEqual(line.say(request("/v1/responses", KEYED)), b"")
        there.end.write(b"HTTP/1.1 200 OK\r\n\r\nsk")
        there.end.loseConnection()
        self.assertTrue(self.after(line).endswith(b"\r\n\r\nsk"))
        self.assertEqual([each.ending for each in self.meters.all], [Ending.COMPLETE] * 3)
        self.assertEqual(self.echoes, [])

    def test_stream(self) -> None:
        """Each event passes as it comes."""
        line, there = self.ask(request("/v1/responses", KEYED))
        there.end.write(CHUNKED)
        self.after(line)
        for event in (b"9\r\ndata: s\n\n\r\n", b"b\r\ndata: sk-\n\n\r\n"):
            there.end.write(event)
            self.assertEqual(self.after(line), event)

    def test_echo_at_once(self) -> None:
        """An answer that begins with the key becomes a refusal, and its connection is not used again."""
        for answer in (
            b"HTTP/1.1 401 No\r\nX-Sent: %s\r\n\r\n" % SECRET,
            b"HTTP/1.1 401 No\r\nContent-Length: %d\r\n\r\n%s" % (len(SECRET), SECRET),
            b"HTTP/1.1 103 Early\r\nX-Sent: %s\r\n\r\n" % SECRET,
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
        ):
            heard = self.answered(request("/v1/responses", KEYED), answer)
            self.refused(heard, 502, "external_api_error")
            self.assertNotIn(SECRET, heard)
        self.assertEqual(len(self.places["openai"].peers), 4)
        self.assertEqual([echo.kind for echo in self.echoes], ["plain"] * 3)

    def test_echo_later(self) -> None:
        """An answer in which the key comes later breaks off before it; both connections are dropped."""
        line, there = self.ask(request("/v1/responses", KEYED))
        there.end.write(CHUNKED + b"6\r\nfirst \r\n")
        self.assertEqual(status_of(self.after(line)), 200)
        for byte in SECRET:
            there.end.write(b"1\r\n%c\r\n" % byte)
        there.end.write(b"0\r\n\r\n")
        self.assertEqual(self.after(line), b"")
        self.assertTrue(line.lost)
        self.assertTrue(there.lost)
        ours = next(each for each in self.bindings.list() if each.name == BOUND.credential)
        self.assertEqual(self.echoes, [SecretLeak(BOUND, ours, self.keys.in_memory.popitem()[1], "plain")])
        self.assertEqual(self.meters.all[0].ending, Ending.CUT)
