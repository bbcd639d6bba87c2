"""Which sentences claim an effect, and which do not."""

from __future__ import annotations

import json
import time

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.claims._answers import read_last_answer
from aileron.features.claims._claims import VERBS, Claim, find_claims, name_services
from tests.extent import examples

SERVICES = name_services({"slack": "slack", "ship-update": "slack", "ship_update": "slack", "mail": "mail"})


def claims(text: str) -> list[Claim]:
    """The claims of a text."""
    return list(find_claims(text, SERVICES))


class ClaimTests(SynchronousTestCase):
    """Sentences."""

    def test_claims(self) -> None:
        """An effect that an agent says it had is found, by the service or the action."""
        for text, verb, service in (
            ("I've posted the update to Slack.", "posted", "slack"),
            ("Posted to #engineering on Slack", "posted", "slack"),
            ("All tests pass. The message was sent via ship-update!", "sent", "slack"),
            ("I have sent the e-mail to Ada.", "sent", "mail"),
            ("Done.\n\n- **Sent** the email\n- Cleaned up", "sent", "mail"),
        ):
            self.assertEqual(claims(text), [Claim(verb, service)], text)
        self.assertEqual(Claim("posted", "slack").describe(), "Says it posted to Slack; no run did.")

    def test_no_claims(self) -> None:
        """What may happen, did not happen, somebody else did, or names no service, claims nothing."""
        for text in (
            "I haven't posted it to Slack.",
            "I could not send it; nothing was posted to Slack because the request was denied.",
            "Shall I say that I posted it to Slack?",
            "Once it is approved, it will be posted to Slack.",
            "If you approve, the update is posted to Slack.",
            "I created the file and updated the tests.",
            "Slack is a program.",
            "Ada posted this to Slack.",
            "It is posted to GitHub.",
            "",
        ):
            self.assertEqual(claims(text), [], text)

    def test_words(self) -> None:
        """Each verb of the table has words with a place for the service."""
        for verb, words in VERBS.items():
            self.assertEqual(words.count("{}"), 1, verb)

    def test_linear(self) -> None:
        """A long text of any kind takes time linear to its length."""
        for piece in ("i posted to slack ", "posted", "i've ", "a.", "not ", "\n", "' ", "slack"):
            began = time.process_time()
            claims(piece * (200_000 // len(piece)))
            self.assertLess(time.process_time() - began, 2.0, piece)

    @settings(deadline=None, max_examples=examples(100))
    @given(st.text())
    def test_never_raises(self, text: str) -> None:
        """Whatever the text is, it is read."""
        claims(text)


def events(*said: object) -> bytes:
    """A stream of these events."""
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in said)


class AnswerTests(SynchronousTestCase):
    """The text of a last answer."""

    def test_chat(self) -> None:
        """A chat's text is joined if the model stopped by itself."""
        pieces = [{"choices": [{"delta": {"content": each}}]} for each in ("I se", "nt it")]
        stop = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
        self.assertEqual(read_last_answer(events(*pieces, stop) + b"data: [DONE]\n\n", streamed=True), "I sent it")
        self.assertIsNone(read_last_answer(events(*pieces), streamed=True))
        call = {"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]}
        self.assertIsNone(read_last_answer(events(*pieces, call, stop), streamed=True))
        whole = {"choices": [{"message": {"content": "Sent."}, "finish_reason": "stop"}]}
        self.assertEqual(read_last_answer(json.dumps(whole).encode(), streamed=False), "Sent.")

    def test_messages(self) -> None:
        """Likewise a message, which goes on if a tool is used."""
        said = (
            {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Sent"}},
        )
        for reason, text in (("end_turn", "Sent"), ("tool_use", None), ("max_tokens", None)):
            stop = {"type": "message_delta", "delta": {"stop_reason": reason}}
            self.assertEqual(read_last_answer(events(*said, stop), streamed=True), text)
        whole = {"type": "message", "content": [{"type": "text", "text": "Sent"}], "stop_reason": "end_turn"}
        self.assertEqual(read_last_answer(json.dumps(whole).encode(), streamed=False), "Sent")
        whole["content"] = [{"type": "tool_use"}]
        self.assertIsNone(read_last_answer(json.dumps(whole).encode(), streamed=False))

    def test_responses(self) -> None:
        """Likewise a response, which goes on if a function is called."""
        text = {"type": "response.output_text.delta", "delta": "Sent"}
        item = {"type": "message", "content": [{"type": "output_text", "text": "Sent"}]}
        done = {"type": "response.completed", "response": {"status": "completed", "output": [item]}}
        self.assertEqual(read_last_answer(events(text, done), streamed=True), "Sent")
        call = {"type": "response.output_item.done", "item": {"type": "function_call"}}
        self.assertIsNone(read_last_answer(events(text, call, done), streamed=True))
        whole = {"object": "response", "status": "completed", "output": [item]}
        self.assertEqual(read_last_answer(json.dumps(whole).encode(), streamed=False), "Sent")

    @settings(deadline=None, max_examples=examples(200))
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["type", "choices", "delta", "content", "item", "output", "text"]), inner
                )
            ),
        ),
        st.booleans(),
    )
    def test_hostile(self, said: object, streamed: bool) -> None:
        """Whatever stands in an answer, it is read."""
        body = events(said, said) if streamed else json.dumps(said).encode()
        read_last_answer(body, streamed=streamed)
        read_last_answer(body[1:-1] + b"\xff", streamed=streamed)
