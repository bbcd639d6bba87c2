"""JSON lines between the reactor's transport and the SDK's streams."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from contextlib import redirect_stdout

import mcp.types as t
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from aileron import mcp
from aileron.mcp._lines import JsonLines
from aileron.mcp._streams import InputStream, OutputStream, parse_line

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class LinesCase(SynchronousTestCase):
    """Lines with a transport in memory."""

    def setUp(self) -> None:
        self.ended = 0
        self.received: list[bytes] = []
        self.transport = StringTransport()
        self.lines = self.make()

    def make(self) -> JsonLines:
        """A fresh protocol."""
        lines = JsonLines(self.received.append, self.end)
        lines.makeConnection(self.transport)  # type: ignore[no-untyped-call]
        return lines

    def end(self) -> None:
        """Count."""
        self.ended += 1


class HelpTests(SynchronousTestCase):
    def test_help(self) -> None:
        """Asked for help the program says how it is used, and serves nothing."""
        self.patch(sys, "argv", ["aileron-mcp", "--help"])
        with redirect_stdout(io.StringIO()) as out:
            mcp.main()
        self.assertTrue(out.getvalue().startswith("Usage: aileron-mcp\n"))
        self.assertIn("aileron mcp config CLIENT", out.getvalue())


class ReadTests(LinesCase):
    """What the client sends."""

    @settings(deadline=None, max_examples=40)
    @given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 30))
    def test_lines(self, ids: list[int], size: int) -> None:
        """Each line is one message, in order, however the bytes are cut."""
        lines = self.make()
        data = b"".join(json.dumps({**PING, "id": number}).encode() + b"\r\n" for number in ids)
        for start in range(0, len(data), size):
            _receive(lines, data[start : start + size])
        self.assertEqual([_request(parse_line(each)).id for each in self.received], ids)
        self.received.clear()

    def test_malformed(self) -> None:
        """A line that is no message is passed on as a fault, and the next one is read."""
        _receive(self.lines, b"{nonsense\n\n" + json.dumps(PING).encode() + b"\n\xff\n")
        kinds = [isinstance(parse_line(each), SessionMessage) for each in self.received]
        self.assertEqual((kinds, self.ended), ([False, True, False], 0))

    def test_endless_line(self) -> None:
        """A line without an end is not kept for ever."""
        self.lines.MAX_LENGTH = 100
        _receive(self.lines, b"x" * 100)
        self.assertEqual(self.ended, 0)
        _receive(self.lines, b"x")
        self.assertEqual(self.ended, 1)


class StreamTests(SynchronousTestCase):
    """What the SDK reads from and writes to."""

    def test_waits(self) -> None:
        """Who reads before there is anything to read is given what comes next."""

        async def read() -> list[SessionMessage | Exception]:
            stream, faults = InputStream(), [ValueError("1"), ValueError("2")]
            waiting = asyncio.ensure_future(stream.receive())
            await asyncio.sleep(0)
            for fault in faults:
                stream.put(fault)
            found = [await waiting]
            async for message in stream:
                return [*found, message]
            return found

        self.assertEqual([str(message) for message in asyncio.run(read())], ["1", "2"])

    def test_writes(self) -> None:
        """An answer is a line, without the fields that nobody set."""
        written: list[bytes] = []
        answer = t.JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "a\nb"})
        asyncio.run(OutputStream(written.append).send(SessionMessage(answer)))
        self.assertEqual(written, [b'{"jsonrpc":"2.0","id":1,"result":{"text":"a\\nb"}}'])


class EndTests(LinesCase):
    """The client is gone."""

    def test_each_way(self) -> None:
        """The end of input, a broken output and the loss of both each end the lines, and only once."""
        for lose in (JsonLines.readConnectionLost, JsonLines.writeConnectionLost, JsonLines.connectionLost):
            lines, before = self.make(), self.ended
            lose(lines)
            lines.connectionLost()
            self.assertEqual(self.ended, before + 1)

    def test_late(self) -> None:
        """After the end, and after the close, nothing is read or written, and nothing ends a second time."""
        for close, ended in ((JsonLines.writeConnectionLost, 1), (JsonLines.close, 0)):
            self.setUp()
            self.lines.write_line(b"in time")
            close(self.lines)
            _receive(self.lines, json.dumps(PING).encode() + b"\n")
            self.lines.write_line(b"late")
            self.lines.connectionLost()
            self.assertEqual((self.received, self.transport.value(), self.ended), ([], b"in time\n", ended))


def _receive(lines: JsonLines, data: bytes) -> None:
    lines.dataReceived(data)  # type: ignore[no-untyped-call]


def _request(message: SessionMessage | Exception) -> t.JSONRPCRequest:
    assert isinstance(message, SessionMessage)
    assert isinstance(message.message, t.JSONRPCRequest)
    return message.message
