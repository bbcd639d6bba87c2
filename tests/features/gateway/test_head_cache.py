"""A client's later requests, whose heads are not read where they look like the one before: nothing else changes."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from tests.features.gateway.case import HOST, KEY, OK, GatewayCase, Line, Peer, get, request, status_of
from tests.features.gateway.test_injected_calls import KEYED, SECRET, InjectedCase

FIELDS = ("X-Stainless-Lang: python", "Connection: keep-alive, x-mine", "X-Mine: 1", "Authorization: Bearer sk-own")


class HeadCacheTests(GatewayCase):
    """Several requests on one connection."""

    def setUp(self) -> None:
        """Count the heads that the gateway is asked about."""
        super().setUp()
        self.asked_about = 0
        route = self.gateway.route

        def counted(head: Any, client: Any) -> Any:
            self.asked_about += 1
            return route(head, client)

        self.patch(self.gateway, "route", counted)

    def after_two(self, *requests: bytes) -> tuple[Line, Peer]:
        """A client that has sent this twice, and its provider."""
        line, there = self.ask(requests[0])
        for each in (*requests[1:], requests[-1]):
            there.end.write(OK)
            self.assertEqual(self.after(line), OK)
            line.say(each)
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)
        there.take()
        return line, there

    def test_lengths(self) -> None:
        """Every length arrives as it would on a fresh connection, head and body, in one piece or in many."""
        line, there = self.after_two(request("/v1/completions?a=b", *FIELDS))
        for size in (2, 0, 1, 9, 10, 1000, 70_000, 3):
            body = b"x" * size
            said = request("/v1/completions?a=b", *FIELDS, body=body)
            if not body:
                said = said.replace(b"\r\n\r\n", b"\r\nContent-Length: 0\r\n\r\n")
            line.say(said[:40] if size == 9 else said)
            if size == 9:
                line.say(said[40:])
            heard = there.take()
            there.end.write(OK)
            self.assertEqual(self.after(line), OK)
            fresh = self.line()
            fresh.say(said)
            self.assertEqual(heard, there.take())
            there.end.write(OK)
            self.after(fresh)
        self.assertEqual(self.asked_about, 2 + 8)  # those of the fresh lines

    def test_pipelined(self) -> None:
        """So does what was sent without waiting, each in its turn."""
        first = request(body=b"1234567890")
        line, there = self.after_two(first)
        line.say(first + request(body=b"abc"))
        self.assertTrue(there.take().endswith(b"\r\n\r\n1234567890"))
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)
        self.assertTrue(there.take().endswith(b"Content-Length: 3\r\n\r\nabc"))
        self.assertEqual(self.asked_about, 2)

    def test_without_bodies(self) -> None:
        """Heads without a body are known again as well, and those of HEAD have answers without one."""
        line, there = self.after_two(get())
        line.say(get())
        self.assertEqual(there.take(), b"GET /x HTTP/1.1\r\nHost: api.openai.com\r\n\r\n")
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)
        self.assertEqual(self.asked_about, 2)
        for _ in range(3):
            line.say(request("/openai/x", method="HEAD", body=b""))
            there.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
            self.assertEqual(self.after(line), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")

    def test_another_in_between(self) -> None:
        """What differs in anything else is looked at anew, and so is what follows it."""
        line, _ = self.after_two(get())
        self.assertIn(b"ours: /else", line.say(request("/else", method="GET", body=b"")))
        for target in ("/openai/y", "/openai/x", "/local/z", "/openai/x"):
            line.say(get(target))
            place = self.places["local" if "local" in target else "openai"]
            self.assertIn(f"/{target[-1]} HTTP/1.1".encode(), place.peers[-1].take())
            place.peers[-1].end.write(OK)
            self.assertEqual(self.after(line), OK)
        self.assertEqual(self.asked_about, 2 + 1 + 4)

    def test_refused_later(self) -> None:
        """However often a client was right, fields, Host, path, length and the vault are judged for each request."""
        self.patch(self.gateway, "_settings", evolve(self.settings, max_body_bytes=10))
        for before, said, status in (
            (get(), get("/openai/x", "Origin: null"), 403),
            (get(), get("/openai/../x"), 400),
            (get(), get().replace(HOST.encode(), b"evil:1"), 400),
            (request(), request(body=b"x" * 11), 413),
        ):
            line, there = self.after_two(before)
            self.assertEqual(status_of(line.say(said)), status)
            self.assertEqual(there.take(), b"")
        line, there = self.after_two(get())
        self.vault.lock()
        self.refused(line.say(get()), 403, "vault_locked")
        self.assertEqual(there.take(), b"")

    def test_session_ended_later(self) -> None:
        """So is the session, whose requests count for it."""
        session = self.session()
        line, there = self.after_two(get("/openai/x", KEYED))
        line.say(get("/openai/x", KEYED))
        self.assertNotIn(KEY.encode(), there.take())
        self.assertEqual([meter.begun[1] for meter in self.meters.all], [session.id] * 3)
        there.end.write(OK)
        self.after(line)
        self.keys.in_memory.clear()
        self.keys.in_store = {key: evolve(one, ended_at=one.started_at) for key, one in self.keys.in_store.items()}
        self.refused(line.say(get("/openai/x", KEYED)), 403, "forbidden")

    def test_first_is_not_remembered(self) -> None:
        """Of a client that has sent one request only nothing is kept: most streams are such."""
        line, _ = self.ask(request())
        channel: Any = line.end.other.protocol
        self.assertIsNone(channel._known)


class InjectedHeadCacheTests(InjectedCase):
    """The same where a key is put in."""

    def test_revoked_later(self) -> None:
        """The key is asked for each, and stands in each."""
        line, there = self.ask(request("/v1/responses", KEYED))
        for length in (2, 3, 40):
            there.end.write(OK)
            self.assertEqual(self.after(line), OK)
            there.take()
            line.say(request("/v1/responses", KEYED, body=b"x" * length))
            heard = there.take()
            self.assertIn(b"Bearer " + SECRET + b"\r\n", heard)
            self.assertIn(b"Content-Length: %d\r\n" % length, heard)
        there.end.write(OK)
        self.after(line)
        self.vault.lock()
        self.refused(line.say(request("/v1/responses", KEYED)), 400)
