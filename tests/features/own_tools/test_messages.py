"""How requests become arguments, and recorded answers become answers again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors._forwarding import write_body
from aileron.features.own_tools._messages import find_whole_answer, read_answer, write_inputs
from aileron.features.own_tools.values import ToolRequest
from aileron.model.runs import AttemptRow, RunState
from aileron.redaction import Redactor
from aileron.testing import example_run

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WHOLE: Mapping[str, JSON] = {"status": 201, "reason": "Created", "headers": ["A: b: c", "Empty: "], "body": "x"}


class AnswerTests(SynchronousTestCase):
    """Recorded answers."""

    def test_whole(self) -> None:
        """An answer is as it was: status, reason, headers and body, with the run's header."""
        answer = read_answer(WHOLE, "RUN")
        assert answer is not None
        self.assertEqual((201, "Created", b"x"), (answer.status, answer.reason, answer.body))
        self.assertEqual((("A", "b: c"), ("Empty", ""), ("Aileron-Run", "RUN")), answer.headers)

    def test_not_whole(self) -> None:
        """What is no recorded answer is none."""
        for none in (None, "x", 1, True):
            self.assertIsNone(read_answer(none))
        for name, value in (("status", 99), ("status", "201"), ("headers", "x"), ("status", None)):
            self.assertIsNone(read_answer({**WHOLE, name: value}))
        self.assertIsNone(read_answer({}))
        self.assertIsNone(read_answer([]))

    def test_odd_parts(self) -> None:
        """A reason that no line can have is left out, and so is the body where there is none."""
        answer = read_answer({**WHOLE, "status": 204, "reason": "a\r\nb"})
        assert answer is not None
        self.assertEqual(("", b""), (answer.reason, answer.body))
        answer = read_answer({**WHOLE, "body": None, "body_base64": "!"})
        self.assertEqual(b"", answer and answer.body)

    def test_of_a_run(self) -> None:
        """The answer is that of the result, else that of the last attempt."""
        done = example_run("R", state=RunState.COMPLETED, result={"output": WHOLE, "steps": {}})
        self.assertEqual(WHOLE, find_whole_answer(done, ()))
        failed = example_run("R", state=RunState.FAILED)
        attempt = AttemptRow("R", "send", 1, "failed", NOON, answer=json.dumps(WHOLE), answer_type="application/json")
        self.assertEqual(WHOLE, find_whole_answer(failed, (attempt,)))
        for text in (None, "no JSON", "[" * 100_000):
            attempt = AttemptRow("R", "send", 1, "failed", NOON, answer=text)
            self.assertIsNone(find_whole_answer(failed, (attempt,)))
        self.assertIsNone(find_whole_answer(failed, ()))

    @given(st.binary(max_size=200))
    def test_same_bytes(self, content: bytes) -> None:
        """The bytes of a body are the same before and after it was recorded, in both directions."""
        recorded: dict[str, JSON] = write_body(content, Redactor.of("not-in-there-s3cret"))
        answer = read_answer({"status": 200, "reason": "", "headers": [], **recorded})
        self.assertEqual(content, answer and answer.body)
        inputs = write_inputs(ToolRequest("S", 1, "h", "POST", "/", body=content), ())
        answer = read_answer({"status": 200, "reason": "", **inputs})
        self.assertEqual(content, answer and answer.body)
