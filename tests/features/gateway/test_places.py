"""Who keeps a place on the agents' site while calls to providers fill it."""

from __future__ import annotations

import hashlib

from attrs import evolve

from aileron.testing import example_session
from tests.features.gateway.case import OK, GatewayCase, Line, Peer, get, request, status_of


class PlacesTests(GatewayCase):
    """A site with eight places, of which six can be kept."""

    most_connections = 8

    def setUp(self) -> None:
        """Two sessions, and no end to silence."""
        self.settings = evolve(type(self).settings, silence_seconds=10_000.0)
        super().setUp()
        for name in ("ann", "ben"):
            digest = hashlib.sha256(self.key(name).encode()).digest()
            self.keys.in_store[digest] = self.keys.in_memory[digest] = evolve(example_session("ses1"), id=name)

    def key(self, name: str) -> str:
        """The gateway key of a session."""
        return "ail_g_" + name[0] * 43

    def call(self, name: str) -> tuple[Line, Peer]:
        """A call of a session that its provider has not answered yet."""
        line = self.line()
        self.assertEqual(line.say(get("/openai/x", f"X-Aileron-Gateway-Key: {self.key(name)}")), b"")
        return line, self.places["openai"].peers[-1]

    def assert_answered(self, line: Line, there: Peer) -> None:
        """Assert that an answer goes its way."""
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)

    def test_greedy_session(self) -> None:
        """A session that has taken every place gives up what another session asks for."""
        greedy = [self.call("ann") for _ in range(20)]
        modest = [self.call("ben") for _ in range(3)]
        for _ in range(20):
            self.line().say(get())
        for line, there in modest:
            self.assert_answered(line, there)
        self.assertEqual(sum(not line.lost for line, _ in greedy), 3)

    def test_without_a_key(self) -> None:
        """Calls without a key give way, those that have not ended their request like those that wait."""
        uploads = [self.line() for _ in range(8)]
        for line in uploads:
            line.say(request(body=b"{}")[:-1])
        waiting = [self.line() for _ in range(8)]
        for line in waiting:
            line.say(get())
        line, there = self.call("ann")
        self.assertEqual([bool(each.lost) for each in (*uploads, *waiting)], [True] * 9 + [False] * 7)
        self.assert_answered(line, there)

    def test_unknown_key(self) -> None:
        """A key that nobody has keeps nothing."""
        self.line().say(get("/openai/x", "X-Aileron-Gateway-Key: ail_g_" + "z" * 43))
        self.assertEqual(len(self.site.limiter._owners), 0)

    def test_between_calls(self) -> None:
        """The connection of a session stays between its calls as well."""
        line, there = self.call("ann")
        self.assert_answered(line, there)
        for _ in range(20):
            self.line()
        line.say(get("/openai/x", f"X-Aileron-Gateway-Key: {self.key('ann')}"))
        self.assert_answered(line, there)

    def test_unread_answer(self) -> None:
        """An answer that its client reads late is cut by nobody who comes meanwhile."""
        line, _ = self.unread(
            get("/openai/x", f"X-Aileron-Gateway-Key: {self.key('ann')}", "Connection: close"), 60_000
        )
        for _ in range(20):
            self.line().say(get())
        line.end.resumeProducing()
        heard = self.after(line)
        self.assertEqual((status_of(heard), heard.count(b"x")), (200, 60_000))

    def test_unread_for_ever(self) -> None:
        """A client that leaves its whole answer unread for ever is dropped when there are too many."""
        lines = [self.unread(get("/openai/x", "Connection: close"))[0] for _ in range(10)]
        self.wait(500, step=10)
        self.assertEqual(sum(line.end.other.connected for line in lines), 8)
