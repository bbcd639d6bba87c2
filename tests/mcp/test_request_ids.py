"""Requests on standard streams whose id nobody could answer."""

from __future__ import annotations

import json
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.mcp._streams import OutputStream, StreamServer
from aileron.mcp.request_ids import refuse_unusable_id
from tests.features.mcp_http.test_session_server import UNUSABLE_IDS, USABLE_IDS
from tests.mcp.stepped import SteppedCase


def call(**more: Any) -> bytes:
    """A call of a tool, as one line."""
    return json.dumps({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "x"}, **more}).encode()


class RefusalTests(SynchronousTestCase):
    """What is refused."""

    def test_table(self) -> None:
        """Only a request with an unusable id is refused, and the refusal names no id."""
        for each in UNUSABLE_IDS:
            answer = json.loads(refuse_unusable_id(call(id=each)) or b"null")
            self.assertEqual((answer["jsonrpc"], answer["id"], answer["error"]["code"]), ("2.0", None, -32600), each)
        for each in USABLE_IDS:
            self.assertIsNone(refuse_unusable_id(call(id=each)), each)
        for other in (call(), b"[]", b"{", b"\xff", b"1", b'{"id": null, "result": {}}', b"[" * 100_000):
            self.assertIsNone(refuse_unusable_id(other), other[:40])

    @given(st.binary(max_size=60))
    def test_any_bytes(self, message: bytes) -> None:
        """No bytes make it fail."""
        self.assertIsNone(refuse_unusable_id(message))


class StreamTests(SteppedCase):
    """A server over lines."""

    def test_refused(self) -> None:
        """The line is answered with the error, and the SDK is not given it."""
        written: list[bytes] = []
        server = StreamServer(self.sides.bridge, cast(Any, None), OutputStream(written.append))
        server.receive(call(id=None))
        server.receive(call(id=1.5))
        server.receive(call(id=7))
        self.settle()
        self.assertEqual([json.loads(each)["error"]["code"] for each in written], [-32600, -32600])
        self.assertEqual(server._input._queue.qsize(), 1)
