"""Requests that a client's library sends again by itself are the first, after a restart of the daemon as well."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import count

from twisted.python.components import proxyForInterface

from aileron.features.inband._calls import AGAIN_SECONDS, RequestIds
from aileron.model.errors import StoreUnavailable
from aileron.model.interfaces.store import IInBandMemories

from .case import CHAT, KEY, WAITING, InBandCase, asked, chunk, head
from .provider import Called
from .wires import CHAT as CHAT_WIRE
from .wires import MESSAGES, RESPONSES

SHIP = Called("c1", "ship", '{"to": "you"}')
PATHS = {
    CHAT: (CHAT_WIRE, "openai"),
    "/inband/openai/v1/responses": (RESPONSES, "openai"),
    "/inband/anthropic/v1/messages": (MESSAGES, "anthropic"),
}


class MemoriesProxy(proxyForInterface(IInBandMemories)):  # type: ignore[misc]
    """A store to be made worse."""


class RetriesTests(InBandCase):
    """Requests sent again."""

    def _keys(self, *lines: str, calls: Sequence[Called] = (SHIP,), model: str = "m", path: str = CHAT) -> list[str]:
        """Send a request of which the model makes these calls, leave, and tell their idempotency keys."""
        before, (wire, place) = len(self.tools.called), PATHS[path]
        body = {**asked(), "input": "hello", "model": model}
        line, there = self.ask(self.post(body, *lines, path=path), place)
        self.next_request(there)
        there.end.write(head() + b"".join(map(chunk, wire.events(calls))) + b"0\r\n\r\n")
        self.net.run()
        line.end.loseConnection()
        self.wait(1)
        return [key for _, _, key, _ in self.tools.called[before:]]

    def test_sent_again(self) -> None:
        """The same call of a request that an SDK sends again is the same run, whatever its id, or its place in a turn.

        It is another where the request is not marked as sent again, or says something else.
        """
        again = "X-Stainless-Retry-Count: 1"
        self.tools.answers = [WAITING]
        first = self._keys("X-Stainless-Retry-Count: 0")
        moved = Called("c9", "ship", '{ "to" : "you" }')
        self.assertEqual(self._keys(again, calls=[Called("c8", "look_up"), moved])[1:], first)
        self.assertEqual(self._keys("X-Stainless-Retry-Count: 2"), first)
        twice = self._keys(again, calls=[SHIP, moved])
        self.assertEqual((twice[0], twice[1] in first), (first[0], False))
        self.assertNotEqual(self._keys(again, calls=[Called("c1", "ship", '{"to": "them"}')]), first)
        self.assertNotEqual(self._keys(again, model="n"), first)
        other = self._keys()
        self.assertNotEqual(other, first)
        self.assertEqual(self._keys(again), other)
        labelled = self._keys("Idempotency-Key: a")
        self.assertEqual(self._keys("idempotency-key: a"), labelled)
        self.assertNotIn(self._keys("Idempotency-Key: b"), [first, other, labelled])

    def test_sent_again_elsewhere(self) -> None:
        """What is sent again is the same request at each daemon, whichever of them knew it when, whatever their clocks.

        It is a new one after half an hour by the database's clock.
        """
        again, ids = "\r\nX-Stainless-Retry-Count: 1", count(1)
        daemons = [RequestIds(lambda: str(next(ids)), self.store.in_band) for _ in range(3)]

        def ask(
            number: int, lines: str = again, body: bytes = b"a", session_id: str = "s", *, calls: bool = True
        ) -> str:
            request = self.do(daemons[number].find(session_id, lines.encode(), body))
            return str((self.do(daemons[number].keep(session_id, request)) if calls else request).id)

        first = ask(0, "\r\nX-Stainless-Retry-Count: 0", calls=False)
        second = ask(1)
        self.assertNotEqual(second, first)
        self.clock.advance(AGAIN_SECONDS)
        self.assertEqual([ask(number) for number in (0, 1, 2)], [second] * 3)
        self.assertNotIn(ask(0, session_id="t"), (first, second))
        query = "UPDATE in_band_requests SET seen_at = '2001-01-01T00:00:00.000000Z' WHERE session_id = 's'"
        self.successResultOf(self.store.in_band._writer.write(lambda cursor: cursor.execute(query)))  # type: ignore[attr-defined]
        self.assertNotIn(ask(2), (first, second))

    def test_sent_again_after_a_restart(self) -> None:
        """A request of which calls were made is the same to the daemon's next life, in all three protocols."""
        for path in PATHS:
            first = self._keys("X-Stainless-Retry-Count: 0", path=path)
            for number in (1, 2):
                self.build()
                self.assertEqual(self._keys(f"X-Stainless-Retry-Count: {number}", path=path), first)
            self.build()
            self.assertNotEqual(self._keys(path=path), first)
            labelled = self._keys("Idempotency-Key: a", path=path)
            self.build()
            self.assertEqual(self._keys("Idempotency-Key: a", path=path), labelled)

    def test_repeated_on_purpose(self) -> None:
        """The same body, sent anew while the daemon restarts, is not the request before when it is retried."""
        body = {**asked(), "input": "hello", "model": "m"}
        for lives in (1, 2):
            first = self._keys("X-Stainless-Retry-Count: 0")
            if lives == 2:
                self.build()
            line, _ = self.ask(self.post(body, "X-Stainless-Retry-Count: 0"), "openai")
            line.end.loseConnection()  # nothing has been called when the daemon is killed
            self.build()
            second = self._keys("X-Stainless-Retry-Count: 1")
            self.assertNotEqual(second, first)
            self.build()
            self.assertEqual(self._keys("X-Stainless-Retry-Count: 2"), second)

    def test_stored_before_its_calls(self) -> None:
        """What is sent again is known before anything is run; if it cannot be stored, nothing is run."""
        order: list[str] = []

        class Memories(MemoriesProxy):
            """A store that notes when it is asked."""

            async def keep_request(self, session_id: str, digest: bytes, request_id: str) -> None:
                """Note it."""
                order.append(f"kept after {len(tools.called)} calls")
                if len(order) > 1:
                    raise StoreUnavailable("The disk is full.")

        tools = self.tools
        self.build(memories=Memories(self.store.in_band))
        self._keys()
        self.assertEqual((order, len(tools.called)), (["kept after 0 calls"], 1))
        self._keys()
        self.assertEqual((order[1:], len(tools.called)), (["kept after 1 calls"], 1))

    def test_sent_again_twice_at_once(self) -> None:
        """Of two tries that come at once to two daemons, both are the same request."""
        daemons = [RequestIds(partial(str, name), self.store.in_band) for name in ("one", "other")]
        found = [self.do(each.find("s", b"\r\nX-Stainless-Retry-Count: 1", b"a")) for each in daemons]
        kept = [self.do(each.keep("s", request)).id for each, request in zip(daemons, found, strict=True)]
        self.assertEqual(kept, ["one", "one"])


class KeyTests(InBandCase):
    """The session's in-band key in a request's own body."""

    def test_removed(self) -> None:
        """The key does not go to the provider, in any protocol; that is recorded once, and nothing else changes."""
        url = f"http://127.0.0.1:1/s/{KEY}/inband/openai/v1"
        for path, (_, place) in PATHS.items():
            for _ in range(2):
                body = {**asked(), "input": "hello", "env": {"OPENAI_BASE_URL": url, KEY: 1}}
                _, there = self.ask(self.post(body, path=path), place)
                heard = there.take()
                self.assertNotIn(KEY.encode(), heard)
                sent = json.loads(heard.partition(b"\r\n\r\n")[2])
                mask = "x" * len(KEY)
                self.assertEqual(sent["env"], {"OPENAI_BASE_URL": url.replace(KEY, mask), mask: 1})
        recorded = [each.payload["warnings"] for each in self.events("in_band.warned")]
        self.assertEqual(recorded, [["The request's body held the session's in-band key. It was removed."]])
