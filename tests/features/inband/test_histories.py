"""What a reply hid is put back into the history that its client sends later."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.inband._turns import Memory

from . import provider
from .provider import Called, Part, Said, Thought
from .test_replies import converse, scripts, upstream
from .wires import CHAT, MESSAGES, OURS, RESPONSES, WIRES, Wire, open_exchange, results


def is_ours(part: Any) -> bool:
    """Tell calls of ours."""
    return isinstance(part, Called) and part.name in OURS


def answer_of(call: Called, ours: Sequence[Called]) -> str:
    """Tell the result of a call."""
    return f"ok {ours.index(call)}" if call in ours else f"done {call.id}"


def chat_history(parts: Sequence[Part], asked: Sequence[Called]) -> list[Any]:
    """Write a round, and the answers to some of its calls, as messages."""
    calls = [part for part in parts if isinstance(part, Called)]
    ours = [call for call in calls if is_ours(call)]
    text = "".join(part.text for part in parts if isinstance(part, Said))
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [provider.chat_call(call) for call in calls]
    results = [{"role": "tool", "tool_call_id": call.id, "content": answer_of(call, ours)} for call in asked]
    return [message, *results]


def message_history(parts: Sequence[Part], asked: Sequence[Called]) -> list[Any]:
    """Write a round, and the answers to some of its calls, as messages."""
    ours = [part for part in parts if isinstance(part, Called) and is_ours(part)]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": answer_of(call, ours)} for call in asked]
    answers = [{"role": "user", "content": results}] if results else []
    return [{"role": "assistant", "content": [*map(provider.block, parts)]}, *answers]


def response_history(parts: Sequence[Part], asked: Sequence[Called], number: int = 0) -> list[Any]:
    """Write a round, and the answers to some of its calls, as items; the client's come last."""
    calls = [part for part in parts if isinstance(part, Called)]
    ours = [call for call in calls if is_ours(call)]
    ordered = sorted(asked, key=lambda call: call not in ours)
    told = ({"type": "function_call_output", "call_id": c.id, "output": answer_of(c, ours)} for c in ordered)
    return [*(provider.item(part, 100 * number + index) for index, part in enumerate(parts)), *told]


def remembered(wire: Wire, body: bytes, memory: Memory | None) -> list[Memory]:
    """Look a request's keys up, as a store does."""
    keys = set(wire.protocol(body).keys)
    return [memory] if memory is not None and keys & set(memory.keys) else []


def calls_of(parts: Sequence[Part]) -> list[Called]:
    """Return the calls."""
    return [part for part in parts if isinstance(part, Called)]


class MixedTests(SynchronousTestCase):
    """A reply after which the client answers its own calls."""

    def _reply(self, wire: Wire, rounds: Sequence[Sequence[Part]], stream: bool) -> tuple[list[Any], Memory | None]:
        exchange = open_exchange(wire, wire.request("bash", "aileron_own", stream=stream))
        heard = wire.read(exchange, converse(wire, exchange, rounds))
        memory = exchange.memory()
        self.assertIsNone(exchange.memory() if len(rounds) == 1 and not any(map(is_ours, rounds[0])) else None)
        return heard.parts, memory

    def _sent(self, wire: Wire, history: Sequence[Any], memory: Memory | None) -> list[Any]:
        """Tell the history that the provider gets if the client sends C{history}."""
        more: dict[str, Any] = {wire.history: [{"role": "user", "content": "Go"}, *history]}
        body = wire.request("bash", "aileron_own", **more)
        exchange = open_exchange(wire, body, memories=remembered(wire, body, memory))
        found: list[Any] = json.loads(exchange.body)[wire.history][1:]
        return found

    @settings(max_examples=20, deadline=None)
    @given(rounds=scripts(), stream=st.booleans())
    def test_chat(self, rounds: list[list[Part]], stream: bool) -> None:
        """Chat: each round is a message of its own, and all its results follow in the order of the calls."""
        parts, memory = self._reply(CHAT, rounds, stream)
        sent = self._sent(CHAT, chat_history(parts, calls_of(parts)), memory)
        if not calls_of(parts):
            self.assertIsNone(memory)
            return
        expected = [each for part in map(upstream, rounds) for each in chat_history(part, calls_of(part))]
        for message in [*sent, *expected]:
            message["content"] = message["content"] or None
        self.assertEqual(sent, expected)

    @settings(max_examples=20, deadline=None)
    @given(rounds=scripts(), stream=st.booleans())
    def test_messages(self, rounds: list[list[Part]], stream: bool) -> None:
        """Messages: blocks come in the provider's order, results first in the message after, thinking as it was."""
        parts, memory = self._reply(MESSAGES, rounds, stream)
        client = message_history(parts, calls_of(parts))
        if calls_of(parts):
            client[-1]["content"].append({"type": "text", "text": "and go on"})
        sent = self._sent(MESSAGES, client, memory)
        if not (calls_of(parts) or any(isinstance(part, Thought) for part in parts)):
            self.assertIsNone(memory)
            return
        expected = [each for part in map(upstream, rounds) for each in message_history(part, calls_of(part))]
        if calls_of(parts):
            expected[-1]["content"].append({"type": "text", "text": "and go on"})
        if rounds[-1]:
            self.assertEqual(sent, expected)

    @settings(max_examples=30, deadline=None)
    @given(rounds=scripts(), stream=st.booleans(), ids=st.booleans())
    def test_responses(self, rounds: list[list[Part]], stream: bool, ids: bool) -> None:
        """Responses: items come in the provider's order, with identifiers if the client sends some."""
        _, memory = self._reply(RESPONSES, rounds, stream)
        client, expected = [], []
        for number, parts in enumerate(rounds, 1):
            shown = response_history(parts, [call for call in calls_of(parts) if not is_ours(call)], number)
            client += [each for each in shown if each.get("name") not in OURS]
            expected += response_history(upstream(parts), calls_of(parts), number)
        if not ids:
            client = [{key: value for key, value in each.items() if key != "id"} for each in client]
            expected = [{key: value for key, value in each.items() if key != "id"} for each in expected]
        sent = self._sent(RESPONSES, client, memory)
        known = ids or any(
            isinstance(part, Thought) or calls_of([part]) for each in rounds for part in each if not is_ours(part)
        )
        if known and client:
            self.assertEqual(
                sent[-len(expected) :] if ids else sorted(map(str, sent)),
                expected if ids else sorted(map(str, expected)),
            )

    @settings(max_examples=30, deadline=None)
    @given(rounds=scripts(), stream=st.booleans())
    def test_kept_by_the_provider(self, rounds: list[list[Part]], stream: bool) -> None:
        """Responses: a client that continues a response continues the last round, with the results that it lacks."""
        _, memory = self._reply(RESPONSES, rounds, stream)
        calls = [call for call in calls_of(rounds[-1]) if not is_ours(call)]
        answers = [{"type": "function_call_output", "call_id": call.id, "output": "done"} for call in calls]
        body = RESPONSES.request("bash", previous_response_id="resp_1", input=answers or "And now?")
        exchange = open_exchange(RESPONSES, body, memories=remembered(RESPONSES, body, memory))
        sent = json.loads(exchange.body)
        self.assertEqual(sent["previous_response_id"], f"resp_{len(rounds)}")
        ours = [call for call in calls_of(rounds[-1]) if is_ours(call)]
        mine = [{"type": "function_call_output", "call_id": c.id, "output": f"ok {n}"} for n, c in enumerate(ours)]
        if answers:
            self.assertEqual(sent["input"], [*mine, *answers])
        else:
            self.assertIn(sent["input"], ["And now?", [{"role": "user", "content": "And now?"}]])

    def test_told_back(self) -> None:
        """Responses: where the provider repeats which response it continued, the client reads the one that it named."""
        _, memory = self._reply(RESPONSES, [[Called("c1", "read_ticket")], [Said("x")]], stream=True)
        assert memory is not None
        body = RESPONSES.request("bash", previous_response_id="resp_1", stream=False)
        exchange = open_exchange(RESPONSES, body, memories=[memory])
        exchange.feed(
            RESPONSES.document([Said("y")], 3).replace(b'{"id"', b'{"previous_response_id": "resp_2", "id"', 1)
        )
        exchange.end()
        self.assertEqual(json.loads(exchange.finish())["previous_response_id"], "resp_1")

    def test_text_after_a_call(self) -> None:
        """Responses: what the provider still lacks stays before a text that the client sends instead, in each round."""
        rounds: list[list[Part]] = [[Called("c1", "read_ticket"), Called("c2", "bash")]]
        _, memory = self._reply(RESPONSES, rounds, stream=True)
        assert memory is not None
        body = RESPONSES.request("bash", previous_response_id="resp_1", input="Never mind")
        exchange = open_exchange(RESPONSES, body, memories=[memory])
        lacking = {"type": "function_call_output", "call_id": "c1", "output": "ok 0"}
        said = {"role": "user", "content": "Never mind"}
        self.assertEqual(json.loads(exchange.body)["input"], [lacking, said])
        for number in (2, 3):
            _, turn = RESPONSES.serve(exchange, [Called(f"d{number}", "read_ticket")], number)
            exchange.answer(results(turn))
        sent = json.loads(exchange.body)["input"]
        self.assertEqual(sent[:2], [lacking, said])
        self.assertEqual([each["call_id"] for each in sent[2:]], ["d2", "d2", "d3", "d3"])

    def test_conversation(self) -> None:
        """Responses: of a conversation that the provider keeps it is sent the results and nothing again."""
        old: list[Any] = [{"type": "function_call", "call_id": "o", "name": "aileron_own", "arguments": "{}"}]
        body = RESPONSES.request("bash", "aileron_own", conversation="conv_1", input=old)
        exchange = open_exchange(RESPONSES, body)
        for number in (1, 2):
            calls = [Called(f"c{number}", "read_ticket"), *([Called("t", "bash")] if number == 2 else [])]
            _, turn = RESPONSES.serve(exchange, [Said("x"), *calls], number)
            exchange.answer(results(turn))
            sent = json.loads(exchange.body)["input"]
            self.assertEqual([each["call_id"] for each in sent], ["c1"])
        answer = {"type": "function_call_output", "call_id": "t", "output": "done"}
        body = RESPONSES.request("bash", conversation="conv_1", input=[answer])
        again = open_exchange(RESPONSES, body, memories=remembered(RESPONSES, body, exchange.memory()))
        self.assertEqual([each["call_id"] for each in json.loads(again.body)["input"]], ["c2", "t"])

    def test_not_stored(self) -> None:
        """Responses: where the provider stores nothing it is not referred to thinking that it did not seal."""
        for store, kept in ((False, ["function_call"]), (True, ["reasoning", "function_call"])):
            exchange = open_exchange(RESPONSES, RESPONSES.request(store=store))
            events = RESPONSES.events([Thought("t", "s"), Called("c1", "read_ticket")])
            exchange.feed(b"".join(events).replace(b', "encrypted_content": "s"', b""))
            exchange.answer(results(exchange.end()))
            sent = json.loads(exchange.body)["input"][1:]
            self.assertEqual([each["type"] for each in sent], [*kept, "function_call_output"])

    def test_changed_by_the_client(self) -> None:
        """Messages: a message that the client changed is put back as the provider said it; Chat: it keeps its text."""
        rounds: list[list[Part]] = [
            [Thought("t", "sig"), Called("c1", "read_ticket")],
            [Said("So"), Called("c2", "ship_update"), Called("c3", "bash")],
        ]
        _, memory = self._reply(MESSAGES, rounds, stream=True)
        used = provider.block(Called("c3", "bash"))
        answer = {"type": "tool_result", "tool_use_id": "c3", "content": "done c3"}
        changed = [{"role": "assistant", "content": [used]}, {"role": "user", "content": [answer]}]
        expected = [each for part in rounds for each in message_history(part, calls_of(part))]
        self.assertEqual(self._sent(MESSAGES, changed, memory), expected)
        _, memory = self._reply(CHAT, [[Said("A"), Called("c1", "read_ticket")], rounds[1]], stream=True)
        message = {"role": "assistant", "content": "Short", "tool_calls": [provider.chat_call(Called("c3", "bash"))]}
        first, result, second, *_ = self._sent(CHAT, [message], memory)
        self.assertEqual((first["content"], result["content"], second["content"]), (None, "ok 0", "Short"))

    def test_renamed_and_changed(self) -> None:
        """Messages: a call of a renamed tool, in a message that the client changed, has one name before the model."""
        rounds: list[list[Part]] = [[Said("So"), Called("c2", "ship_update"), Called("c3", "aileron_own")]]
        _, memory = self._reply(MESSAGES, rounds, stream=True)
        client = message_history([Called("c3", "aileron_own")], [Called("c3", "aileron_own")])
        sent = self._sent(MESSAGES, client, memory)
        names = [b["name"] for b in sent[0]["content"] if b["type"] == "tool_use"]
        self.assertEqual(names, ["ship_update", "agent_aileron_own"])

    def test_no_tools_left(self) -> None:
        """A history is put back only into a request with tools: providers take no calls without them."""
        parts, memory = self._reply(MESSAGES, [[Called("c2", "ship_update"), Called("c3", "bash")]], stream=True)
        more: dict[str, Any] = {"messages": message_history(parts, calls_of(parts))}
        body = MESSAGES.request(**more)
        self.assertEqual(open_exchange(MESSAGES, body, [], remembered(MESSAGES, body, memory)).body, body)

    def test_nothing_said_at_last(self) -> None:
        """Messages: where the last response had no content the client's message stays, since none may be empty."""
        _, memory = self._reply(MESSAGES, [[Thought("t", "sig"), Called("c1", "read_ticket")], []], stream=True)
        client = message_history([Thought("t", "sig")], [])
        self.assertIsNotNone(memory)
        self.assertEqual(self._sent(MESSAGES, client, memory), client)

    def test_calls_left_out(self) -> None:
        """Chat: where the client leaves out some of its calls, ours come before those that it kept."""
        rounds: list[list[Part]] = [[Called("c1", "bash"), Called("c2", "ship_update"), Called("c3", "bash")]]
        _, memory = self._reply(CHAT, rounds, stream=True)
        message, result, *_ = self._sent(CHAT, chat_history([Called("c3", "bash")], []), memory)
        self.assertEqual([call["id"] for call in message["tool_calls"]], ["c2", "c3"])
        self.assertEqual(result["tool_call_id"], "c2")

    def test_last_of_equal_keys(self) -> None:
        """Chat: where a provider's identifiers repeat, the last message that has one is the one that is meant."""
        _, memory = self._reply(CHAT, [[Called("call_0", "read_ticket"), Called("call_1", "bash")]], stream=False)
        old = chat_history([Called("call_1", "bash")], [])
        sent = self._sent(CHAT, [*old, {"role": "user", "content": "again"}, *old], memory)
        self.assertEqual([len(each.get("tool_calls", ())) for each in sent], [1, 0, 2, 0])

    def test_newest_of_equal_keys(self) -> None:
        """Where two replies have one identifier, only what the newer one hid is put back."""
        for wire, history in ((CHAT, chat_history), (MESSAGES, message_history), (RESPONSES, response_history)):
            memories = []
            for own in ("c1", "c2"):
                _, memory = self._reply(wire, [[Called(own, "read_ticket"), Called("call_1", "bash")]], stream=False)
                memories += [memory] if memory is not None else []
            theirs = [Called("call_1", "bash")]
            more: dict[str, Any] = {wire.history: history(theirs, theirs)}
            body = wire.request("bash", **more)
            sent = open_exchange(wire, body, memories=memories).body
            self.assertEqual((sent.count(b'"c1"'), sent.count(b'"c2"')), (0, 2), sent)

    def test_identifier_elsewhere(self) -> None:
        """An identifier that two replies share, but the history has not, keeps neither out."""
        for wire, history in ((CHAT, chat_history), (MESSAGES, message_history), (RESPONSES, response_history)):
            memories, entries = [], []
            for own, other in (("c1", "c2"), ("c3", "c4")):
                theirs = Called(other, "bash")
                _, memory = self._reply(wire, [[Called(own, "read_ticket"), theirs]], stream=False)
                memories += [evolve(memory, keys=(*memory.keys, "same"))] if memory is not None else []
                entries += history([theirs], [theirs])
            more: dict[str, Any] = {wire.history: entries}
            sent = open_exchange(wire, wire.request("bash", **more), memories=memories).body
            self.assertEqual((sent.count(b'"c1"'), sent.count(b'"c3"')), (2, 2), sent)

    def test_merged_by_the_client(self) -> None:
        """A message that the client made of two replies stays as it is: nothing is put where it does not belong."""
        theirs = [Called("c2", "bash"), Called("c4", "bash")]
        for wire, history in ((CHAT, chat_history), (MESSAGES, message_history)):
            memories = []
            for own, other in zip(("c1", "c3"), theirs, strict=True):
                _, memory = self._reply(wire, [[Called(own, "read_ticket"), other]], stream=True)
                memories += [memory] if memory is not None else []
            more: dict[str, Any] = {wire.history: history(theirs, theirs)}
            sent = open_exchange(wire, wire.request("bash", **more), memories=memories).body
            self.assertEqual(json.loads(sent)[wire.history], more[wire.history])

    def test_work(self) -> None:
        """Putting back takes work by the length of the history, not by it for each reply that is remembered."""
        for wire in WIRES:
            self.assertLess(self._work(wire, 80), 3 * self._work(wire, 40), wire.name)

    def _work(self, wire: Wire, length: int) -> int:
        """Tell how many functions are called, where all of so many replies hid something."""
        history: Any = {"chat": chat_history, "messages": message_history, "responses": response_history}[wire.name]
        entries: list[Any] = []
        memories = []
        for number in range(length):
            theirs = Called(f"t{number}", "aileron_own")
            _, memory = self._reply(wire, [[Called(f"o{number}", "read_ticket"), theirs]], stream=False)
            memories += [evolve(memory, keys=(theirs.id,))] if memory is not None else []
            entries += history([theirs], [theirs])
        more: dict[str, Any] = {wire.history: entries}
        body = wire.request("bash", "aileron_own", **more)
        calls: list[None] = []
        sys.setprofile(lambda *_: calls.append(None))
        try:
            sent = open_exchange(wire, body, memories=memories).body
        finally:
            sys.setprofile(None)
        self.assertEqual(sent.count(b'"read_ticket"'), length + 1)
        return len(calls)

    def test_marks_stay(self) -> None:
        """Messages: what the client adds to blocks, such as where its cache ends, stays, and nothing is added to it."""
        rounds: list[list[Part]] = [[Said("So"), Called("c2", "ship_update"), Called("c3", "bash")]]
        parts, memory = self._reply(MESSAGES, rounds, stream=True)
        client = message_history(parts, calls_of(parts))
        for block in (client[0]["content"][-1], client[1]["content"][-1]):
            block["cache_control"] = {"type": "ephemeral"}
        sent = self._sent(MESSAGES, client, memory)
        marked = [b.get("id") or b.get("tool_use_id") for m in sent for b in m["content"] if "cache_control" in b]
        self.assertEqual(marked, ["c3", "c3"])
        self.assertEqual([b.get("tool_use_id") for b in sent[1]["content"]], ["c2", "c3"])
