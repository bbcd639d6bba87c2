"""Where bodies end, both ways; and what follows them on the same connections."""

from __future__ import annotations

from attrs import evolve

from tests.features.gateway.case import HOST, OK, GatewayCase, get, request, status_of

CHUNKS = b"5;a=b\r\nhello\r\n0\r\nX-Trailer: 1\r\nX-Other: 2\r\n\r\n"
PLAIN_CHUNKS = b"5;a=b\r\nhello\r\n0\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS


def chunked_request(body: bytes = PLAIN_CHUNKS) -> bytes:
    """A request of unknown length."""
    return f"POST /v1/messages HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + body


class AnswerBodyTests(GatewayCase):
    """Answers."""

    def test_ends(self) -> None:
        """An answer ends where its length or chunks say, or with its head; both connections then serve another."""
        asked = request("/openai/x", method="HEAD", body=b"")
        for first, answer in (
            (get(), OK),
            (get(), CHUNKED),
            (get(), b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            (asked, b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
            (asked, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            (asked, b"HTTP/1.1 200 OK\r\n\r\n"),
            (get(), b"HTTP/1.1 204 No Content\r\n\r\n"),
            (get(), b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"),
            (get(), b"HTTP/1.1 304 Not Modified\r\n\r\n"),
        ):
            line, there = self.ask(first)
            there.end.write(answer)
            self.assertEqual(self.after(line), answer)
            there.take()
            line.say(get())
            self.assertIn(b"GET /x ", there.take())
            there.end.write(OK)
            self.assertEqual(self.after(line), OK)

    def test_piecemeal(self) -> None:
        """Every byte goes on when it comes, not later."""
        line, there = self.ask(get())
        head, body = CHUNKED[: -len(CHUNKS)], CHUNKS
        for byte in head[:-1]:
            there.end.write(bytes([byte]))
            self.assertEqual(self.after(line), b"")
        there.end.write(head[-1:])
        self.assertEqual(self.after(line), head)
        for byte in body:
            there.end.write(bytes([byte]))
            self.assertEqual(self.after(line), bytes([byte]))

    def test_close_said_by_provider(self) -> None:
        """A provider that will close, or speaks HTTP/1.0, is asked no more; the client's connection stays."""
        for count, first in enumerate((b"HTTP/1.1 200 OK\r\nConnection: close", b"HTTP/1.0 200 OK"), 1):
            line, there = self.ask(get())
            there.end.write(first + b"\r\nContent-Length: 2\r\n\r\nok")
            self.assertEqual(self.after(line), OK)
            self.assertEqual(
                (bool(there.lost), bool(line.lost), len(self.places["openai"].peers)), (True, False, count)
            )
        line.say(get())
        self.assertEqual(len(self.places["openai"].peers), 3)

    def test_close_said_by_client(self) -> None:
        """A client that will close is told so and closed; the provider's connection is kept."""
        line, there = self.ask(get("/openai/x", "Connection: close"))
        there.end.write(OK)
        heard = self.after(line)
        self.assertEqual(heard, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        self.assertTrue(line.lost)
        self.assertFalse(there.lost)
        self.ask(get())
        self.assertEqual(len(self.places["openai"].peers), 1)


class RequestBodyTests(GatewayCase):
    """Requests."""

    def test_trailer(self) -> None:
        """Fields after the body were judged by nobody: they are refused, and no byte of them goes on, however cut."""
        whole = chunked_request(CHUNKS)
        start = whole.index(b"X-Trailer")
        for cut in (start - 2, start, start + 1, start + 10):
            line = self.line()
            heard = line.say(whole[:cut]) + line.say(whole[cut:])
            self.assertEqual((status_of(heard), b"send them before it" in heard), (400, True), cut)
            there = self.places["anthropic"].peers[-1]
            self.assertNotIn(b"X-", there.take().partition(b"\r\n\r\n")[2])
            self.assertTrue(there.lost)

    def test_piecemeal(self) -> None:
        """A request goes on from the end of its head, each byte when it comes."""
        whole = chunked_request()
        start = whole.index(b"\r\n\r\n") + 4
        line = self.line()
        line.say(whole[: start - 1])
        self.assertEqual(self.reached(), [])
        line.say(whole[start - 1 : start])
        there = self.places["anthropic"].peers[0]
        self.assertTrue(there.take().endswith(b"\r\n\r\n"))
        for byte in whole[start:]:
            line.say(bytes([byte]))
            self.assertEqual(there.take(), bytes([byte]))
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)

    def test_pipelining(self) -> None:
        """Requests that come at once are carried one after the other, ours among them, and answered in their order."""
        line = self.line()
        line.say(get("/openai/1") + chunked_request() + get("/ours") + get("/openai/2") + get("/openai/3")[:-1])
        openai = self.places["openai"].peers[0]
        self.assertEqual(self.reached(), ["openai"])
        openai.end.write(OK)
        self.assertEqual(self.after(line), OK)
        self.places["anthropic"].peers[0].end.write(CHUNKED)
        heard = self.after(line)
        self.assertTrue(heard.startswith(CHUNKED + b"HTTP/1.1 200 OK\r\n"))
        self.assertIn(b"ours: /ours", heard)
        self.assertTrue(openai.take().endswith(b"\r\n\r\n"))
        openai.end.write(OK)
        self.assertEqual(self.after(line), OK)
        self.assertEqual(openai.take(), b"")
        line.say(b"\n")
        self.assertIn(b"GET /3 ", openai.take())

    def test_early_answer(self) -> None:
        """An answer that comes before the request is whole goes on at once, and ends both connections."""
        line, there = self.ask(request(body=b"x" * 100)[:-50])
        there.end.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        heard = self.after(line)
        self.assertEqual(heard, b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        self.assertTrue(there.lost)
        line.say(b"y" * 50 + get())
        self.assertEqual(len(self.places["openai"].peers), 1)

    def test_early_stream(self) -> None:
        """Request and answer may stream at the same time."""
        line, there = self.ask(chunked_request(b""), "anthropic")
        there.take()
        there.end.write(CHUNKED[: -len(CHUNKS)])
        self.assertIn(b"Connection: close", self.after(line))
        line.say(b"1\r\na\r\n")
        self.assertEqual(there.take(), b"1\r\na\r\n")
        there.end.write(CHUNKS[:10])
        self.assertEqual(self.after(line), CHUNKS[:10])
        line.say(b"0\r\n\r\n")
        self.assertEqual(there.take(), b"0\r\n\r\n")
        there.end.write(CHUNKS[10:])
        self.assertEqual(self.after(line), CHUNKS[10:])
        self.assertTrue(line.lost)

    def test_early_answer_to_a_provider_that_reads_nothing(self) -> None:
        """A provider that answered early and reads no more does not keep its connection."""
        line, there = self.ask(request(body=b"x" * 900_000)[:-50])
        there.end.pauseProducing()
        line.say(b"y" * 40)
        there.end.write(OK)
        self.after(line)
        self.assertFalse(there.end.other.connected)

    def test_broken_chunks_with_the_head(self) -> None:
        """A body that is broken as soon as it comes is refused once, and nothing is asked of anybody."""
        heard = self.line().say(chunked_request(b"zz\r\n"))
        self.refused(heard, 400, "invalid_request")
        self.assertEqual(self.reached(), [])
        self.wait(200)
        self.assertEqual(self.meters.all, [])

    def test_unasked_answer_just_before_a_request(self) -> None:
        """A connection that said something unasked serves nobody, not even a request of the same turn."""
        line, there = self.ask(get())
        there.end.write(OK)
        self.after(line)
        there.take()
        there.end.other.protocol.dataReceived(b"HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n")
        line.end.other.protocol.dataReceived(get())
        self.assertEqual(len(self.places["openai"].peers), 2)
        self.net.run()
        self.assertEqual(there.take(), b"")


class CapTests(GatewayCase):
    """A cap on requests' bodies."""

    def setUp(self) -> None:
        """One of ten bytes."""
        self.settings = evolve(type(self).settings, max_body_bytes=10)
        super().setUp()

    def test_bounds(self) -> None:
        """A length beyond it is refused before anybody is asked, chunks when they come, framing counted."""
        heard = self.line().say(request(body=b"x" * 11)[:-11])
        self.refused(heard, 413, "resource_limit_exceeded")
        self.assertEqual(self.reached(), [])
        line, there = self.ask(chunked_request(b"4\r\nabcd"), "anthropic")
        self.refused(line.say(b"\r\n4\r\nabcd"), 413)
        self.assertTrue(there.lost)
        self.assertEqual(self.answered(request(body=b"x" * 10), OK), OK)
        self.assertEqual(self.answered(chunked_request(b"0\r\n\r\n"), OK, "anthropic"), OK)
