"""A client's request goes on as it came, with our tools beside its own."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.inband._turns import OfferedTool
from aileron.features.inband.protocols import Exchange
from aileron.features.inband.protocols.names import choose_names
from aileron.model.errors import InvalidRequest

from .provider import Called, Said
from .wires import CHAT, MESSAGES, READ, RESPONSES, SHIP, WIRES, Wire, open_exchange, results

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)

_OBEYED = ("n", "tools")
"""Members that say whether tools are offered, of all that are as short as those that are made up."""


def tools_of(exchange: Exchange) -> list[Any]:
    """Return the tools of the request that goes to the provider."""
    tools: list[Any] = json.loads(exchange.body)["tools"]
    return tools


def name_of(tool: Any) -> str:
    """Return a tool's name."""
    return str(tool["function"]["name"] if "function" in tool else tool["name"])


class OfferTests(SynchronousTestCase):
    """What is added, and what stays."""

    @settings(max_examples=30, deadline=None)
    @given(
        wire=st.sampled_from(WIRES),
        more=st.dictionaries(st.text(max_size=5).filter(lambda name: name not in _OBEYED), _values, max_size=4),
        tools=st.sampled_from([(), ("bash",), ("bash", "look")]),
        blanks=st.sampled_from([None, 1, "\t\r\n"]),
        ascii_only=st.booleans(),
    )
    def test_all_else_stays(
        self, wire: Wire, more: dict[str, Any], tools: tuple[str, ...], blanks: Any, ascii_only: bool
    ) -> None:
        """The new body is the old one with something put in at one place, and reads as the old one with more tools."""
        own = {"tools": [wire.tool(name) for name in tools]} if tools else {}
        request = more | own | {wire.history: [{"role": "user", "content": "✓"}]}
        body = json.dumps(request, indent=blanks, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        new = open_exchange(wire, body).body
        same = next((n for n, (a, b) in enumerate(zip(body, new, strict=False)) if a != b), len(body))
        self.assertTrue(any(new.endswith(body[at:]) for at in range(max(0, same - 2), same + 1)))
        read = json.loads(new)
        self.assertEqual([name_of(tool) for tool in read.pop("tools")], [*tools, "read_ticket", "ship_update"])
        request.pop("tools", None)
        self.assertEqual(read, request)

    def test_equal_bytes(self) -> None:
        """Equal catalogues are written alike, whatever order they and their schemas come in."""
        for wire in WIRES:
            schema = dict(reversed([*SHIP.input_schema.items()]))
            one = open_exchange(wire, wire.request("bash")).body
            other = open_exchange(wire, wire.request("bash"), (evolve(SHIP, input_schema=schema), READ)).body
            self.assertEqual(one, other)

    def test_descriptions(self) -> None:
        """A tool of ours is described as each protocol has it, and never strictly."""
        chat, message, response = (tools_of(open_exchange(wire, wire.request(), [SHIP]))[0] for wire in WIRES)
        told = {"name": "ship_update", "description": SHIP.description}
        schema = dict(SHIP.input_schema)
        self.assertEqual(chat, {"type": "function", "function": told | {"parameters": schema}})
        self.assertEqual(message, told | {"input_schema": schema})
        self.assertEqual(response, {"type": "function", "strict": False} | told | {"parameters": schema})

    def test_null_tools(self) -> None:
        """Tools that are null, or none, become ours."""
        for wire in WIRES:
            nothing: list[Any] = [None, []]
            for tools in nothing:
                exchange = open_exchange(wire, wire.request(tools=tools), [READ])
                self.assertEqual([*map(name_of, tools_of(exchange))], ["read_ticket"])

    def test_nothing_offered(self) -> None:
        """Without an action the request and its reply go through untouched, streamed or not."""
        for wire in WIRES:
            for stream in (True, False):
                body = wire.request("aileron_own", stream=stream)
                exchange = open_exchange(wire, body, [])
                self.assertEqual(exchange.body, body)
                self.assertEqual(exchange.warnings, ())
                sent = exchange.feed(b"any bytes ") + exchange.feed(b"at all")
                self.assertEqual(exchange.end().calls, ())
                self.assertEqual(sent + exchange.finish(), b"any bytes at all")

    def test_not_offered(self) -> None:
        """Where our tools cannot go with what a client asks for it gets none, and that is on record."""
        for wire, body in (
            (CHAT, CHAT.request("bash", n=2)),
            (CHAT, CHAT.request(functions=[{"name": "x"}])),
            (CHAT, CHAT.request(tool_choice="required")),
            (MESSAGES, MESSAGES.request(tool_choice={"type": "any"})),
            (RESPONSES, RESPONSES.request(tool_choice="required")),
            (RESPONSES, RESPONSES.request(prompt={"id": "p"})),
        ):
            exchange = open_exchange(wire, body)
            self.assertEqual(exchange.body, body)
            self.assertIn("No action is offered", exchange.warnings[0])

    def test_background(self) -> None:
        """A response in the background is refused, since nobody would run its calls."""
        with self.assertRaisesRegex(InvalidRequest, "background"):
            open_exchange(RESPONSES, RESPONSES.request(background=True))

    @settings(max_examples=30, deadline=None)
    @given(
        wire=st.sampled_from(WIRES), body=st.binary(max_size=20) | st.text('{}[]",:1 a', max_size=12).map(str.encode)
    )
    @example(wire=CHAT, body=b"\xef\xbb\xbf{}")
    @example(wire=CHAT, body="{}".encode("utf-16-le"))
    def test_no_object(self, wire: Wire, body: bytes) -> None:
        """What is not one JSON object is refused, and what is goes on as one."""
        try:
            value = json.loads(body.decode())  # of bytes the library would read other encodings too
        except ValueError:
            value = None
        try:
            new = open_exchange(wire, body).body
        except InvalidRequest:
            self.assertTrue(not isinstance(value, dict) or body.count(b":") > len(value))
        else:
            self.assertEqual(json.loads(new).keys() - {"tools"}, value.keys() - {"tools"})

    def test_tools_of_another_shape(self) -> None:
        """Tools that are no array are refused, since ours would take their place."""
        for wire in WIRES:
            self.assertRaises(InvalidRequest, open_exchange, wire, wire.request(tools={"x": 1}))

    def test_twice(self) -> None:
        """A body that has a member twice is refused, since readers differ in which of the two they take."""
        for wire in WIRES:
            with self.assertRaisesRegex(InvalidRequest, "each member once"):
                open_exchange(wire, b'{"tools": [], "stream": true, "tools": null}')

    def test_depth(self) -> None:
        """A body that is nested too deeply is refused."""
        deep = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        self.assertRaises(InvalidRequest, CHAT.protocol, deep)


class NameTests(SynchronousTestCase):
    """No name hides another."""

    def test_both_have_it(self) -> None:
        """A tool of the client's keeps its name, and ours of that name has another."""
        for wire in WIRES:
            for stream in (True, False):
                exchange = open_exchange(wire, wire.request("ship_update", stream=stream))
                self.assertEqual(
                    [*map(name_of, tools_of(exchange))], ["ship_update", "read_ticket", "aileron_ship_update"]
                )
                calls = [Called("c1", "ship_update"), Called("c2", "aileron_ship_update", '{"text":"x"}')]
                sent, turn = wire.serve(exchange, calls)
                self.assertEqual([(call.name, call.arguments) for call in turn.calls], [("ship_update", {"text": "x"})])
                self.assertTrue(turn.mixed)
                exchange.answer(results(turn))
                heard = wire.read(exchange, sent + exchange.finish())
                self.assertEqual(heard.calls, [Called("c1", "ship_update")])

    def test_renamed(self) -> None:
        """A tool of the client's whose name looks like ours has another before the model, and that is on record."""
        chat = {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "aileron_own"}}],
        }
        used = {"type": "tool_use", "id": "c", "name": "aileron_own", "input": {"name": "aileron_own"}}
        called = {"type": "function_call", "call_id": "c", "name": "aileron_own", "arguments": '{"name":"aileron_own"}'}
        for wire, history, choice in (
            (CHAT, chat, {"type": "function", "function": {"name": "aileron_own"}}),
            (MESSAGES, {"role": "assistant", "content": [used]}, {"type": "tool", "name": "aileron_own"}),
            (RESPONSES, called, {"type": "function", "name": "aileron_own"}),
        ):
            more: dict[str, Any] = {wire.history: [history]}
            body = wire.request("aileron_own", tool_choice=choice, **more)
            exchange = open_exchange(wire, body, [SHIP])
            taken_back = exchange.body.replace(b"agent_aileron_own", b"aileron_own")
            added = len(taken_back) - len(body)
            self.assertEqual(taken_back[: body.index(b'"tools"')], body[: body.index(b'"tools"')])
            self.assertGreater(added, 0)
            self.assertEqual(exchange.body.count(b"agent_aileron_own"), 3)
            self.assertEqual(
                exchange.warnings, ("The client's tool aileron_own is shown to the model as agent_aileron_own.",)
            )

    @settings(max_examples=50, deadline=None)
    @given(
        offered=st.sets(st.text("ab_", min_size=1, max_size=3) | st.just("aileron_a") | st.just("a" * 48), max_size=4),
        own=st.lists(
            st.text("ab_", min_size=1, max_size=3).map(lambda x: f"aileron_{x}")
            | st.sampled_from(["a", "b", "aileron_a", "agent_aileron_a", "agent_aileron_a_2", "aileron_" + "a" * 56]),
            max_size=6,
        ),
    )
    def test_each_has_one(self, offered: set[str], own: list[str]) -> None:
        """All names differ, none is too long, only names that look like ours change, and each leads back to its own."""
        names = choose_names([OfferedTool(name, "", {}) for name in offered], own)
        seen = [names.up.get(name, name) for name in dict.fromkeys(own)]
        self.assertEqual(len({*seen, *names.ours}), len(seen) + len(names.ours))
        self.assertEqual({tool.name for tool in names.ours.values()}, offered)
        self.assertTrue(all(len(name) <= 64 for name in [*seen, *names.ours]))
        self.assertEqual({name for name in own if name.startswith("aileron_")}, names.up.keys())
        self.assertEqual([names.down(name) for name in seen], [*dict.fromkeys(own)])

    def test_long_names(self) -> None:
        """A name that would be too long is cut, and differs from the client's others all the same."""
        own = ["aileron_" + "a" * 56, "agent_aileron_" + "a" * 50]
        names = choose_names([OfferedTool("x", "", {})], own)
        self.assertEqual(names.up, {own[0]: f"agent_aileron_{'a' * 48}_2"})


class NextRequestTests(SynchronousTestCase):
    """The next request is what the provider would have got from a client that ran our tools."""

    def _next(self, wire: Wire, parts: list[Any], *, last: bool = False, **more: Any) -> Any:
        exchange = open_exchange(wire, wire.request(*more.pop("own", ()), **more))
        first = exchange.body
        _, turn = wire.serve(exchange, parts)
        exchange.answer(results(turn), last=last)
        before = json.loads(first)
        after = json.loads(exchange.body)
        if not last:
            cut = first.index(wire.history.encode()) + len(wire.history) + 60
            self.assertEqual(exchange.body[: cut - 60], first[: cut - 60], "a cache of the beginning is of no use")
        self.assertEqual(
            {key: after[key] for key in before if key not in (wire.history, "tools", "tool_choice")},
            {key: before[key] for key in before if key not in (wire.history, "tools", "tool_choice")},
        )
        return after

    def test_chat(self) -> None:
        """Chat: the message with all its calls, then a message for each result."""
        calls = [Called("c1", "ship_update", '{"text": "x"}'), Called("c2", "read_ticket")]
        after = self._next(CHAT, [Said("Well."), *calls])
        message, *answers = after["messages"][1:]
        self.assertEqual(message["content"], "Well.")
        self.assertEqual(message["role"], "assistant")
        self.assertEqual(
            message["tool_calls"],
            [
                {"id": "c1", "type": "function", "function": {"name": "ship_update", "arguments": '{"text": "x"}'}},
                {"id": "c2", "type": "function", "function": {"name": "read_ticket", "arguments": "{}"}},
            ],
        )
        self.assertEqual(
            answers,
            [
                {"role": "tool", "tool_call_id": "c1", "content": "ok 0"},
                {"role": "tool", "tool_call_id": "c2", "content": "ok 1"},
            ],
        )

    def test_last(self) -> None:
        """After the last round our tools are gone, but for a history that needs some."""
        for wire in WIRES:
            after = self._next(wire, [Called("c1", "read_ticket")], last=True, own=("bash",))
            self.assertEqual([*map(name_of, after["tools"])], ["bash"])
            choice = {"type": "auto", "disable_parallel_tool_use": True} if wire is MESSAGES else "auto"
            alone = self._next(wire, [Called("c1", "read_ticket")], last=True, tool_choice=choice)
            self.assertEqual(len(alone["tools"]), 2)
            self.assertEqual(alone["tool_choice"], {"type": "none"} if wire is MESSAGES else "none")

    def test_forced(self) -> None:
        """A request that insists on one of our tools insists once, not in each round."""
        function = {"type": "function", "function": {"name": "read_ticket"}}
        tool = {"type": "tool", "name": "read_ticket", "disable_parallel_tool_use": True}
        auto = {"type": "auto", "disable_parallel_tool_use": True}
        for wire, choice, then in (
            (CHAT, function, "auto"),
            (MESSAGES, tool, auto),
            (RESPONSES, {"type": "function", "name": "read_ticket"}, "auto"),
        ):
            after = self._next(wire, [Called("c1", "read_ticket")], tool_choice=choice)
            self.assertEqual(after["tool_choice"], then)
            required = {"type": "any"} if wire is MESSAGES else "required"
            after = self._next(wire, [Called("c1", "read_ticket")], own=("bash",), tool_choice=required)
            self.assertEqual(after["tool_choice"], required)
