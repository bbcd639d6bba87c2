"""What a held request says of itself, however it is written."""

from __future__ import annotations

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.spending._request import MOST_ANSWER, RequestFacts, read_request
from tests.extent import examples

_HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n\r\n"


def read(body: bytes, head: bytes = _HEAD) -> RequestFacts:
    """What a request says."""
    return read_request(head, body)


class RequestTests(SynchronousTestCase):
    """Its model, its longest answer, and its digest."""

    def test_model(self) -> None:
        """The model is found wherever it stands, and with JSON escapes."""
        for text in (
            b'{"model":"gpt-5","messages":[]}',
            b'{"messages":[{"input":{"model":"opus"}}],"model" : "gpt-5"}',
            b'{"messages":[{"text":"\\"model\\":\\"opus\\""}],"m\\u006fdel":"gpt-5"}',
            b'{"tools":[{"properties":{"model":{"type":"string"}}}],"model":"gpt-5"}',
        ):
            self.assertEqual(read(text).model, "gpt-5", text)

    def test_two_models(self) -> None:
        """Which of two models a provider takes is not known: neither is believed, however it is spelled."""
        for text in (
            b'{"model":"cheap","model":"dear"}',
            b'{"model":"cheap","m\\u006fdel":"dear"}',
            b'{"model":"cheap","x":{"model":"a"},"model":"dear"}',
        ):
            self.assertIsNone(read(text).model, text)

    def test_no_model(self) -> None:
        """What is no object with a text of that name has no model."""
        for text in (
            b"",
            b"{}",
            b"[]",
            b'"model"',
            b'{"model":7}',
            b'{"model":""}',
            b'{"model":null}',
            b'{"model":"a\\u0000b"}',
            b'{"model":"\\ud800"}',
            b'{"model":"' + b"m" * 129 + b'"}',
            b'{"model":"a"',
            b'\xff{"model":"a"}',
            b"[" * 100_000,
        ):
            self.assertIsNone(read(text).model, text[:40])

    def test_compressed(self) -> None:
        """A compressed request is not read, whatever its bytes look like."""
        head = _HEAD.replace(b"Host", b"content-encoding: zstd\r\nHost")
        self.assertIsNone(read(b'{"model":"a"}', head=head).model)
        head = _HEAD.replace(b"Host", b"content-encoding: identity\r\nHost")
        self.assertEqual(read(b'{"model":"a"}', head=head).model, "a")

    def test_answer(self) -> None:
        """The longest answer that it allows is known, up to what is reserved for any."""
        for said, most in (
            ({}, MOST_ANSWER),
            ({"max_tokens": 100}, 100),
            ({"max_completion_tokens": 50, "max_tokens": 100}, 50),
            ({"max_output_tokens": 10**18}, MOST_ANSWER),
            ({"max_tokens": -1}, MOST_ANSWER),
            ({"max_tokens": True}, MOST_ANSWER),
            ({"max_tokens": "7"}, MOST_ANSWER),
        ):
            self.assertEqual(read(json.dumps({**said, "model": "m"}).encode()).answer, most, said)

    def test_digest(self) -> None:
        """The same request has the same digest, and no other has."""
        one = read(b'{"model":"a"}')
        self.assertEqual(one.digest, read(b'{"model":"a"}').digest)
        self.assertNotEqual(one.digest, read(b'{"model":"b"}').digest)
        self.assertNotEqual(one.digest, read(b'{"model":"a"}', head=_HEAD.replace(b"chat", b"x")).digest)
        self.assertIsNone(read_request(_HEAD, b"{}", digests=False).digest)

    @settings(deadline=None, max_examples=examples(200))
    @given(st.binary() | st.text().map(str.encode))
    @example(b'{"model":{"model":{"model":"a"}}}')
    def test_never_raises(self, body: bytes) -> None:
        """Whatever it is, it is read."""
        model = read(body).model
        self.assertTrue(model is None or model.isprintable())
