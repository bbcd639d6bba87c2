"""Replies over several rounds reach the client as one coherent reply, without a trace of our calls."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.inband.protocols import Exchange
from aileron.features.inband.protocols.exchange import add_usage

from .client import events_of
from .provider import USED, Called, Part, Said, Thought, block, event
from .wires import MESSAGES, OURS, RESPONSES, WIRES, Wire, open_exchange, results

_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9).map(Said)
_thoughts = st.builds(Thought, st.text("ab✓", min_size=1, max_size=5), st.text("xyz", min_size=4, max_size=8))
_arguments = st.sampled_from(["{}", '{"text":"a ✓ b"}', '{"text": [1, {"x": null}]}'])


@st.composite
def scripts(draw: st.DrawFn) -> list[list[Part]]:
    """Make rounds: all but the last call a tool of ours and nothing else; the last may call both."""
    names, rounds, number = st.sampled_from(["ship_update", "read_ticket"]), [], 0
    for last in [*[False] * draw(st.integers(0, 2)), True]:
        said = draw(st.lists(_texts | _thoughts, max_size=3))
        mine = draw(st.lists(names, min_size=0 if last else 1, max_size=2))
        theirs = (
            draw(st.lists(st.sampled_from(["bash", "aileron_own"]), max_size=2, min_size=bool(mine))) if last else []
        )
        called = draw(st.permutations([*mine, *theirs]))
        calls = [Called(f"call_{(number := number + 1)}", name, draw(_arguments)) for name in called]
        rounds.append([*said, *calls])
    return rounds


def converse(wire: Wire, exchange: Exchange, rounds: Sequence[Sequence[Part]], step: int = 0) -> bytes:
    """Carry a reply through its rounds.

    :param step: how many bytes are fed at once; none: all.
    """
    sent = b""
    for number, parts in enumerate(rounds, 1):
        data = (
            b"".join(wire.events(upstream(parts), number))
            if exchange.streams
            else wire.document(upstream(parts), number)
        )
        for at in range(0, len(data), step or len(data)):
            sent += exchange.feed(data[at : at + (step or len(data))])
        turn = exchange.end()
        if turn.calls:
            exchange.answer(results(turn))
            sent += exchange.keep_alive()
    return sent + exchange.finish()


def upstream(parts: Sequence[Part]) -> list[Part]:
    """Say the same as a model does, which knows the client's tool by another name."""
    other = {"aileron_own": "agent_aileron_own"}
    return [Called(p.id, other.get(p.name, p.name), p.arguments) if isinstance(p, Called) else p for p in parts]


def shown(wire: Wire, rounds: Sequence[Sequence[Part]]) -> list[Any]:
    """Tell what of a script the client must hear; in one message, the texts of two rounds are two paragraphs."""
    parts = [part for each in rounds for part in each if not (isinstance(part, Called) and part.name in OURS)]
    if wire.name != "chat":
        return parts
    text = ""
    for more in ("".join(part.text for part in each if isinstance(part, Said)) for each in rounds):
        lines_meet = not text or not more or text.endswith("\n") or more.startswith("\n")
        text += more if lines_meet else f"\n\n{more}"
    return ([Said(text)] if text else []) + [part for part in parts if isinstance(part, Called)]


def text_in(events: bytes) -> str:
    """Join the pieces of text and of thinking in some events."""
    found = ""
    for _, data in events_of(events):
        if data != "[DONE]" and data.get("type", "") != "response.function_call_arguments.delta":
            delta = data.get("delta") or (data.get("choices") or [{}])[0].get("delta") or ""
            words = [delta] if isinstance(delta, str) else [delta.get(key) for key in ("content", "text", "thinking")]
            found += "".join(word or "" for word in words)
    return found


def meaning(parts: Sequence[Any]) -> list[Any]:
    """Read the arguments of calls, which may be written in several ways."""
    return [(p.id, p.name, json.loads(p.arguments)) if isinstance(p, Called) else p for p in parts]


class OneReplyTests(SynchronousTestCase):
    """Each protocol, streamed and at once."""

    @settings(max_examples=30, deadline=None)
    @given(wire=st.sampled_from(WIRES), rounds=scripts(), stream=st.booleans(), step=st.integers(0, 50))
    def test_one_reply(self, wire: Wire, rounds: list[list[Part]], stream: bool, step: int) -> None:
        """However many rounds it took and wherever the bytes were cut, the client reads all that was said to it."""
        exchange = open_exchange(wire, wire.request("bash", "aileron_own", stream=stream))
        reply = converse(wire, exchange, rounds, step)
        heard = wire.read(exchange, reply)
        self.assertEqual(meaning(heard.parts), meaning(shown(wire, rounds)))
        self.assertEqual(heard.used, USED * len(rounds))
        self.assertTrue(heard.id.endswith("_1") or heard.id.endswith("-1"), heard.id)
        for name in OURS - {"aileron_own"}:
            self.assertNotIn(f'"{name}"'.encode(), reply.replace(b'\\"', b""))

    @settings(max_examples=20, deadline=None)
    @given(wire=st.sampled_from(WIRES), rounds=scripts())
    def test_at_once(self, wire: Wire, rounds: list[list[Part]]) -> None:
        """A text reaches the client in the call in which it came from the provider."""
        exchange = open_exchange(wire, wire.request("bash", "aileron_own"))
        for number, parts in enumerate(rounds, 1):
            for data in wire.events(upstream(parts), number):
                came, went = text_in(data), text_in(exchange.feed(data))
                self.assertIn(went, (came, f"\n\n{came}") if wire.name == "chat" and came else (came,))
            turn = exchange.end()
            if turn.calls:
                exchange.answer(results(turn))

    @settings(max_examples=30, deadline=None)
    @given(wire=st.sampled_from(WIRES), parts=st.lists(_texts | _thoughts, max_size=4), stream=st.booleans())
    def test_untouched(self, wire: Wire, parts: list[Part], stream: bool) -> None:
        """A reply without a call of ours comes through as the bytes that it was."""
        exchange = open_exchange(wire, wire.request("bash", stream=stream))
        sent, turn = wire.serve(exchange, parts)
        self.assertEqual(turn.calls, ())
        expected = b"".join(wire.events(parts)) if stream else wire.document(parts)
        self.assertEqual(sent + exchange.finish(), expected)

    def test_tools_told_back(self) -> None:
        """Responses: where the provider says which tools there were, the client hears of its own by their own names."""
        own = [RESPONSES.tool("bash"), RESPONSES.tool("aileron_own"), {"type": "web_search"}]
        for stream in (True, False):
            exchange = open_exchange(RESPONSES, RESPONSES.request(tools=own, stream=stream))
            tools = json.loads(exchange.body)["tools"]
            self.assertEqual(len(tools), 5)
            first, turn = RESPONSES.serve(exchange, [Said("a"), Called("c1", "read_ticket")], tools=tools)
            exchange.answer(results(turn))
            second, _ = RESPONSES.serve(exchange, [Said("b")], 2, tools=tools)
            reply = first + second + exchange.finish()
            told = [data for _, data in events_of(reply)] if stream else [{"response": json.loads(reply)}]
            for response in (data["response"] for data in told if "response" in data):
                self.assertEqual(response["tools"], own)
                self.assertEqual(response["id"], "resp_1")

    def test_output_left_to_the_events(self) -> None:
        """Responses: where a provider's last event lists no items, the client's lists none either."""
        for instead in (b'"output": null', b'"output": []'):
            exchange = open_exchange(RESPONSES, RESPONSES.request())
            _, turn = RESPONSES.serve(exchange, [Said("a"), Called("c1", "read_ticket")])
            exchange.answer(results(turn))
            *events, last = RESPONSES.events([Said("b")], 2)
            exchange.feed(b"".join(events))
            whole = re.sub(rb'"output": \[.*?\], "tools"', instead + b', "tools"', last)
            self.assertNotEqual(whole, last)
            exchange.feed(whole)
            exchange.end()
            ((_, data),) = events_of(exchange.finish())
            self.assertIn(data["response"]["output"], (None, []))

    def test_namespace(self) -> None:
        """Responses: a function of that name in a namespace of the client's is the client's."""
        exchange = open_exchange(RESPONSES, RESPONSES.request("bash"))
        events = b"".join(RESPONSES.events([Called("c1", "ship_update")]))
        sent = exchange.feed(events.replace(b'"name": "ship_update"', b'"namespace": "crm", "name": "ship_update"'))
        self.assertEqual(exchange.end().calls, ())
        heard = RESPONSES.read(exchange, sent + exchange.finish())
        self.assertEqual(heard.calls, [Called("c1", "ship_update")])

    def test_another_kind_of_block(self) -> None:
        """Messages: blocks of tools that the provider runs, citations and what is not known go back to it whole."""
        search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
        found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"title": "x"}]}
        filled = {"type": "input_json_delta", "partial_json": '{"q":1}'}
        cite = {"type": "citations_delta", "citation": {"cited_text": "x"}}
        events: list[Any] = [
            {"type": "message_start", "message": {"id": "m", "usage": {}, "container": None}},
            {"type": "content_block_start", "index": 0, "content_block": search},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": filled,
            },
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": found},
            {"type": "content_block_stop", "index": 1},
            {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "", "citations": []}},
            {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "T"}},
            {"type": "content_block_delta", "index": 2, "delta": cite},
            {"type": "content_block_stop", "index": 2},
            {"type": "content_block_start", "index": 3, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_stop", "index": 3},
            {"type": "content_block_start", "index": 4, "content_block": {"type": "new", "kept": "a"}},
            {"type": "content_block_delta", "index": 4, "delta": {"type": "new_delta", "more": "b"}},
            {"type": "content_block_stop", "index": 4},
            {"type": "content_block_start", "index": 5, "content_block": block(Called("c1", "read_ticket"))},
            {"type": "content_block_stop", "index": 5},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use", "container": {"id": "box"}}, "usage": {}},
            {"type": "message_stop"},
        ]
        exchange = open_exchange(MESSAGES, MESSAGES.request())
        sent = exchange.feed(b"".join(event(each, each["type"]) for each in events))
        self.assertEqual(sent, b"".join(event(each, each["type"]) for each in events[:15]))
        exchange.answer(results(exchange.end()))
        body = json.loads(exchange.body)
        self.assertEqual(body["container"], "box")
        self.assertEqual(
            body["messages"][1]["content"],
            [
                {**search, "input": {"q": 1}},
                found,
                {"type": "text", "text": "T", "citations": [cite["citation"]]},
                {"type": "new", "kept": "a", "more": "b"},
                block(Called("c1", "read_ticket")),
            ],
        )

    def test_sums(self) -> None:
        """Only numbers are added up, however deep; of all else the later one stands."""
        one = {"a": 1, "b": {"c": 0.5}, "d": True, "e": "x", "f": None, "g": 1}
        other = {"a": 2, "b": {"c": 1, "h": 3}, "d": True, "e": "y", "f": 4, "g": None}
        total = {"a": 3, "b": {"c": 1.5, "h": 3}, "d": True, "e": "y", "f": 4, "g": 1}
        self.assertEqual(add_usage(one, other), total)
        self.assertIs(add_usage(one, other)["d"], True)

    def test_what_was_used(self) -> None:
        """Messages: the end tells all that was read as well, since the beginning told of the first response alone."""
        exchange = open_exchange(MESSAGES, MESSAGES.request())
        sent, turn = MESSAGES.serve(exchange, [Called("c1", "read_ticket")])
        exchange.answer(results(turn))
        more, _ = MESSAGES.serve(exchange, [Said("x")], 2)
        (_, ending), _ = events_of(sent + more + exchange.finish())[-2:]
        self.assertEqual(ending["usage"], {"input_tokens": 2 * USED, "output_tokens": 2 * USED})
