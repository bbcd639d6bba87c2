"""JSON lines between the reactor's transport and the SDK's streams."""

from __future__ import annotations

import json
import os
import sys

import mcp.types as t
from anyio import WouldBlock
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from aileron.mcp._stdio import Outlet, Wire
from tests.mcp.stepped import Stepped

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class WireCase(SynchronousTestCase):
    """A wire with a transport in memory and a loop by hand."""

    def setUp(self) -> None:
        self.sides = Stepped()
        self.addCleanup(self.sides.close)
        self.ended = 0
        self.transport = StringTransport()
        self.wire = self.make()

    def make(self) -> Wire:
        """A fresh wire."""
        wire = Wire(self.sides.bridge, self.end)
        wire.transport = self.transport
        return wire

    def end(self) -> None:
        """Count."""
        self.ended += 1

    def received(self, wire: Wire | None = None) -> list[SessionMessage | Exception]:
        """What the SDK can read by now."""
        self.sides.step_loop()
        found: list[SessionMessage | Exception] = []
        while True:
            try:
                found.append((wire or self.wire).incoming.receive_nowait())
            except WouldBlock:
                return found


class ReadTests(WireCase):
    """What the client sends."""

    @settings(deadline=None, max_examples=40)
    @given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 30))
    def test_lines(self, ids: list[int], size: int) -> None:
        """Each line is one message, in order, however the bytes are cut."""
        wire = self.make()
        data = b"".join(json.dumps({**PING, "id": number}).encode() + b"\r\n" for number in ids)
        for start in range(0, len(data), size):
            wire.dataReceived(data[start : start + size])
        messages = self.received(wire)
        self.assertEqual([_request(message).id for message in messages], ids)

    def test_malformed(self) -> None:
        """A line that is no message is passed on as a fault, and the next one is read."""
        self.wire.dataReceived(b"{nonsense\n\n" + json.dumps(PING).encode() + b"\n\xff\n")
        kinds = [isinstance(message, SessionMessage) for message in self.received()]
        self.assertEqual((kinds, self.ended), ([False, True, False], 0))

    def test_endless_line(self) -> None:
        """A line without an end is not kept for ever."""
        self.patch(sys.modules["aileron.mcp._stdio"], "MAX_LINE_BYTES", 100)
        self.wire.dataReceived(b"x" * 100)
        self.assertEqual(self.ended, 0)
        self.wire.dataReceived(b"x")
        self.assertEqual(self.ended, 1)


class WriteTests(WireCase):
    """What the server sends."""

    def test_line(self) -> None:
        """Each message is one line, without the fields that nobody set."""
        pumping = self.sides.bridge.ask(lambda: self.wire.pump(self.wire.write_line))
        answer = t.JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "a\nb"})
        sending = self.sides.bridge.ask(lambda: self.wire.outgoing.send(SessionMessage(answer)))
        self.sides.settle()
        self.successResultOf(sending)
        [line, rest] = self.transport.value().split(b"\n")
        self.assertEqual((json.loads(line), rest), ({"jsonrpc": "2.0", "id": 1, "result": {"text": "a\nb"}}, b""))
        self.assertNoResult(pumping)
        self.sides.bridge.post(self.wire.outgoing.close)
        self.sides.settle()
        self.successResultOf(pumping)

    def test_after_the_end(self) -> None:
        """What comes after the client is gone goes nowhere."""
        self.wire.readConnectionLost()
        self.wire.write_line(b"x\n")
        self.assertEqual(self.transport.value(), b"")


class OutletTests(SynchronousTestCase):
    """Lines on their way to a client that keeps up, and to one that does not."""

    def setUp(self) -> None:
        """A pipe that nobody reads yet."""
        self.readable, self.writable = os.pipe()
        os.set_blocking(self.writable, False)
        self.addCleanup(os.close, self.readable)
        self.later: list[bytes] = []
        self.outlet = Outlet(self.writable, self.later.append)

    def test_at_once(self) -> None:
        """What a client takes at once needs no reactor."""
        self.addCleanup(os.close, self.writable)
        self.outlet.write(b"one\n")
        self.outlet.write(b"two\n")
        self.assertEqual((os.read(self.readable, 99), self.later), (b"one\ntwo\n", []))

    def test_slow(self) -> None:
        """From the byte on that does not fit everything goes by the reactor, also when there is room again."""
        lines = [bytes([letter]) * 50_000 + b"\n" for letter in b"abc"]
        self.outlet.write(lines[0])
        self.outlet.write(lines[1])
        taken = os.read(self.readable, 200_000)
        self.outlet.write(lines[2])
        os.close(self.writable)
        self.assertEqual(taken + b"".join(self.later), b"".join(lines))
        self.assertEqual(os.read(self.readable, 99), b"")

    def test_broken(self) -> None:
        """A broken output is left to the reactor, which tells of its end."""
        os.close(self.writable)
        self.outlet.write(b"one\n")
        self.assertEqual(self.later, [b"one\n"])


class EndTests(WireCase):
    """The client is gone."""

    def test_each_way(self) -> None:
        """The end of input, a broken output and the loss of both each end the wire, and only once."""
        for lose in (Wire.readConnectionLost, Wire.writeConnectionLost, Wire.connectionLost):
            wire, before = self.make(), self.ended
            lose(wire)
            wire.connectionLost()
            self.assertEqual(self.ended, before + 1)

    def test_late_line(self) -> None:
        """A line that comes after the end is not served."""
        self.wire.writeConnectionLost()
        self.wire.dataReceived(json.dumps(PING).encode() + b"\n")
        self.assertEqual(self.received(), [])

    def test_loop_gone(self) -> None:
        """A line for a loop that has ended is dropped without a word."""
        self.sides.loop_gone = True
        self.wire.dataReceived(json.dumps(PING).encode() + b"\n")
        self.assertEqual(self.received(), [])


def _request(message: SessionMessage | Exception) -> t.JSONRPCRequest:
    assert isinstance(message, SessionMessage)
    assert isinstance(message.message, t.JSONRPCRequest)
    return message.message
