"""JSON lines between the reactor's transport and the SDK's streams."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator

import mcp.types as t
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from aileron.mcp._stdio import Inbox, Outlet, Wire

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class WireCase(SynchronousTestCase):
    """A wire with a transport in memory."""

    def setUp(self) -> None:
        self.ended = 0
        self.transport = StringTransport()
        self.wire = self.make()

    def make(self) -> Wire:
        """A fresh wire."""
        wire = Wire(self.end)
        wire.transport = self.transport
        return wire

    def end(self) -> None:
        """Count."""
        self.ended += 1

    def received(self, wire: Wire | None = None) -> list[SessionMessage | Exception]:
        """What the SDK can read by now."""
        return asyncio.run(_all_of((wire or self.wire).inbox))


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


class InboxTests(WireCase):
    """The SDK reads."""

    def test_waits(self) -> None:
        """Who reads before there is anything to read is given what comes next."""

        async def read() -> list[SessionMessage | Exception]:
            waiting = asyncio.ensure_future(self.wire.inbox.receive())
            await asyncio.sleep(0)
            for number in (1, 2):
                self.wire.dataReceived(json.dumps({**PING, "id": number}).encode() + b"\n")
            return [await waiting, *[each async for each in _first(self.wire)]]

        self.assertEqual([_request(message).id for message in asyncio.run(read())], [1, 2])


class OutletTests(SynchronousTestCase):
    """Lines on their way to a client that keeps up, and to one that does not."""

    def setUp(self) -> None:
        """A pipe that nobody reads yet."""
        self.readable, self.writable = os.pipe()
        os.set_blocking(self.writable, False)
        self.addCleanup(os.close, self.readable)
        self.later: list[bytes] = []
        self.outlet = Outlet(self.writable, self.later.append)

    def send(self, text: str) -> bytes:
        """Send an answer that says so; its line."""
        answer = t.JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": text})
        asyncio.run(self.outlet.send(SessionMessage(answer)))
        return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": text}}, separators=(",", ":")).encode() + b"\n"

    def test_at_once(self) -> None:
        """What a client takes at once needs no reactor: a line each, without the fields that nobody set."""
        self.addCleanup(os.close, self.writable)
        lines = self.send("a\nb") + self.send("two")
        self.assertEqual((os.read(self.readable, 999), self.later), (lines, []))

    def test_slow(self) -> None:
        """From the byte on that does not fit everything goes by the reactor, also when there is room again."""
        lines = [self.send(letter * 50_000) for letter in "ab"]
        taken = os.read(self.readable, 200_000)
        lines.append(self.send("c" * 50_000))
        os.close(self.writable)
        self.assertEqual(taken + b"".join(self.later), b"".join(lines))
        self.assertEqual(os.read(self.readable, 99), b"")

    def test_closed(self) -> None:
        """After the close nothing is written, in neither way."""
        self.outlet.close()
        self.send("late")
        os.close(self.writable)
        self.assertEqual((os.read(self.readable, 99), self.later), (b"", []))

    def test_broken(self) -> None:
        """A broken output is left to the reactor, which tells of its end."""
        os.close(self.writable)
        line = self.send("one")
        self.assertEqual(self.later, [line])


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

    def test_late_word(self) -> None:
        """What is left to write when the client is gone goes nowhere."""
        self.wire.write_line(b"in time\n")
        self.wire.readConnectionLost()
        self.wire.write_line(b"late\n")
        self.assertEqual(self.transport.value(), b"in time\n")


def _request(message: SessionMessage | Exception) -> t.JSONRPCRequest:
    assert isinstance(message, SessionMessage)
    assert isinstance(message.message, t.JSONRPCRequest)
    return message.message


async def _first(wire: Wire) -> AsyncIterator[SessionMessage | Exception]:
    """The next message, by the way of an iteration."""
    async for message in wire.inbox:
        yield message
        return


async def _all_of(inbox: Inbox) -> list[SessionMessage | Exception]:
    """What there is to read without waiting."""
    found: list[SessionMessage | Exception] = []
    while True:
        reading = asyncio.ensure_future(inbox.receive())
        await asyncio.sleep(0)
        if not reading.done():
            reading.cancel()
            return found
        found.append(reading.result())
