"""What clients and providers send that is made to take long, or to fill memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.inband._reading import SHORT_BYTES, LongReading
from aileron.features.inband._turns import BrokenReply
from aileron.features.inband._upstream import ProviderRequest, UpstreamCall
from aileron.features.inband.protocols import MOST_VALUES, Exchange
from aileron.features.inband.protocols.names import choose_names
from aileron.features.inband.protocols.requests import MOST_TOOLS
from aileron.features.inband.protocols.weight import ValueCounter, count_values
from aileron.model.errors import InvalidRequest
from tests.features.gateway.case import status_of
from tests.growth import times_as_long

from .case import InBandCase, asked, text_of
from .provider import Called, Said, event
from .wires import CHAT, MESSAGES, RESPONSES, WIRES, Wire, open_exchange

LINEAR = 4.0
_CALL = Called("c1", "ship_update")


def feeds(exchange: Exchange, events: Sequence[bytes]) -> Callable[[], object]:
    """Feed them, one by one."""
    return lambda: [exchange.feed(each) for each in events]


def chunk(delta: Any, ended: str | None = None) -> bytes:
    """A chunk of a chat completion."""
    return event({"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": ended}]})


def fragment(index: int, **call: Any) -> bytes:
    """A chunk with a fragment of a call."""
    return chunk({"tool_calls": [{"index": index, **call}]})


class GrowthTests(SynchronousTestCase):
    """The time that each of many takes is that of each of few."""

    def grows(self, prepare: Callable[[int], Callable[[], object]], few: int = 250, many: int = 2000) -> None:
        """Measure it."""
        self.assertLess(times_as_long(prepare, few, many), LINEAR)

    def test_names_that_begin_alike(self) -> None:
        """Many long names that differ at their ends alone, all of them to be renamed."""
        for wire in WIRES:
            self.grows(partial(_open_with_names, wire))

    def test_names_that_are_taken(self) -> None:
        """Many names that are those by which others would be renamed."""

        def prepare(count: int) -> Callable[[], object]:
            begin = f"agent_aileron_{'x' * 50}"
            taken = [f"{begin[: 63 - len(str(each))]}_{each}" for each in range(2, count // 2)]
            names = [f"aileron_{'x' * 70}{each}" for each in range(count // 2)]
            return lambda: CHAT.protocol(CHAT.request(*taken, *names)).open([_offered()])

        self.grows(prepare)

    def test_names_in_a_reply(self) -> None:
        """Names of a client's tools that the model sees under others, read back."""

        def prepare(count: int) -> Callable[[], object]:
            names = choose_names([_offered()], [f"aileron_{each}" for each in range(count)])
            seen = [*names.up.values()]
            return lambda: [names.down(each) for each in seen]

        self.grows(prepare)

    def test_half_calls(self) -> None:
        """Many ends of a response after as many calls that are the client's or may become ours."""
        for name in ("bash", "ship"):

            def prepare(count: int, name: str = name) -> Callable[[], object]:
                exchange = open_exchange(CHAT, CHAT.request())
                feeds(exchange, [fragment(each, id=f"c{each}", function={"name": name}) for each in range(count)])()
                return feeds(exchange, [chunk({}, "stop")] * count)

            self.grows(prepare, 250, 4000)

    def test_fields_in_pieces(self) -> None:
        """Many entries with an index of their own, and many pieces of one text, of a field that is not known."""
        for place in (lambda each: each, lambda _: 1):

            def prepare(count: int, place: Callable[[int], int] = place) -> Callable[[], object]:
                said = ([{"index": place(each), "text": "x" * 3000}] for each in range(count))
                return feeds(open_exchange(CHAT, CHAT.request()), [chunk({"reasoning_details": each}) for each in said])

            self.grows(prepare, 100, 3500)

    def test_counts(self) -> None:
        """Many counts of tokens, each under another name."""

        def prepare(count: int) -> Callable[[], object]:
            deltas = [{"type": "message_delta", "delta": {}, "usage": {f"u{each}": 1}} for each in range(count)]
            return feeds(open_exchange(MESSAGES, MESSAGES.request()), [*map(event, deltas)])

        self.grows(prepare, 100, 10_000)


def _offered() -> Any:
    return open_exchange(CHAT, CHAT.request())._names.ours["ship_update"]


def _open_with_names(wire: Wire, count: int) -> Callable[[], object]:
    body = wire.request(*(f"aileron_{'x' * 70}{each}" for each in range(count)))
    return lambda: open_exchange(wire, body).body


class RequestLimitTests(SynchronousTestCase):
    """What a client's request may have."""

    def test_tools(self) -> None:
        """A request with too many tools is refused before one of them is looked at."""
        for wire in WIRES:
            wire.protocol(b'{"tools":[%b]}' % b",".join([b"{}"] * MOST_TOOLS)).open([_offered()])
            for each in (b"1", b"{}", b'{"name":"x"}'):
                body = b'{"tools":[%b]}' % b",".join([each] * (MOST_TOOLS + 1))
                with self.assertRaises(InvalidRequest) as raised:
                    wire.protocol(body).open([_offered()])
                self.assertIn(f"{MOST_TOOLS} tools", raised.exception.message)

    def test_warnings(self) -> None:
        """However long a client's name is, what is put on record of it is short."""
        warnings = open_exchange(CHAT, CHAT.request(f"aileron_{'x' * 100_000}")).warnings
        self.assertLess(max(map(len, warnings)), 250)

    def test_held(self) -> None:
        """What is counted of an open request is what is held of it, and no value that was read."""
        some: Any = [{"content": [{"type": "text", "text": "✓"}]}] * 3000
        for wire in WIRES:
            body = wire.request(**{wire.history: some})
            open_exchange(wire, body)
            tracemalloc.start()
            try:
                exchange = open_exchange(wire, body)
                held = tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()
            self.assertLess(held, exchange.held_bytes + 40_000)
            self.assertEqual(json.loads(exchange.body)[wire.history], some)


class ReplyLimitTests(SynchronousTestCase):
    """What a provider's reply may have."""

    def test_values(self) -> None:
        """An event, and a document, of too many values is not read."""
        many = b'{"choices":[%b]}' % b",".join([b"{}"] * MOST_VALUES)
        for wire in WIRES:
            for stream in (True, False):
                exchange = open_exchange(wire, wire.request(stream=stream))
                with self.assertRaises(BrokenReply):
                    exchange.feed(b"data: %b\n\n" % many if stream else many)
                    exchange.end()

    def test_held(self) -> None:
        """Events that wait for the end are counted with what was read of them."""
        ended = chunk({"a": {}, "b": {}}, "stop")
        exchange = open_exchange(CHAT, CHAT.request())
        exchange.feed(ended)
        tracemalloc.start()
        try:
            before = exchange.held_bytes
            for _ in range(200):
                exchange.feed(ended)
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        self.assertLess(held, exchange.held_bytes - before)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner) | st.dictionaries(st.text('ab,[{"\\'), inner)


class CounterTests(SynchronousTestCase):
    """Counting values before they are read."""

    @given(st.recursive(st.none() | st.integers() | st.text('ab,[{"\\\n'), _containers), st.integers(1, 7))
    def test_pieces(self, value: Any, size: int) -> None:
        """However a text is cut, every value but the outermost is counted, and none much more than twice."""
        text = json.dumps(value).encode()
        counter = ValueCounter()
        for at in range(0, len(text), size):
            counter.feed(text[at : at + size])
        within = sum(1 for _ in _values(value)) - 1
        self.assertEqual(counter.count, count_values(text))
        self.assertGreaterEqual(counter.count, within)
        self.assertLessEqual(counter.count, 2 * within + 1)


def _values(value: Any) -> Iterator[Any]:
    yield value
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _values(each)


class BrokenThenCallsTests(SynchronousTestCase):
    """A response that broke stays so: nothing that the provider calls after that is run."""

    def test_not_run(self) -> None:
        """Neither calls after an error, nor those after an end by length, however the response then ends."""
        for wire, broken in _broken():
            exchange = open_exchange(wire, wire.request())
            exchange.feed(broken)
            exchange.feed(b"".join(wire.events([_CALL])))
            self.assertEqual(exchange.end().calls, (), (wire.name, broken))

    def test_an_error_in_a_document(self) -> None:
        """A document with an error and with calls is an error."""
        for wire in WIRES:
            exchange = open_exchange(wire, wire.request(stream=False))
            document = json.loads(wire.document([_CALL]))
            exchange.feed(json.dumps({**document, "error": {"message": "overloaded"}}).encode())
            self.assertEqual(exchange.end().calls, (), wire.name)

    def test_after_the_end(self) -> None:
        """A call that begins after the end of a response breaks it."""
        for wire in (MESSAGES, RESPONSES):
            exchange = open_exchange(wire, wire.request())
            with self.assertRaises(BrokenReply):
                exchange.feed(b"".join([*wire.events([Said("done")]), *wire.events([_CALL])]))
        exchange = open_exchange(CHAT, CHAT.request())
        exchange.feed(b"".join([*CHAT.events([Said("done")]), fragment(0, id="c1", function={"name": "ship_update"})]))
        self.assertRaises(BrokenReply, exchange.end)

    def test_never_done(self) -> None:
        """A call whose item was begun and never done is no call with no arguments."""
        exchange = open_exchange(RESPONSES, RESPONSES.request())
        events = [each for each in RESPONSES.events([_CALL]) if b"output_item.done" not in each]
        exchange.feed(b"".join(events))
        self.assertRaises(BrokenReply, exchange.end)


def _broken() -> Iterator[tuple[Wire, bytes]]:
    """For each protocol, what says that a response broke."""
    yield CHAT, event({"error": {"message": "overloaded"}})
    yield MESSAGES, event({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "error")
    yield RESPONSES, event({"type": "error", "message": "overloaded"}, "error")
    for stop in ("length", "content_filter"):
        yield CHAT, chunk({}, stop)
    for stop in ("max_tokens", "refusal", "pause_turn"):
        ending = {"type": "message_delta", "delta": {"stop_reason": stop}}
        yield MESSAGES, event(ending)
        yield MESSAGES, event(ending) + event({"type": "message_stop"})
    for status in ("incomplete", "failed"):
        yield RESPONSES, event({"type": f"response.{status}", "response": {"id": "r", "status": status}})


class _Taking:
    """A gateway with one exchange, which takes all that it is given."""

    taken = 0

    def route(self, head: Any, client: Any) -> _Taking:
        return self

    def exchange(self, length: int) -> _Taking:
        return self

    def take(self, data: bytes) -> None:
        self.taken += len(data)

    def start(self) -> None:
        """Begin."""

    def client_left(self) -> None:
        """End."""


class ServingTests(InBandCase):
    """Requests as they come."""

    def test_values(self) -> None:
        """A request with too many values is refused as soon as they are there, and not read."""
        whole = self.post(b'{"messages":[' + b"{}," * MOST_VALUES + b"{}]}")
        line = self.line()
        heard = line.say(whole[: len(whole) - 1000])
        self.assertEqual(status_of(heard), 413)
        self.assertIn(b"values", heard)
        self.assertEqual((self.reached(), self.handler.budget.held), ([], 0))

    def test_long_request_in_a_thread(self) -> None:
        """A long request is read in another thread, and others are served meanwhile."""
        waiting: list[tuple[Deferred[Any], Callable[[], Any]]] = []

        def in_thread(work: Callable[..., Any], *args: Any) -> Deferred[Any]:
            waiting.append((Deferred(), partial(work, *args)))
            return waiting[-1][0]

        self.build(in_thread=in_thread)
        line = self.line()
        line.say(self.post({**asked(), "more": "x" * SHORT_BYTES}))
        self.assertEqual((len(waiting), self.reached()), (1, []))
        other, there = self.begin()
        self.next_request(there)
        self.say(there, Said("meanwhile"))
        self.assertEqual(text_of(self.after(other)), "meanwhile")
        while waiting:
            answer, work = waiting.pop(0)
            answer.callback(work())
        self.assertEqual(len(self.next_request(self.places["openai"].peers[-1])["more"]), SHORT_BYTES)

    def test_long_request_in_pieces(self) -> None:
        """A long request goes on to the provider in pieces, with others' turns in between, and none once it is over."""
        for enough in (3_000_000, 1_000_000):
            taking, clock = _Taking(), Clock()
            upstream = UpstreamCall(clock)
            upstream.begin(ProviderRequest(taking, b"/v1/x", b"\r\nHost: x"), [b"{", b"x" * 2_000_000, b"}"])  # type: ignore[arg-type]
            while (calls := clock.getDelayedCalls()) and taking.taken < enough:
                before, call = taking.taken, cast("Any", calls[0])
                go_on = call.func
                call.cancel()
                go_on()
                self.assertLess(taking.taken - before, 600_000)
            upstream.abort()
            self.assertEqual((taking.taken > 2_000_000, clock.getDelayedCalls()), (enough > 2_000_000, []))

    def test_reply_is_counted(self) -> None:
        """What is held of a reply counts beside requests."""
        line, there = self.begin(stream=False)
        self.next_request(there)
        before = self.handler.budget.held
        there.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + b" " * 40_000)
        self.net.run()
        self.assertGreaterEqual(self.handler.budget.held, before + 80_000)
        line.end.loseConnection()
        self.wait(1)
        self.assertEqual(self.handler.budget.held, 0)

    def test_reply_beyond_the_budget(self) -> None:
        """A reply for which there is no room left ends visibly, and gives its room back."""
        self.handler.budget.most = 100_000
        line, there = self.begin(stream=False)
        self.next_request(there)
        there.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n" + b" " * 100_000)
        self.assertEqual(status_of(self.after(line)), 429)
        self.assertEqual(self.handler.budget.held, 0)


class TurnTests(SynchronousTestCase):
    """Turns of reading."""

    def test_one_of_each(self) -> None:
        """One reads at a time; of several of one session one waits beside other sessions."""
        reading, order = LongReading(maybeDeferred), list[str]()
        stacks: list[AsyncExitStack] = []

        async def take(name: str) -> None:
            stack = AsyncExitStack()
            await stack.enter_async_context(reading.turn(name[0], SHORT_BYTES + 1))
            order.append(name)
            stacks.append(stack)

        for name in ("a1", "a2", "a3", "b1"):
            Deferred.fromCoroutine(take(name))
        self.assertEqual(order, ["a1"])
        for _ in range(4):
            self.successResultOf(Deferred.fromCoroutine(stacks.pop(0).aclose()))
        self.assertEqual(order, ["a1", "b1", "a2", "a3"])

    def test_given_up(self) -> None:
        """One that is given up while it waits takes no turn."""
        reading, order = LongReading(maybeDeferred), list[str]()

        async def take(name: str) -> None:
            async with reading.turn("s", SHORT_BYTES + 1):
                order.append(name)
                await Deferred()

        first, second, _ = [Deferred.fromCoroutine(take(name)) for name in "123"]
        second.addErrback(lambda _: None)
        second.cancel()
        first.addErrback(lambda _: None)
        first.cancel()
        self.assertEqual(order, ["1", "3"])
