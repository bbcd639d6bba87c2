"""Requests that limits refuse are not sent, and what was sent is charged, whatever a provider says."""

from __future__ import annotations

import gzip
import hashlib
import json

from attrs import evolve

from aileron.features.spending._guard import EAGER_A_SECOND
from aileron.features.spending._request import MOST_HELD_BYTES
from aileron.features.spending.values import Per, Runaway, Unit
from aileron.model.usage import Spent
from tests.features.gateway import case as cases
from tests.features.gateway.case import KEY, request, status_of

from .case import SpendCase, answer_of, chat, limit

_STREAM = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(text: str) -> bytes:
    """A chunk of a stream."""
    data = text.encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


class GuardTests(SpendCase):
    """Requests that are decided by their heads."""

    def test_refused(self) -> None:
        """A request beyond a limit is refused in the form of its provider, and nothing is sent."""
        self.session()
        self.limited(limit(15))
        self.assertEqual(status_of(self.spend()), 200)
        self.assertEqual(self.all_used(), Spent(1, 10, 5, 0, 60))
        line, there = self.begin()
        self.assertIsNone(there)
        body = self.refused(self.after(line), 403, "limit_exceeded")
        self.assertEqual((body["error"]["type"], body["error"]["code"]), ("invalid_request_error", "limit_exceeded"))
        self.assertIn("15 tokens of 15 tokens", body["error"]["message"])
        line, there = self.begin(path="/v1/messages")
        self.assertIsNone(there)
        body = self.refused(self.after(line), 403, "limit_exceeded")
        self.assertEqual((body["type"], body["error"]["type"]), ("error", "permission_error"))
        line, there = self.begin(path="/v1/responses")
        self.assertIsNone(there)
        self.refused(self.after(line), 400, "limit_exceeded")

    def test_free(self) -> None:
        """What costs nothing is neither limited nor counted: lists, counting tokens, and Claude Code's own calls."""
        self.session()
        self.limited(limit(1, Unit.REQUESTS))
        self.spend()
        for free in (
            cases.get("/v1/models"),
            request("/v1/messages/count_tokens"),
            request("/api/event_logging/batch"),
            cases.get("/openai/v1/files"),
        ):
            line = self.line()
            line.say(free)
            self.assertEqual(self.after(line), b"", free)
        for costs in ("/openai/v1/batches", "/openai/v1/images/generations", "/anthropic/v1/messages/batches"):
            line, there = self.begin(path=costs)
            self.assertIsNone(there, costs)
            self.refused(self.after(line), 403, "limit_exceeded")
        self.assertEqual(self.all_used().requests, 1)

    def test_between(self) -> None:
        """A stream that passes a limit goes on to its end; the next request is refused, however soon it comes."""
        self.session()
        self.limited(limit(100, per=Per.SESSION))
        line, there = self.begin(b'{"stream":true}')
        assert there is not None
        there.end.write(_STREAM.encode())
        for _ in range(50):
            there.end.write(chunk('data: {"choices":[{"delta":{"content":"word"}}]}\n\n'))
        other, _ = self.begin(session=True, body=b"{}" * 5000)
        there.end.write(chunk('data: {"choices":[],"usage":{"prompt_tokens":90,"completion_tokens":50}}\n\n'))
        there.end.write(chunk("data: [DONE]\n\n") + b"0\r\n\r\n")
        self.net.run()
        line.end.write(request(f"/s/{KEY}/v1/chat/completions"))
        self.net.run()
        heard = line.take()
        self.assertEqual((heard.count(b'"word"'), heard.count(b"[DONE]")), (50, 1))
        self.assertIn(b"HTTP/1.1 403 Forbidden", heard)
        self.assertIn(b"140 tokens of 100 tokens", heard)
        self.refused(self.after(other), 403)  # since what the stream may use was reserved
        self.assertEqual(self.all_used().tokens, 140)

    def test_parallel(self) -> None:
        """Of ten requests at once, as many pass as the limit has units."""
        self.session()
        self.limited(limit(3, Unit.REQUESTS))
        begun = [self.begin() for _ in range(10)]
        sent = [there for _, there in begun if there is not None]
        self.assertEqual(len(sent), 3)
        sent[0].end.write(answer_of(chat()))
        self.net.run()
        self.assertIsNone(self.begin()[1])
        self.assertEqual(self.ledger.states()[0].held, 2)

    def test_not_sent(self) -> None:
        """A request that did not reach its provider costs nothing and gives back what it reserved."""
        self.session()
        self.limited(limit(1, Unit.REQUESTS))
        self.places["openai"].open = False
        line = self.line()
        line.say(request(f"/s/{KEY}/v1/chat/completions"))
        self.assertIsNone(self.begin()[1])
        self.places["openai"].refuse(OSError("no"))
        self.assertEqual(status_of(self.after(line)), 502)
        self.assertEqual((self.all_used(), self.ledger.states()[0].held), (Spent(), 0))

    def test_left(self) -> None:
        """A client that leaves pays an estimate, since its provider may have answered."""
        self.session()
        self.limited(limit(1000))
        line, there = self.begin(b"x" * 400)
        assert there is not None
        there.end.write(_STREAM.encode() + chunk("data: {}\n\n" * 80))
        self.net.run()
        line.go(politely=False)
        self.net.run()
        self.wait(1, 0.01)
        (used,) = self.ledger.totals().values()
        self.assertEqual((used.requests, used.input, used.estimated), (1, 100, 1))
        self.assertGreater(used.output, 80)

    def test_errors_of_the_provider(self) -> None:
        """An error of the provider counts as a request, and no tokens."""
        self.session()
        self.limited(limit(1000))
        self.spend(b"x" * 4000, answer_of("{}").replace(b"200 OK", b"529 Busy"))
        self.assertEqual(self.all_used(), Spent(requests=1))

    def test_no_session(self) -> None:
        """Requests without a gateway key count together as one session, so leaving the key out gains nothing."""
        self.session()
        self.limited(limit(1, Unit.REQUESTS, Per.SESSION))
        self.spend(session=False)
        self.assertIsNone(self.begin(session=False)[1])
        self.assertIsNotNone(self.begin()[1])

    def test_unread(self) -> None:
        """If the limits set by commands cannot be read, nothing passes."""
        self.session()
        self.put("[[limit]]\ntokens = 5\n")
        self.path.write_text("[[limit]]\ntokens = 500000000\n")
        self.limited()
        line, there = self.begin()
        self.assertIsNone(there)
        body = self.refused(self.after(line), 403, "forbidden")
        self.assertIn("aileron config trust", body["error"]["message"])

    def test_not_loaded(self) -> None:
        """Before it is known what was used, nothing passes that has a limit."""
        self.session()
        self.limited(limit(10))
        self.gate._is_open = self.gate._is_settled = False
        line, there = self.begin()
        self.assertIsNone(there)
        self.refused(self.after(line), 403, "store_unavailable")
        self.limited()
        self.gate._is_open = self.gate._is_settled = False
        self.assertIsNotNone(self.begin()[1])

    def test_trusted(self) -> None:
        """Limits of a file count as soon as it is trusted, and no later than the trust."""
        self.session()
        self.spend()
        self.put("[[limit]]\nrequests = 1\n", trusted=False)
        self.wait(2)
        self.spend()
        self.put("[[limit]]\nrequests = 1\n")
        self.wait(1)
        self.assertIsNone(self.begin()[1])
        self.put("[[limit]]\nrequests = 100\n", trusted=False)
        self.wait(2)
        self.assertIsNone(self.begin()[1])

    def test_runaway(self) -> None:
        """Too many requests within a minute are stopped."""
        self.session()
        self.limited(runaway=Runaway(per_minute=2))
        for _ in range(2):
            self.spend()
        self.assertIsNone(self.begin()[1])
        self.assertEqual([each[0] for each in self.told], ["ses1"])
        self.wait(61)
        self.assertIsNotNone(self.begin()[1])

    def test_flood(self) -> None:
        """Under a flood what answers used is not read before each request, and requests count all the same."""
        self.session()
        self.limited(limit(10**6))
        self.spend(answer=answer_of(chat(300_000)))
        self.all_used()
        read, reading = 0, self.gate._read_usage

        def count(session: str | None, most: int) -> int:
            nonlocal read
            found = reading(session, most)
            read += found
            return found

        self.gate._read_usage = count
        sent = 1
        for _ in range(200):
            sent += status_of(self.spend()) == 200
        self.assertGreater(sent, 150)
        self.assertEqual(read, EAGER_A_SECOND)
        self.assertEqual((self.all_used().requests, self.ledger.states()[0].held), (sent, 0))


class GrantTests(SpendCase):
    """Requests far from their limits, of which several are reserved for at once."""

    def test_exact(self) -> None:
        """A request that uses more than its part of a grant counts before the next one."""
        self.session()
        self.limited(limit(1_000_000))
        for _ in range(3):
            self.spend()
        self.spend(answer=answer_of(chat(2_000_000)))
        self.wait(0.2, 0.01)
        line, there = self.begin()
        self.assertIsNone(there)
        self.assertIn("2,000,050 tokens of 1,000,000", self.refused(self.after(line), 403)["error"]["message"])

    def test_all_pass(self) -> None:
        """A limit of requests lets exactly so many pass, whatever was granted, of one session or several."""
        self.session()
        self.limited(limit(40, Unit.REQUESTS), limit(10**9))
        passed = [status_of(self.spend(session=number % 2 == 0)) for number in range(50)]
        self.assertEqual((passed.count(200), passed.count(403), passed[:40].count(200)), (40, 10, 40))
        self.assertEqual(self.all_used().requests, 40)

    def test_in_progress(self) -> None:
        """Requests in progress keep their part, also while limits change; those that end give it back."""
        self.session()
        self.limited(limit(40, Unit.REQUESTS))
        begun = [self.begin() for _ in range(39)]
        self.gate.look()
        self.assertEqual(self.ledger.states()[0].held, 39)
        self.ledger.set_rules(self.ledger.rules, ())
        self.assertEqual(self.ledger.states()[0].held, 39)
        self.assertIsNotNone(self.begin()[1])
        self.assertIsNone(self.begin()[1])
        begun[3][0].go(politely=False)
        self.net.run()
        self.assertIsNone(self.begin()[1])
        self.all_used()
        self.assertEqual((self.ledger.states()[0].used, self.ledger.states()[0].held), (1, 39))

    def test_limits_removed(self) -> None:
        """Nothing stays reserved for requests that ended while there was no limit."""
        self.session()
        self.limited(limit(40, Unit.REQUESTS))
        begun = [self.begin() for _ in range(20)]
        rules = self.ledger.rules
        self.ledger.set_rules((), ())
        for line, _ in begun:
            line.go(politely=False)
        self.net.run()
        self.all_used()
        self.ledger.set_rules(rules, ())
        (state,) = self.ledger.states()
        self.assertEqual((state.held, state.used), (0, self.all_used().requests))

    def test_not_sent(self) -> None:
        """A request that was not sent gives its part back."""
        self.session()
        self.limited(limit(40, Unit.REQUESTS))
        self.spend()
        self.spend()
        self.places["openai"].open = False
        self.pools["openai"].close()
        for _ in range(50):
            line = self.line()
            line.say(request(f"/s/{KEY}/v1/chat/completions"))
            self.places["openai"].refuse(OSError("no"))
            self.assertEqual(status_of(self.after(line)), 502)
        self.assertEqual((self.all_used().requests, self.ledger.states()[0].held), (2, 0))


class HeldTests(SpendCase):
    """Requests that are read before they are sent."""

    def setUp(self) -> None:
        super().setUp()
        self.session()
        self.limited(limit(1_000_000, Unit.MONEY), limit(100, model="gpt-5*"))

    def test_refused(self) -> None:
        """A limit on a model refuses requests to it, and lets others pass."""
        self.spend({"model": "gpt-5", "max_tokens": 7}, answer_of(chat(90, 10, "gpt-5-2026")))
        line, there = self.begin(b'{"model":"gpt-5-mini"}')
        self.assertIsNone(there)
        self.assertIn("model gpt-5*", self.refused(self.after(line), 403)["error"]["message"])
        self.assertEqual(status_of(self.spend({"model": "claude-x"})), 200)
        self.all_used()
        self.assertEqual({key.model for key in self.ledger.totals()}, {"gpt-5", "claude-x"})

    def test_money(self) -> None:
        """Money is counted by the prices of the models, and refuses in the same way."""
        self.limited(limit(500, Unit.MONEY))
        self.spend({"model": "claude-x"}, answer_of(chat(100, 20)))
        self.assertEqual(self.all_used().microdollars, 600)
        line, there = self.begin(b'{"model":"claude-x"}')
        self.assertIsNone(there)
        self.assertIn("$0.0006 of $0.0005", self.refused(self.after(line), 403)["error"]["message"])

    def test_no_model(self) -> None:
        """What names no model that can be read is not sent where a limit depends on it."""
        for body, *fields in (
            (b"{}",),
            (b"\x28\xb5\x2f\xfd",),
            (b'{"model":"claude-x","model":"gpt-5"}',),
            (gzip.compress(b'{"model":"claude-x"}'), "Content-Encoding: gzip"),
            (b"",),
        ):
            line, there = self.begin(body, *fields)
            self.assertIsNone(there, body)
            self.refused(self.after(line), 403, "forbidden")

    def test_no_price(self) -> None:
        """A model without a price is not sent where a limit on money counts it, and otherwise is."""
        line, there = self.begin(b'{"model":"unknown"}')
        self.assertIsNone(there)
        self.assertIn("gateway.prices", self.refused(self.after(line), 403)["error"]["message"])
        self.limited(limit(10**6, Unit.MONEY, provider="anthropic"))
        self.assertEqual(status_of(self.spend({"model": "unknown"}, answer_of(chat(model="unknown")))), 200)
        self.assertEqual(self.all_used().unpriced, 1)

    def test_pieces(self) -> None:
        """A request is held until it is complete, and then sent as it came."""
        body = json.dumps({"messages": ["x" * 20_000], "model": "claude-x"}).encode()
        whole = request(f"/s/{KEY}/v1/chat/completions", body=body)
        line = self.line()
        for at in range(0, len(whole), 3000):
            self.assertEqual(self.reached(), [])
            line.end.write(whole[at : at + 3000])
            self.net.run()
        (peer,) = self.places["openai"].peers
        self.assertTrue(peer.heard.endswith(body))
        peer.end.write(answer_of(chat()))
        self.assertEqual(status_of(self.after(line)), 200)

    def test_held_refused(self) -> None:
        """A request that comes in pieces is refused as one that comes at once."""
        self.limited(limit(1, Unit.REQUESTS, model="gpt-5"))
        self.spend({"model": "gpt-5"})
        whole = request(f"/s/{KEY}/v1/chat/completions", body=b'{"model":"gpt-5"}')
        line = self.line()
        self.assertEqual(line.say(whole[:-3]), b"")
        self.refused(line.say(whole[-3:]), 403, "limit_exceeded")
        chunked = request(f"/s/{KEY}/v1/chat/completions", "Transfer-Encoding: chunked", body=b"")
        line = self.line()
        self.refused(line.say(chunked + chunk('{"model":"gpt-5"}') + b"0\r\n\r\n"), 403, "limit_exceeded")
        self.assertEqual(len(self.places["openai"].peers), 1)

    def test_long(self) -> None:
        """A request longer than what is read is refused."""
        line = self.line()
        line.end.write(request(f"/s/{KEY}/v1/chat/completions", f"Content-Length: {MOST_HELD_BYTES * 2}", body=b""))
        for _ in range(MOST_HELD_BYTES // 2**18 + 2):
            line.end.write(b"x" * 2**18)
            self.net.run()
        self.refused(self.after(line), 413, "resource_limit_exceeded")
        self.assertEqual(self.reached(), [])

    def test_ended_meanwhile(self) -> None:
        """A session that ends while its request is held sends nothing, and reserves nothing."""
        body = b'{"model":"claude-x"}'
        whole = request(f"/s/{KEY}/v1/chat/completions", body=body)
        line = self.line()
        line.say(whole[:-5])
        self.session(live=False)
        self.keys.in_memory.clear()
        self.assertEqual(status_of(line.say(whole[-5:])), 403)
        self.assertEqual(self.reached(), [])
        self.assertEqual([each.held for each in self.ledger.states()], [0, 0])

    def test_same(self) -> None:
        """The same request again and again is stopped; another one passes."""
        self.limited(runaway=Runaway(same_requests=2))
        for _ in range(2):
            self.spend({"a": 1})
        self.assertIsNone(self.begin(b'{"a": 1}')[1])
        self.assertEqual(status_of(self.spend({"a": 2})), 200)

    def test_provider_tools(self) -> None:
        """What is held for the limits is read for provider tools as well, and sent once."""
        kept = evolve(self.session(), notes_tools=True)
        digest = hashlib.sha256(KEY.encode()).digest()
        self.keys.in_memory[digest] = self.keys.in_store[digest] = kept
        body = {"model": "claude-x", "tools": [{"type": "web_search"}]}
        self.assertEqual(status_of(self.spend(body)), 200)
        self.wait(1, 0.01)
        self.assertEqual([str(each.tool) for each in self.notes.counts()], ["web_search"])
        self.assertEqual(self.all_used().requests, 1)


class ChargeTests(SpendCase):
    """What a request is charged."""

    def setUp(self) -> None:
        super().setUp()
        self.session()
        self.limited(limit(10**12))

    def charged(self, answer: bytes, body: bytes = b"x" * 40) -> Spent:
        """What is charged for this answer."""
        before = self.all_used()
        self.spend(body, answer)
        self.wait(1)
        after = self.all_used()
        names = ("requests", "input", "output", "cached", "microdollars", "estimated", "unpriced")
        return Spent(*(getattr(after, name) - getattr(before, name) for name in names))

    def test_beyond_belief(self) -> None:
        """Numbers that are negative, huge or no numbers count as none: an estimate is charged, and marked."""
        for number in ("-5", "1" + "0" * 18, "9" * 5000, "NaN", "1e9", '"7"', "[1]", "true", "1.5", str(10**8 + 1)):
            for told in (chat(number, 5), chat(5, number), chat(number, number)):
                found = self.charged(answer_of(told))
                self.assertEqual((found.requests, found.estimated, found.input), (1, 1, 10), told[:100])
                self.assertLess(found.output, 5000)
        self.assertEqual(self.charged(answer_of(chat(0, 0))).estimated, 1)

    def test_doubled(self) -> None:
        """Usage that is told twice counts once: the last one."""
        text = chat().replace('"choices"', '"usage":{"prompt_tokens":900,"completion_tokens":9},"choices"')
        self.assertEqual(self.charged(answer_of(text)).tokens, 15)
        events = "".join(
            f'data: {{"choices":[],"usage":{{"prompt_tokens":{n},"completion_tokens":1}}}}\n\n' for n in (7, 8)
        )
        self.assertEqual(self.charged(_STREAM.encode() + chunk(events) + b"0\r\n\r\n").tokens, 9)

    def test_compressed(self) -> None:
        """A compressed answer is read, and one in an unknown coding is estimated."""
        packed = gzip.compress(chat().encode())
        head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n"
        self.assertEqual(self.charged(head % (b"gzip", len(packed)) + packed).tokens, 15)
        found = self.charged(head % (b"br", len(packed)) + packed)
        self.assertEqual((found.estimated, found.input), (1, 10))
        bomb = gzip.compress(b" " * 30_000_000 + chat().encode())
        self.assertEqual(self.charged(head % (b"gzip", len(bomb)) + bomb).estimated, 1)

    def test_model(self) -> None:
        """The model is the one that the answer names, if the request was not read; a text in the answer is none."""
        self.charged(answer_of(chat(model="gpt-5-x")))
        text = json.dumps({"choices": [{"message": {"content": '"model":"fake"'}}], "model": "real"})
        self.charged(answer_of(text))
        self.charged(answer_of(chat(model="\u202eevil\u0007")))
        self.assertEqual({key.model for key in self.ledger.totals()}, {"gpt-5-x", "real", ""})

    def test_anthropic(self) -> None:
        """A stream of Anthropic's is charged with what it told first and last."""
        first = (
            'event: message_start\ndata: {"type":"message_start","message":{"model":"claude-x","usage":'
            '{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":1}}}\n\n'
        )
        last = 'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":25}}\n\n'
        line, there = self.begin(path="/v1/messages")
        assert there is not None
        there.end.write(_STREAM.encode() + chunk(first) + chunk(last) + b"0\r\n\r\n")
        self.after(line)
        self.wait(1)
        self.assertEqual(self.all_used(), Spent(1, 100, 25, 90, 10 * 3 + 90 * 3 // 10 + 25 * 15))
        self.assertEqual([key.model for key in self.ledger.totals()], ["claude-x"])

    def test_embeddings(self) -> None:
        """An answer without output is charged as it was told, however long it is."""
        text = json.dumps({"data": [0.5] * 5000, "model": "e", "usage": {"prompt_tokens": 8, "total_tokens": 8}})
        line, there = self.begin(path="/v1/embeddings")
        assert there is not None
        there.end.write(answer_of(text))
        self.after(line)
        self.wait(1)
        self.assertEqual((self.all_used().tokens, self.all_used().estimated), (8, 0))
