"""In-band mode between its client, the gateway and an agent's tools: who gets what, when, and how often."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from twisted.logger import capturedLogs

from aileron.base.json import compact
from aileron.features.gateway._completions import CompletionRecorder
from aileron.features.gateway._tally import Tally
from aileron.features.inband._conversation import DOCUMENT_WAIT_SECONDS, KEEP_ALIVE_SECONDS, STREAM_WAIT_SECONDS
from tests.features.gateway.case import get, status_of

from .case import CHAT, KEY, MOST_TURNS, WAITING, Answered, InBandCase, asked, chunk, content, events_of, head, text_of
from .provider import Called, Said, chat_events

SHIP = Called("c1", "ship", '{"to": "you"}')


class TurnTests(InBandCase):
    """Turns of one request."""

    def test_own_call(self) -> None:
        """A call of ours is run with its arguments, its result is the provider's next request, and the reply is one."""
        line, there = self.begin()
        first = self.next_request(there)
        self.assertEqual(first["messages"], asked()["messages"])
        self.assertEqual([each["function"]["name"] for each in first["tools"]], ["look_up", "ship"])
        self.say(there, Said("one moment"), SHIP)
        second = self.next_request(there)
        [(name, arguments, key, wait)] = self.tools.called
        self.assertEqual((name, arguments, wait), ("ship", {"to": "you"}, STREAM_WAIT_SECONDS))
        self.assertRegex(key, "^[0-9a-f]{64}$")
        self.assertEqual(second["messages"][-1]["content"], "ship answers")
        self.say(there, Said("done"), number=2)
        heard = self.after(line)
        self.assertEqual((status_of(heard), text_of(heard)), (200, "one moment\n\ndone"))
        self.assertIn(b"\r\nX-Request-Id: r1\r\n", heard)
        self.assertNotIn(b"ship", heard)
        self.assertTrue(heard.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), heard[-40:])

    def test_document(self) -> None:
        """Not streamed it is one document with its length."""
        line, there = self.begin(stream=False)
        self.next_request(there)
        self.say(there, SHIP, stream=False)
        self.net.run()
        self.assertEqual(self.tools.called[0][3], DOCUMENT_WAIT_SECONDS)
        self.next_request(there)
        self.assertEqual(line.take(), b"")
        self.say(there, Said("done"), number=2, stream=False)
        heard = self.after(line)
        self.assertEqual(json.loads(content(heard))["choices"][0]["message"]["content"], "done")
        self.assertIn(b"\r\nContent-Length: %d\r\n" % len(content(heard)), heard)
        self.assertNotIn(b"chunked", heard)

    def test_next_request(self) -> None:
        """The client's connection serves another request after the reply, and one that wants no more is closed."""
        line, there = self.begin()
        self.next_request(there)
        self.say(there, Said("done"))
        self.assertEqual(text_of(self.after(line)), "done")
        line.say(self.post(asked(), "Connection: close"))
        self.next_request(there)
        self.say(there, Said("more"))
        heard = self.after(line)
        self.assertEqual((text_of(heard), b"\r\nConnection: close\r\n" in heard), ("more", True))
        self.assertIsNotNone(line.lost)

    def test_text_at_once(self) -> None:
        """Text reaches the client as soon as it has come, before anything after it."""
        line, there = self.begin()
        there.end.write(head())
        for event in chat_events([Said("abcdef")])[:3]:
            there.end.write(chunk(event))
            self.net.run()
            self.assertIn(chunk(event), line.take())

    def test_cut_anywhere(self) -> None:
        """In whatever pieces an answer comes, the reply is the same."""
        whole = head() + b"".join(map(chunk, chat_events([Said("abc"), SHIP]))) + b"0\r\n\r\n"
        for size in (1, 7, 100):
            line, there = self.begin()
            self.next_request(there)
            for at in range(0, len(whole), size):
                there.end.write(whole[at : at + size])
                self.net.run()
            self.next_request(there)
            self.say(there, Said("d"), number=2)
            self.assertEqual(text_of(self.after(line)), "abc\n\nd")

    def test_keys(self) -> None:
        """No two calls have one idempotency key, not those of one id either."""
        for _ in range(2):
            _line, there = self.begin()
            for _ in range(2):
                self.next_request(there)
                self.say(there, SHIP, Called("c1", "look_up"))
        self.net.run()
        keys = [key for _, _, key, _ in self.tools.called]
        self.assertEqual((len(keys), len(set(keys))), (8, 8))

    def test_client_tools(self) -> None:
        """A turn with calls of the client's alone is the client's, and nothing runs."""
        line, there = self.begin(tools=["own"])
        self.next_request(there)
        self.say(there, Called("c1", "own"))
        heard = self.after(line)
        self.assertIn(b'"own"', heard)
        self.assertEqual((self.tools.called, self.events("in_band.turn")), ([], []))

    def test_mixed(self) -> None:
        """Of a turn with calls of both ours are run first, then the reply ends; later they are back in the history."""
        self.tools.answers = [WAITING]
        line, there = self.begin(tools=["own"])
        self.next_request(there)
        self.say(there, SHIP, Called("c2", "own"))
        self.assertNotIn(b"0\r\n\r\n", self.after(line)[-7:])
        self.tools.waiting[0].callback(Answered("shipped"))
        self.assertTrue(self.after(line).endswith(b"0\r\n\r\n"))
        self.assertIsNone(self.next_request(there))
        own = {"id": "c2", "type": "function", "function": {"name": "own", "arguments": "{}"}}
        history = [{"role": "assistant", "content": None, "tool_calls": [own]}]
        history += [{"role": "tool", "tool_call_id": "c2", "content": "mine"}]
        body = asked(tools=["own"])
        line.say(self.post({**body, "messages": [*body["messages"], *history]}))
        messages = self.next_request(there)["messages"]
        self.assertEqual([each["id"] for each in messages[1]["tool_calls"]], ["c1", "c2"])
        self.assertEqual([each["content"] for each in messages[2:]], ["shipped", "mine"])

    def test_most_turns(self) -> None:
        """After so many turns the model is told which setting ends them, and so it is if it calls all the same."""
        line, there = self.begin()
        for number in range(1, MOST_TURNS + 1):
            self.assertNotIn("tool_choice", self.next_request(there))
            self.say(there, SHIP, number=number)
        for number, word in ((98, "This was turn 3 of 3"), (99, "Not run")):
            request = self.next_request(there)
            self.assertEqual(request["tool_choice"], "none")
            told = request["messages"][-1]["content"]
            self.assertIn(word, told)
            self.assertIn("gateway.in_band_turns", told)
            self.say(there, *([SHIP] if number == 98 else [Said("sorry")]), number=number)
        heard = self.after(line)
        self.assertTrue(heard.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), heard[-100:])
        self.assertEqual((len(self.tools.called), text_of(heard)), (MOST_TURNS, "sorry"))
        shapes = [event.payload["calls"] for event in self.events("in_band.turn")]
        self.assertEqual(shapes[MOST_TURNS:], [[{"tool": "ship", "outcome": "limit"}]])

    def test_past_all_turns(self) -> None:
        """A model that goes on calling ends the reply as an error that says so, on record as well."""
        line, there = self.begin()
        for number in range(1, MOST_TURNS + 3):
            self.next_request(there)
            self.say(there, SHIP, number=number)
        told = events_of(self.after(line))[-1]["error"]["message"]
        self.assertIn("gateway.in_band_turns", told)
        self.assertEqual((len(self.tools.called), len(self.events("in_band.turn"))), (MOST_TURNS, MOST_TURNS + 2))
        self.assertIsNone(self.next_request(there))

    def test_completion(self) -> None:
        """A turn has the id of the completion that the gateway records, and its calls those of their runs."""
        self.tools.answers = [Answered("shipped", run_id="R1"), Answered("a form")]
        numbers = count(1)
        recorder = CompletionRecorder(self.store.audit, self.clock, lambda: f"01JB{next(numbers):022d}")
        tally = Tally(self.clock.seconds, lambda _: None, lambda *_: None, completions=recorder)
        self.meters.begin = tally.begin  # type: ignore[assignment, method-assign]
        for stream in (True, False):
            _line, there = self.begin(stream=stream)
            self.next_request(there)
            self.say(there, SHIP, SHIP, stream=stream)
            self.next_request(there)
            self.say(there, Said("done"), stream=stream)
            self.net.run()
        completions, turns = self.events("completion.recorded"), self.events("in_band.turn")
        asked = [each.payload["completion"] for each in completions]
        self.assertEqual([each.payload["completion"] for each in turns], asked[::2])
        self.assertEqual((len(set(asked)), [each.payload["calls"] for each in completions]), (4, [2, 0, 2, 0]))
        first: Any = turns[0].payload["calls"]
        self.assertEqual([each.get("run") for each in first], ["R1", None])
        self.assertEqual({each.session_id for each in completions}, {self.own.id})

    def test_on_record(self) -> None:
        """Each hidden turn is on record by its shape, and nothing that was said is."""
        self.tools.answers = [Answered("ä-result"), Answered("wait", pending=object()), Answered("no", is_error=True)]
        _line, there = self.begin()
        self.next_request(there)
        calls = [Called(f"c{number}", "ship", '{"to":"secret"}') for number in range(3)]
        self.say(there, *calls, Called("c4", "ship", "[]"))
        self.next_request(there)
        (event,) = self.events("in_band.turn")
        shapes = event.payload["calls"]
        assert isinstance(shapes, (list, tuple))
        self.assertEqual([each["outcome"] for each in shapes], ["answered", "pending", "error", "invalid"])
        self.assertEqual([each["output_bytes"] for each in shapes][:2], [9, 4])
        self.assertEqual((shapes[0]["tool"], shapes[0]["input_bytes"]), ("ship", 15))
        self.assertEqual((event.session_id, event.actor.id), (self.own.id, self.own.id))
        self.assertEqual((event.payload["protocol"], event.payload["turn"]), ("openai.chat", 1))
        for secret in ("secret", "result", KEY):
            self.assertNotIn(secret, str(event))
        self.assertEqual(len(self.tools.called), 3)

    def test_warnings(self) -> None:
        """A client's tool that is renamed is on record once for a session."""
        for _ in range(2):
            _line, there = self.begin(tools=["aileron_x"])
            self.next_request(there)
        (event,) = self.events("in_band.warned")
        self.assertIn("aileron_x", str(event.payload["warnings"]))

    def test_long_warnings(self) -> None:
        """Names that a client makes long or many are cut before they are recorded, and recorded once all the same."""
        tools = [f"aileron_{number}{'x' * 10_000}" for number in range(70)]
        for _ in range(2):
            _line, there = self.begin(tools=tools)
            self.next_request(there)
        (event,) = self.events("in_band.warned")
        warnings = event.payload["warnings"]
        self.assertLess(len(compact(warnings)), 64 * 600)
        self.assertIn("6 more warnings are not recorded.", compact(warnings))


class WaitTests(InBandCase):
    """Calls that wait for a person."""

    def setUp(self) -> None:
        super().setUp()
        self.tools.answers = [WAITING]

    def test_kept_alive(self) -> None:
        """While a call waits the client hears of us now and then, and not any more once it is answered."""
        line, there = self.begin()
        self.next_request(there)
        self.say(there, SHIP)
        self.after(line)
        for _ in range(3):
            self.wait(KEEP_ALIVE_SECONDS)
            self.assertTrue(content(b"chunked\r\n\r\n" + line.take()).startswith(b":"))
        self.tools.waiting[0].callback(Answered("done"))
        self.next_request(there)
        self.wait(KEEP_ALIVE_SECONDS * 2)
        self.assertEqual(line.take(), b"")

    def test_own_limit(self) -> None:
        """A client says how long its calls may wait; the provider does not hear that."""
        _line, there = self.begin("Prefer: wait=7")
        self.net.run()
        self.assertNotIn(b"wait=7", there.heard)
        self.next_request(there)
        self.say(there, SHIP)
        self.net.run()
        self.assertEqual(self.tools.called[0][3], 7.0)

    def test_client_left(self) -> None:
        """A client that leaves ends the wait, not the run; the turn is on record, and the provider not asked again."""
        self.tools.answers = [WAITING]
        line, there = self.begin()
        self.next_request(there)
        self.say(there, SHIP)
        self.after(line)
        with capturedLogs() as logged:
            line.end.loseConnection()
            self.wait(1)
            self.assertEqual((self.tools.cancelled, self.next_request(there)), (1, None))
            self.wait(KEEP_ALIVE_SECONDS)
        self.assertEqual([each for each in logged if "in-band" in str(each.get("log_format"))], [])
        [turn] = self.events("in_band.turn")
        self.assertEqual(turn.payload["calls"], [{"tool": "ship", "input_bytes": 12, "outcome": "left"}])

    def test_client_left_while_it_reads(self) -> None:
        """A client that leaves amid an answer ends the provider's connection."""
        line, there = self.begin()
        there.end.write(head() + chunk(chat_events([Said("abc")])[0]))
        self.net.run()
        line.end.loseConnection()
        self.wait(1)
        self.assertIsNotNone(there.lost)

    def test_slow_client(self) -> None:
        """A client that does not read has the provider wait, and gets all of it once it reads."""
        line, there = self.begin()
        line.end.pauseProducing()
        self.net.most = lambda: 100_000
        text = "x" * 70_000
        events = [chunk(each) for each in chat_events([Said(text)])]
        there.end.write(head() + b"".join(events[:400]))
        self.net.run()
        self.assertLess(len(line.heard), len(text))
        self.assertFalse(there.end.other.reading)
        line.end.resumeProducing()
        self.net.run()
        there.end.write(b"".join(events[400:]) + b"0\r\n\r\n")
        self.assertEqual(text_of(self.after(line)), text)


class RouteTests(InBandCase):
    """What is in-band mode's, and what is not."""

    def test_plain_gateway(self) -> None:
        """A request that is not in-band mode's goes on as it is, with or without a session."""
        there = self.used(get("/openai/v1/models"))[1]
        self.assertIsNone(self.next_request(there))
        self.assertEqual(self.tools.called, [])

    def test_other_paths(self) -> None:
        """Any other path of a provider's is the gateway's, in the session's name, without any key of ours."""
        for target, field in ((f"/s/{KEY}/inband/openai/v1/models?a=1", ""), ("/inband/openai/v1/models?a=1", KEY)):
            lines = [f"X-Aileron-Gateway-Key: {field}"] if field else []
            _line, there = self.ask(get(target, *lines))
            heard = there.take()
            self.assertTrue(heard.startswith(b"GET /v1/models?a=1 HTTP/1.1\r\n"), heard)
            self.assertNotIn(b"ail_", heard)
            self.assertEqual(self.meters.all[-1].begun[1], self.own.id)

    def test_key_in_a_field(self) -> None:
        """The key may stand in a field of its own."""
        lines = f"X-Aileron-Gateway-Key: {KEY}", "accept-encoding: gzip"
        line, there = self.ask(self.post(asked(), *lines, key=None))
        heard = there.heard
        self.assertEqual([each["function"]["name"] for each in self.next_request(there)["tools"]], ["look_up", "ship"])
        self.assertNotIn(b"ail_", heard)
        self.assertIn(b"Accept-Encoding: identity\r\n", heard)
        self.assertNotIn(b"gzip", heard)
        self.say(there, Said("done"))
        self.assertEqual(text_of(self.after(line)), "done")

    def test_other_keys(self) -> None:
        """By a gateway key, by an unknown key and by none there is no in-band mode, and nothing is sent."""
        for key in ("ail_g_" + "k" * 43, "ail_i_" + "x" * 43, "%C3%A4", None):
            line = self.line()
            self.refused(line.say(self.post(asked(), key=key)), 403)
        self.assertEqual(self.reached(), [])

    def test_in_band_key_elsewhere(self) -> None:
        """An in-band key opens nothing at the gateway itself."""
        for target in (f"/s/{KEY}/v1/chat/completions", f"/s/{KEY}/openai/v1/models"):
            self.refused(self.line().say(self.post(asked(), path=target, key=None)), 403)
        self.assertEqual(self.reached(), [])

    def test_ended_session(self) -> None:
        """The key of a session that has ended opens nothing."""
        self.do(self.store.sessions.end(self.own.id, 0, ()))
        self.keys.in_memory.clear()
        self.keys.in_store.clear()
        self.refused(self.line().say(self.post(asked())), 403)
        self.assertEqual((self.reached(), self.tools.listed), ([], 0))

    def test_refused_as_by_the_gateway(self) -> None:
        """A browser's page and a locked vault are refused as the gateway refuses them."""
        self.refused(self.line().say(self.post(asked(), "Origin: http://evil.test")), 403)
        self.refused(self.line().say(self.post(asked(), "Cookie: aileron_x=1")), 403)
        self.vault.lock()
        self.wait(2)
        self.refused(self.line().say(self.post(asked())), 403, "vault_locked")
        self.assertEqual((self.reached(), self.tools.called), ([], []))

    def test_elsewhere(self) -> None:
        """Other methods and paths are not in-band mode's."""
        for target in ("/inband", "/inband/", "/inband/other/v1/models", "/inbandx/openai/v1/models"):
            self.assertIn(b"ours: ", self.line().say(get(target)))
        _line, there = self.ask(get(f"/s/{KEY}{CHAT}"))
        self.assertTrue(there.take().startswith(b"GET /v1/chat/completions"))
