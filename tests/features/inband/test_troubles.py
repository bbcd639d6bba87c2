"""What is not complete, not sound or too much never looks as if it were, and nothing of it is run."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.inband._turns import MOST_ARGUMENTS, MOST_CALLS, MOST_HELD, BrokenReply, Memory
from aileron.features.inband.protocols import ChatRequest
from aileron.model.errors import InvalidRequest

from .client import events_of
from .provider import Called, Said, Thought, block, chat_call, event, item
from .wires import CHAT, MESSAGES, READ, RESPONSES, SHIP, WIRES, Wire, open_exchange, results

_values: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.integers(-1, 3), st.text(max_size=3), st.sampled_from([[], {}, [{}], True])
)
_CALL = Called("c1", "ship_update", '{"text":"x"}')


class UnfinishedTests(SynchronousTestCase):
    """Responses that end before they should."""

    def test_cut_off(self) -> None:
        """A stream that breaks off anywhere before its end is no turn, and the client reads an error."""
        for wire in WIRES:
            events = wire.events([Said("Hello"), Called("c1", "bash", '{"a":1}'), _CALL])
            ended = {"chat": 3, "messages": 1, "responses": 1}[
                wire.name
            ]  # chunks for the usage, and the mark of the end
            for count in range(len(events) - ended + 1):
                exchange = open_exchange(wire, wire.request("bash"))
                sent = exchange.feed(b"".join(events[:count]))
                self.assertRaises(BrokenReply, exchange.end)
                failed = sent + exchange.fail("The provider's response broke off.")
                if count and wire is not RESPONSES:
                    self.assertEqual(wire.read(exchange, failed).error, "The provider's response broke off.")
                self.assertIn(b"broke off", failed)

    def test_failed_response(self) -> None:
        """A response that was begun fails as itself; one that was not is an error by itself."""
        exchange = open_exchange(RESPONSES, RESPONSES.request())
        ((name, data),) = events_of(exchange.fail("no"))
        self.assertEqual((name, data["message"]), ("error", "no"))
        begun = exchange.feed(RESPONSES.events([Said("x")])[0])
        ((name, data),) = events_of(exchange.fail("no"))
        self.assertEqual((name, data["sequence_number"]), ("response.failed", 1))
        self.assertEqual(data["response"]["id"], events_of(begun)[0][1]["response"]["id"])
        self.assertEqual(data["response"]["status"], "failed")

    def test_too_few_tokens(self) -> None:
        """Where the model was cut off no call of ours is run, and the client reads why the reply ended."""
        cases: list[tuple[Wire, dict[str, Any], str]] = [
            (CHAT, {"stop": "length"}, "length"),
            (CHAT, {"stop": "content_filter"}, "content_filter"),
            (MESSAGES, {"stop": "max_tokens"}, "max_tokens"),
            (MESSAGES, {"stop": "refusal"}, "refusal"),
            (MESSAGES, {"stop": "pause_turn"}, "pause_turn"),
            (RESPONSES, {"status": "incomplete"}, "incomplete"),
        ]
        for wire, how, seen in cases:
            for stream in (True, False):
                exchange = open_exchange(wire, wire.request("bash", stream=stream))
                sent, turn = wire.serve(exchange, [Said("So"), _CALL, Called("c2", "ship_update")], **how)
                self.assertEqual(turn.calls, ())
                heard = wire.read(exchange, sent + exchange.finish())
                self.assertEqual((heard.stop, heard.parts), (seen, [Said("So")]))
                self.assertIsNone(exchange.memory())

    def test_called_in_vain(self) -> None:
        """A call of a tool that is not offered any more is not the client's to see, and can be answered as any."""
        for wire, stop in ((CHAT, "stop"), (MESSAGES, "end_turn"), (RESPONSES, "completed")):
            for stream in (True, False):
                exchange = open_exchange(wire, wire.request(stream=stream))
                sent, turn = wire.serve(exchange, [_CALL])
                exchange.answer(results(turn), last=True)
                more, turn = wire.serve(exchange, [Called("c9", "ship_update")], 2)
                self.assertEqual([call.name for call in turn.calls], ["ship_update"])
                exchange.answer(results(turn, "Not run"), last=True)
                self.assertIn(b"Not run", exchange.body)
                last, turn = wire.serve(exchange, [Said("Well")], 3)
                heard = wire.read(exchange, sent + more + last + exchange.finish())
                self.assertEqual((turn.calls, heard.stop, heard.parts), ((), stop, [Said("Well")]))

    def test_errors_of_the_provider(self) -> None:
        """An error that the provider sends within its stream reaches the client as it came, and ends the turn."""
        for wire, error in (
            (CHAT, event({"error": {"message": "overloaded"}})),
            (MESSAGES, event({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, "error")),
            (RESPONSES, event({"type": "error", "code": "x", "message": "no", "sequence_number": 9}, "error")),
        ):
            exchange = open_exchange(wire, wire.request())
            exchange.feed(b"".join(wire.events([_CALL])[:3]))
            self.assertEqual(exchange.feed(error), error)
            self.assertEqual(exchange.end().calls, ())
            self.assertEqual(exchange.finish(), b"")

    def test_no_json(self) -> None:
        """What is no JSON object, streamed or not, is a broken reply, and so is an event without end."""
        for wire in WIRES:
            exchange = open_exchange(wire, wire.request())
            self.assertRaises(BrokenReply, exchange.feed, b"data: {nothing\n\n")
            exchange = open_exchange(wire, wire.request(stream=False))
            exchange.feed(b"[1]")
            self.assertRaises(BrokenReply, exchange.end)

    def test_no_last_line(self) -> None:
        """A stream whose last event lacks the empty line after it is complete, and reaches the client whole."""
        for wire in WIRES:
            data = b"".join(wire.events([Said("Hi")]))[:-2]
            exchange = open_exchange(wire, wire.request())
            sent = exchange.feed(data)
            self.assertEqual(exchange.end().calls, ())
            self.assertEqual(wire.read(exchange, sent + exchange.finish()).parts, [Said("Hi")])

    @settings(max_examples=80, deadline=None)
    @given(
        wire=st.sampled_from(WIRES),
        number=st.integers(0, 60),
        cut=st.integers(0, 40),
        value=_values,
        late=st.booleans(),
    )
    def test_another_shape(self, wire: Wire, number: int, cut: int, value: Any, late: bool) -> None:
        """Whatever shape an event or a document has, nothing but the contract's error comes of it."""
        events = wire.events([Thought("x", "s"), Said("Hello"), Called("c1", "bash"), _CALL][wire is CHAT :])
        place = number % len(events)
        if events[place] != b"data: [DONE]\n\n":
            ((name, data),) = events_of(events[place])
            events[place] = event(_changed(data, cut, value), name)
        document = wire.document([Said("Hello"), Called("c1", "bash"), _CALL])
        for stream in (True, False):
            exchange = open_exchange(wire, wire.request("bash", stream=stream))
            with contextlib.suppress(BrokenReply):
                if late:
                    _, turn = wire.serve(exchange, [_CALL])
                    exchange.answer(results(turn))
                if stream:
                    exchange.feed(b"".join(events))
                else:
                    exchange.feed(json.dumps(_changed(json.loads(document), cut, value)).encode())
                turn = exchange.end()
                exchange.finish()
            exchange.fail("no")

    @settings(max_examples=50, deadline=None)
    @given(wire=st.sampled_from(WIRES), cut=st.integers(0, 60), value=_values)
    def test_a_request_of_another_shape(self, wire: Wire, cut: int, value: Any) -> None:
        """Whatever shape a request has, nothing but a refusal comes of it."""
        history: dict[str, list[Any]] = {
            "chat": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "aileron_x"}}]}],
            "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "aileron_x"}]}],
            "responses": [{"type": "function_call", "call_id": "c", "name": "aileron_x"}],
        }
        last = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}
        more: dict[str, Any] = {wire.history: [*history[wire.name], last]}
        body = json.loads(wire.request("aileron_x", tool_choice={"type": "function", "name": "aileron_x"}, **more))
        own: dict[str, Any] = {"chat": chat_call(_CALL), "messages": block(_CALL), "responses": item(_CALL, 1)}
        theirs = history[wire.name][0] if wire is RESPONSES else {"id": "c", "type": "tool_use"}
        rounds = [{"message": {"id": "r"}, "parts": [[True, own[wire.name]], [False, theirs]], "results": []}]
        memory = Memory(("c",), json.dumps(rounds))
        with contextlib.suppress(InvalidRequest):
            exchange = open_exchange(wire, json.dumps(_changed(body, cut, value)).encode(), memories=[memory])
            json.loads(exchange.body)

    def test_a_container_without_a_name(self) -> None:
        """A part of a response that only the next request needs is looked at as strictly."""
        exchange = open_exchange(MESSAGES, MESSAGES.request())
        events = b"".join(MESSAGES.events([_CALL]))
        exchange.feed(events.replace(b'"stop_sequence": null}, "usage"', b'"container": {"x": 1}}, "usage"'))
        turn = exchange.end()
        self.assertRaises(BrokenReply, exchange.answer, results(turn))


def _changed(data: Any, at: int, value: Any) -> Any:
    """Put another value in the place of one of those within C{data}, by its number."""
    places = [(within, key) for within, key in _places(data)]
    within, key = places[at % len(places)]
    within[key] = value
    return data


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    pairs = list(data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ())
    for key, inner in pairs:
        yield data, key
        yield from _places(inner)


class BoundsTests(SynchronousTestCase):
    """Memory."""

    def test_long_arguments(self) -> None:
        """Arguments beyond the bound are not run; the model is told, and what came of them is not kept."""
        long = json.dumps({"text": "x" * MOST_ARGUMENTS})
        for wire in WIRES:
            exchange = open_exchange(wire, wire.request(stream=False))
            _, turn = wire.serve(exchange, [Called("c1", "ship_update", long)])
            self.assertEqual(turn.calls[0].arguments, {})
            self.assertIn("longer than", turn.calls[0].problem)

    def test_endless_arguments(self) -> None:
        """Of a call's arguments that never end only so much is kept that they are refused."""
        piece = "x" * 2**20
        function = {"name": "ship_update", "arguments": piece}
        begun = {"type": "content_block_start", "index": 0, "content_block": block(_CALL)}
        more = {"type": "input_json_delta", "partial_json": piece}
        chunk = {"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": function}]}}
        for wire, first, each in (
            (CHAT, b"", event({"id": "x", "choices": [chunk]})),
            (MESSAGES, event(begun), event({"type": "content_block_delta", "index": 0, "delta": more})),
        ):
            exchange = open_exchange(wire, wire.request())
            exchange.feed(first)
            for _ in range(MOST_HELD // len(piece) + 2):
                self.assertEqual(exchange.feed(each), b"")
            exchange.feed(b"".join(wire.events([Called("c9", "read_ticket")])[-3:]))
            self.assertIn("longer than", exchange.end().calls[0].problem)

    def test_too_much(self) -> None:
        """A reply that is larger than what is kept of one is broken off, over all of its rounds."""
        piece = "y" * 2**20
        for wire in WIRES:
            exchange = open_exchange(wire, wire.request())
            data = {
                "chat": [event({"id": "c", "choices": [{"index": 0, "delta": {"content": piece}}]})],
                "messages": [
                    event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                    event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}),
                ],
                "responses": [
                    event({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}),
                    event({"type": "response.output_item.done", "output_index": 0, "item": {"text": piece}}),
                ],
            }[wire.name]
            with self.assertRaises(BrokenReply):
                for _ in range(MOST_HELD // len(piece) + 1):
                    exchange.feed(b"".join(data))

    def test_too_many_calls(self) -> None:
        """Of a response with more calls than a turn may have none is run."""
        calls = [Called(f"c{number}", "ship_update") for number in range(MOST_CALLS + 1)]
        for wire in WIRES:
            self.assertEqual(len(wire.serve(open_exchange(wire, wire.request()), calls[1:])[1].calls), MOST_CALLS)
            with self.assertRaises(BrokenReply):
                wire.serve(open_exchange(wire, wire.request()), calls)

    def test_long_results(self) -> None:
        """Results of calls are counted as well, over all rounds."""
        for wire in WIRES:
            exchange = open_exchange(wire, wire.request())
            with self.assertRaises(BrokenReply):
                for number in range(1, 4):
                    _, turn = wire.serve(exchange, [_CALL], number)
                    exchange.answer(results(turn, "r" * (MOST_HELD // 2)))

    def test_endless_parts_of_calls(self) -> None:
        """Whatever of the client's calls comes in pieces is counted, and breaks the reply off where it does not end."""
        for more in ({"custom": {"name": "bash", "input": "x" * 2**20}}, {"function": {"other": "x" * 2**20}}):
            exchange = open_exchange(CHAT, CHAT.request("bash"))
            chunk = {"delta": {"tool_calls": [{"index": 0, "id": "c1", **more}]}}
            with self.assertRaises(BrokenReply):
                for _ in range(MOST_HELD // 2**20 + 1):
                    exchange.feed(event({"id": "x", "choices": [chunk]}))

    def test_not_finite(self) -> None:
        """A number that is not finite, which no JSON can say, breaks the reply off."""
        for wire in WIRES:
            for number in (b"1e400", b"-1e400", b"NaN", b"-Infinity"):
                with self.assertRaises(BrokenReply):
                    exchange = open_exchange(wire, wire.request())
                    exchange.feed(b'data: {"type":"error","usage":{"total_tokens":%b}}\n\n' % number)

    def test_endless_event(self) -> None:
        """An event, and a document, that does not end is broken off."""
        for wire in WIRES:
            for stream in (True, False):
                exchange = open_exchange(wire, wire.request(stream=stream))
                with self.assertRaises(BrokenReply):
                    for _ in range(MOST_HELD // 2**20 + 1):
                        exchange.feed(b"data: " + b"z" * 2**20)


class ArgumentTests(SynchronousTestCase):
    """Arguments that no action can take."""

    def test_problems(self) -> None:
        """What is no JSON object goes back to the model with what is wrong, and into the history as it may stand."""
        for wire in WIRES:
            for text, words in (("{", "not JSON"), ("[1]", "not a JSON object"), ('{"a":1,"a":2}', "same key twice")):
                exchange = open_exchange(wire, wire.request())
                _, turn = wire.serve(exchange, [Called("c1", "ship_update", text)])
                self.assertEqual(turn.calls[0].arguments, {})
                self.assertIn(words, turn.calls[0].problem)
                exchange.answer(results(turn))
                sent = json.loads(exchange.body)[wire.history]
                self.assertEqual(len(sent), 3)

    def test_no_arguments(self) -> None:
        """Some providers say nothing where there are none."""
        for wire in (CHAT, RESPONSES):
            exchange = open_exchange(wire, wire.request())
            _, turn = wire.serve(exchange, [Called("c1", "ship_update", "")])
            self.assertEqual((turn.calls[0].arguments, turn.calls[0].problem), ({}, ""))

    def test_identifiers(self) -> None:
        """Each call of a reply has its own identifier, even where the provider's repeat."""
        for wire in WIRES:
            exchange = open_exchange(wire, wire.request())
            seen = set()
            for number in (1, 2):
                _, turn = wire.serve(exchange, [Called("same", "ship_update"), Called("same", "read_ticket")], number)
                seen |= {call.id for call in turn.calls}
                exchange.answer(results(turn))
            self.assertEqual(len(seen), 4)


class OddProviderTests(SynchronousTestCase):
    """Chat completions of providers that are only nearly OpenAI."""

    def _turn(self, *deltas: Any, own: tuple[str, ...] = ("bash",)) -> tuple[list[tuple[str, Any]], list[Called]]:
        exchange = open_exchange(CHAT, CHAT.request(*own), [SHIP, READ])
        begin: dict[str, Any] = {"role": "assistant", "content": None}
        sent = exchange.feed(
            b"".join(self._chunk(delta) for delta in ({}, *deltas)).replace(b"{}", json.dumps(begin).encode(), 1)
        )
        sent += exchange.feed(self._chunk({}, "tool_calls") + b"data: [DONE]\n\n")
        turn = exchange.end()
        if turn.calls:
            exchange.answer(results(turn))
        return [(call.name, dict(call.arguments)) for call in turn.calls], CHAT.read_stream(
            sent + exchange.finish()
        ).calls

    def _chunk(self, delta: Any, finish: str | None = None) -> bytes:
        return event({"id": "x", "created": 1, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def _call(self, index: Any, name: Any = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
        function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
        place = {} if index is None else {"index": index}
        return {"tool_calls": [{**place, **more, "function": function}]}

    def test_one_index(self) -> None:
        """Calls that all have index 0 are told apart by their identifiers."""
        mine, theirs = self._turn(
            self._call(0, "ship_update", '{"a":1}', id="c1"),
            self._call(0, "bash", "{}", id="c2"),
            self._call(0, "read_ticket", '{"b"', id="c3"),
            self._call(0, None, ":2}"),
        )
        self.assertEqual(mine, [("ship_update", {"a": 1}), ("read_ticket", {"b": 2})])
        self.assertEqual(theirs, [Called("c2", "bash", "{}")])

    def test_no_index(self) -> None:
        """Calls without an index are as many as there are identifiers."""
        mine, theirs = self._turn(
            self._call(None, "bash", "{}", id="c1"), self._call(None, "ship_update", "{}", id="c2")
        )
        self.assertEqual((mine, theirs), ([("ship_update", {})], [Called("c1", "bash", "{}")]))

    def test_a_name_in_pieces(self) -> None:
        """A name that comes in pieces is not taken for another that begins so."""
        mine, theirs = self._turn(
            self._call(0, "ship", id="c1"),
            self._call(0, "_update"),
            self._call(0, None, "{}"),
            self._call(1, "ship", id="c2"),
            self._call(1, None, "{}"),
            self._call(2, "ship", "", id="c3"),
            own=("ship",),
        )
        self.assertEqual(mine, [("ship_update", {})])
        self.assertEqual(theirs, [Called("c2", "ship", "{}"), Called("c3", "ship", "")])

    def test_a_name_within_a_name(self) -> None:
        """A name in pieces is not taken for a shorter one of ours that it begins with."""
        offered = [evolve(SHIP, name="ship"), SHIP]
        begun = [self._chunk(self._call(0, "ship", "", id="c1"))]
        for rest, name, own in (("_update", "ship_update", True), ("_it", "ship_it", False), ("", "ship", True)):
            for arguments in ("{}", ""):
                exchange = open_exchange(CHAT, CHAT.request("ship_it"), offered)
                chunks = [*begun, self._chunk(self._call(0, rest, arguments)), self._chunk({}, "tool_calls")]
                heard = exchange.feed(b"".join(chunks))
                self.assertEqual([call.name for call in exchange.end().calls], [name] if own else [])
                self.assertEqual(b'"name":"ship_it"' in heard, not own)

    def test_a_name_again(self) -> None:
        """A name of ours that comes with every fragment stays what it is."""
        mine, _ = self._turn(self._call(0, "ship_update", "{", id="c1"), self._call(0, "ship_update", "}", id="c1"))
        self.assertEqual(mine, [("ship_update", {})])

    def test_text_at_the_end(self) -> None:
        """Text in the chunk that says why the model stopped is not held back with it."""
        exchange = open_exchange(CHAT, CHAT.request())
        chunk = self._chunk({"role": "assistant", "content": "Hi"}, "stop")
        sent = exchange.feed(chunk.replace(b'"created"', b'"usage": {"completion_tokens": 3}, "created"'))
        self.assertIn(b"Hi", sent)
        exchange.end()
        heard = CHAT.read_stream(sent + exchange.finish())
        self.assertEqual((heard.parts, heard.stop, heard.used), ([Said("Hi")], "stop", 3))

    def test_reasoning(self) -> None:
        """Fields that OpenAI has not, such as reasoning, reach the client as they came, and go back whole."""
        exchange = open_exchange(CHAT, CHAT.request())
        detail = {"type": "reasoning.text", "index": 0}
        deltas: list[Any] = [
            {"role": "assistant", "reasoning_content": "I ", "reasoning_details": [{**detail, "text": "a"}]},
            {"reasoning_content": "see", "reasoning_details": [{**detail, "text": "b"}]},
            self._call(0, "ship_update", "{}", id="c1", extra_content={"google": {"thought_signature": "s"}}),
        ]
        sent = exchange.feed(b"".join(map(self._chunk, deltas)))
        self.assertEqual(sent, b"".join(map(self._chunk, deltas[:2])))
        exchange.feed(self._chunk({}, "tool_calls"))
        exchange.answer(results(exchange.end()))
        message = json.loads(exchange.body)["messages"][1]
        self.assertEqual(message["reasoning_content"], "I see")
        self.assertEqual(message["reasoning_details"], [{**detail, "text": "ab"}])
        self.assertEqual(message["tool_calls"][0]["extra_content"], {"google": {"thought_signature": "s"}})

    def test_comments(self) -> None:
        """Comments pass at once, as do lines that end in another way."""
        exchange = open_exchange(CHAT, CHAT.request())
        self.assertEqual(exchange.feed(b": PROCESSING\r\n\r\n"), b": PROCESSING\r\n\r\n")
        chunk = self._chunk({"role": "assistant", "content": "a"}).replace(b"\n", b"\r\n")
        self.assertEqual(b"".join(exchange.feed(chunk[n : n + 1]) for n in range(len(chunk))), chunk)


class ContractTests(SynchronousTestCase):
    """What all protocols promise."""

    def test_keep_alive(self) -> None:
        """What keeps a stream alive says nothing, and a document has none."""
        for wire in WIRES:
            exchange = open_exchange(wire, wire.request())
            kept = exchange.keep_alive()
            self.assertEqual([name for name, _ in events_of(kept)], ["ping"] if wire is MESSAGES else [])
            self.assertTrue(kept.endswith(b"\n\n"))
            self.assertEqual(open_exchange(wire, wire.request(stream=False)).keep_alive(), b"")

    def test_error_documents(self) -> None:
        """Errors have each protocol's own shape."""
        self.assertEqual(json.loads(ChatRequest.error("no", 400))["error"]["type"], "invalid_request_error")
        for wire in WIRES:
            self.assertEqual(json.loads(wire.protocol.error("no", 502))["error"]["message"], "no")
            exchange = open_exchange(wire, wire.request(stream=False))
            self.assertEqual(json.loads(exchange.fail("no"))["error"]["message"], "no")
        self.assertEqual(json.loads(MESSAGES.protocol.error("no", 401))["error"]["type"], "authentication_error")
