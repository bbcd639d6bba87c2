"""Of the process of a local MCP server: what it is sent, what is heard of it, its bounds and its end."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ProcessDone, ProcessTerminated
from twisted.internet.task import Clock, deferLater
from twisted.logger import capturedLogs
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

from aileron.base.json import compact
from aileron.connectors._answer import ServiceUnreachable
from aileron.connectors.kinds.mcp._process import (
    MOST_ERROR_LINES,
    MOST_QUEUED_BYTES,
    MOST_STRAY_LINES,
    MOST_UNASKED_BYTES,
    ErrorLog,
    Lines,
    ServerProcess,
)
from aileron.connectors.kinds.mcp._wire import Delivery, Message
from aileron.connectors.programs import Launch
from aileron.redaction import Redactor


class _Pipes:
    """The pipes of a process that takes a line only when the test lets it."""

    pid: int | None = None

    def __init__(self) -> None:
        self.written, self.signals = list[bytes](), list[str]()
        self.is_closed = False
        self.producer: Any = None

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Ask for the first line."""
        assert self.producer is None
        assert not streaming
        self.producer = producer
        producer.resumeProducing()

    def unregisterProducer(self) -> None:
        """Ask for no more."""
        self.producer = None

    def take(self) -> None:
        """It has read everything."""
        if self.producer is not None:
            self.producer.resumeProducing()

    def broken(self) -> None:
        """It reads nothing any more."""
        producer, self.producer = self.producer, None
        producer.stopProducing()

    def writeToChild(self, childFD: int, data: bytes) -> None:
        """Keep what it reads."""
        self.written.append(data)

    def closeChildFD(self, childFD: int) -> None:
        """Note that its input ends."""
        assert self.producer is None, "a pipe with a producer is never closed"
        self.is_closed = True

    def signalProcess(self, name: str) -> None:
        """Keep the signal."""
        self.signals.append(name)

    def loseConnection(self) -> None:
        """There is nothing to close."""


class _Listener:
    """Keeps what a server says."""

    def __init__(self) -> None:
        self.heard, self.lost_by = list[Message](), list[Exception]()

    def receive(self, message: Message) -> None:
        """Keep it."""
        self.heard.append(message)

    def lost(self, failure: Exception) -> None:
        """Keep why."""
        self.lost_by.append(failure)


def _message(number: int, text: str = "") -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": text or "ping"}


def _line(number: int) -> bytes:
    return compact(_message(number)).encode() + b"\n"


class BoundsTests(SynchronousTestCase):
    """A process that is only its pipes."""

    def setUp(self) -> None:
        self.clock, self.pipes, self.listener = Clock(), _Pipes(), _Listener()
        self.ended: list[str] = []
        self.groups: list[int] = []
        self.patch(os, "killpg", lambda _group, number: self.groups.append(number))
        process: Any = ServerProcess(
            self.clock,
            Launch(["x"], "/", {}),
            errors=ErrorLog(self.clock, "local://me/x", Redactor.of("s3cret-value")),
            ended=self.ended.append,
            most_bytes=1000,
        )
        self.process = process
        self.pipes.pid = 4711
        process.makeConnection(self.pipes)
        process.listen(self.listener)

    def sends(self, number: int, text: str = "") -> tuple[Delivery, Deferred[None]]:
        """It is sent a message."""
        delivery = Delivery()
        return delivery, self.process.send(_message(number, text), {}, delivery)

    def writes(self, data: bytes, descriptor: int = 1) -> None:
        """It writes this."""
        self.process.childDataReceived(descriptor, data)

    def dies(self, code: int | None = 0) -> None:
        """It is gone."""
        why = ProcessDone(0) if code == 0 else ProcessTerminated(code, None if code else signal.SIGKILL)
        self.process.processExited(Failure(why))
        self.process.processEnded(Failure(why))

    def test_one_message_at_a_time(self) -> None:
        """A message counts as sent when it begins to leave: when what was before it is in the pipe, and not earlier."""
        sent = [self.sends(number) for number in range(3)]
        self.assertEqual(self.pipes.written, [_line(0)])
        self.assertEqual([each.sent for each, _ in sent], [True, False, False])
        self.assertNoResult(sent[1][1])
        self.pipes.take()
        self.assertEqual(self.pipes.written, [_line(0), _line(1)])
        self.assertEqual([each.sent for each, _ in sent], [True, True, False])
        self.successResultOf(sent[1][1])
        for _ in range(3):
            self.pipes.take()
        self.sends(3)
        self.assertEqual(self.pipes.written, [_line(number) for number in range(4)])

    def test_given_up(self) -> None:
        """A message that was given up before it began to leave never leaves."""
        self.sends(0)
        overdue, withdrawn, cancelled = (self.sends(number) for number in range(1, 4))
        self.sends(4)
        overdue[0].overdue = withdrawn[0].withdrawn = True
        cancelled[1].cancel()
        self.failureResultOf(cancelled[1], CancelledError)
        self.pipes.take()
        self.assertEqual(self.pipes.written, [_line(0), _line(4)])
        self.assertEqual([each.sent for each, _ in (overdue, withdrawn, cancelled)], [False] * 3)

    def test_unread(self) -> None:
        """A server that does not read what it is sent is ended before that takes much memory; nothing more is sent."""
        self.sends(0)
        waiting = [self.sends(1, "x" * (MOST_QUEUED_BYTES // 16 - 100)) for _ in range(16)]
        self.assertEqual(self.groups, [])
        waiting += [self.sends(1, "x" * 2000), self.sends(1)]
        self.assertEqual((self.groups, self.pipes.signals), ([signal.SIGKILL], ["KILL"]))
        for delivery, handed in waiting:
            self.assertFalse(delivery.sent)
            self.failureResultOf(handed, ServiceUnreachable)
        self.assertEqual(len(self.pipes.written), 1)
        self.dies(None)
        self.assertEqual(self.ended, [f"left {MOST_QUEUED_BYTES} bytes unread"])

    def test_dies(self) -> None:
        """Of what waits when it dies nothing counts as sent; its death and why is told once."""
        first, second, cancelled = (self.sends(number) for number in range(3))
        cancelled[1].cancel()
        self.failureResultOf(cancelled[1], CancelledError)
        self.pipes.broken()
        self.process.inConnectionLost()
        self.dies(3)
        self.assertEqual([first[0].sent, second[0].sent], [True, False])
        self.failureResultOf(second[1], ServiceUnreachable)
        self.assertEqual((self.ended, self.clock.getDelayedCalls()), (["ended with exit code 3"], []))
        self.assertEqual([type(each) for each in self.listener.lost_by], [ServiceUnreachable])
        later = self.sends(2)
        self.failureResultOf(later[1], ServiceUnreachable)
        self.assertFalse(later[0].sent)

    def test_close(self) -> None:
        """Who closes it hears nothing more of it, and it ends at once."""
        self.process.close()
        self.writes(_line(0))
        self.assertEqual(self.groups, [signal.SIGKILL])
        self.dies(None)
        self.process.close()
        self.assertEqual((self.listener.heard, self.listener.lost_by), ([], []))
        self.assertEqual(self.ended, ["was ended by a signal"])

    def test_not_started(self) -> None:
        """Why it could not be started is told."""
        self.process.childDataReceived(4, b"No such file or directory\x1b")
        self.dies(127)
        self.assertEqual(self.ended, ["was not started: No such file or directory␛"])

    def test_stray(self) -> None:
        """Lines that are no messages are left out, up to a number; blank lines do not count."""
        for stray in (b"[" * 900, b"banner", b"[]", b"{}", b'{"jsonrpc":"1.0"}', b"\xff", b"[" * 500, b'"2.0"'):
            self.setUp()
            self.writes((stray + b"\n\n  \n") * MOST_STRAY_LINES + _line(7))
            self.assertEqual((self.listener.heard, self.groups), ([_message(7)], []))
            self.writes(stray + b"\n" + _line(8))
            self.assertEqual((len(self.listener.heard), self.groups), (1, [signal.SIGKILL]))
            self.dies(None)
            self.assertIn("lines that are no messages", self.ended[0])

    def test_long_message(self) -> None:
        """A message that is too long ends it, whether its end comes or not, and is not heard, nor is what follows."""
        whole = compact(_message(1, "x" * 900)).encode()
        for end in (b"", b"\n" + whole + b"\n"):
            self.setUp()
            self.writes(whole + b"\n" + b" " * 600)
            self.assertEqual((len(self.listener.heard), self.groups), (1, []))
            self.writes(b" " * 401 + end)
            self.assertEqual((len(self.listener.heard), self.groups[:1]), (1, [signal.SIGKILL]))

    def test_unasked(self) -> None:
        """A server that writes and writes while it is asked for nothing is ended."""
        piece = (b" " * 998 + b"\n") * 1000
        for _ in range(2):  # what it is sent starts the count anew
            for _ in range(MOST_UNASKED_BYTES // len(piece)):
                self.writes(piece)
            self.assertEqual(self.groups, [])
            self.sends(0)
            self.pipes.take()
        for _ in range(MOST_UNASKED_BYTES // len(piece) + 1):
            self.writes(piece)
        self.assertEqual(self.groups[:1], [signal.SIGKILL])

    def test_end(self) -> None:
        """It is asked to end by the end of its input, then by SIGTERM, and is killed at last, with its group."""
        self.sends(0)
        self.process.end("was not used")
        self.assertTrue(self.pipes.is_closed)
        self.clock.advance(2)
        self.assertEqual(self.groups, [signal.SIGTERM])
        self.process.end("again")
        self.clock.advance(2)
        self.assertEqual((self.groups, self.pipes.signals), ([signal.SIGTERM, signal.SIGKILL], ["KILL"]))
        self.dies(None)
        self.assertEqual((self.ended, self.clock.getDelayedCalls()), (["was not used"], []))

    def test_closed_output(self) -> None:
        """A server that closes its output can say nothing any more, and is ended."""
        self.process.outConnectionLost()
        self.assertTrue(self.pipes.is_closed)
        self.dies(0)
        self.assertEqual(self.ended, ["ended with exit code 0"])

    def logged(self, *written: bytes) -> list[str]:
        """What the log says of it."""
        with capturedLogs() as events:
            for data in written:
                self.writes(data, 2)
        return [str(event.get("line", event["log_format"])) for event in events]

    def test_errors(self) -> None:
        """Its errors are in the log by whole lines, with nothing unseen, without its credential, and cut."""
        lines = self.logged(b"a\x1b[2J\n\xff s3cret-", b"value\n" + b"y" * 5000 + b"\n")
        self.assertEqual(lines[:2], ["a␛[2J", "\ufffd [redacted]"])
        self.assertEqual(len(lines[2]), 501)

    def test_many_errors(self) -> None:
        """Of too many errors in a minute the rest is left out, which is told once."""
        lines = self.logged(b"x\n" * (MOST_ERROR_LINES + 50))
        self.assertEqual(len(lines), MOST_ERROR_LINES + 1)
        self.clock.advance(61)
        self.assertEqual(self.logged(b"x\n"), ["x"])

    def test_unasked_for(self) -> None:
        """An answer is heard once, by the number of what was sent; what the server says unasked is not read further."""
        said: Message = {"jsonrpc": "2.0", "id": 7, "result": {}}
        notice: Message = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
        answer = compact(said).encode() + b"\n"
        self.writes(answer + compact(notice).encode() + b"\n")
        self.sends(6)
        self.sends(7)
        self.writes(answer)  # before its message has left
        self.assertEqual(self.listener.heard, [])
        self.pipes.take()
        self.writes(answer * 2 + answer.replace(b"7", b"true") + answer.replace(b"7", b"[7]"))
        self.assertEqual((self.listener.heard, self.groups), ([said], []))

    def test_unreadable_answer(self) -> None:
        """An answer that is no JSON of ours ends the server, so that nobody waits for another one."""
        for bad in (b"[" * 100 + b"]" * 100, b"NaN", b"1e999"):
            self.setUp()
            self.sends(7)
            self.writes(b'{"jsonrpc":"2.0","id":7,"result":' + bad + b"}\n")
            self.assertEqual((self.listener.heard, self.groups), ([], [signal.SIGKILL]))
            self.dies(None)
            self.assertEqual(self.ended, ["sent a message that is not valid JSON"])


class LinesTests(SynchronousTestCase):
    """Lines that come in pieces."""

    @given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=6))
    def test_any_pieces(self, data: bytes, cuts: list[int]) -> None:
        """However they are cut, the same lines come out, and each as far as it may be long."""
        lines, places = Lines(8), [0, *sorted(cuts), len(data)]
        found = [each for first, last in pairwise(places) for each in lines.split(data[first:last])]
        self.assertEqual(found, [each[:8] for each in data.split(b"\n")[:-1]])
        self.assertEqual(lines.has_cut, any(len(each) > 8 for each in data.split(b"\n")))


def _running_reactor() -> Any:
    """Trial's."""
    from twisted.internet import reactor

    return reactor


_ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
_DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    """print('{"jsonrpc":"2.0","id":1,"method":"x"}', flush=True); time.sleep(60)"""
)


class RealTests(TestCase):
    """Real processes."""

    def setUp(self) -> None:
        root = tempfile.TemporaryDirectory()
        self.addCleanup(root.cleanup)
        self.directory = str(Path(root.name).resolve())
        self.listener = _Listener()
        self.ended: Deferred[str] = Deferred()

    def started(self, *argv: str) -> ServerProcess:
        """A server that is this program."""
        reactor = _running_reactor()
        process = ServerProcess(
            reactor,
            Launch(argv, self.directory, {"A": "b"}),
            errors=ErrorLog(reactor, "local://me/x", Redactor.of()),
            ended=self.ended.callback,
            most_bytes=1 << 20,
        )
        process.listen(self.listener)
        process.start(reactor)
        self.addCleanup(process.kill)
        return process

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for it."""
        for _ in range(1000):
            if condition():
                return
            await deferLater(_running_reactor(), 0.01)
        self.fail("it did not happen")

    async def test_long_messages(self) -> None:
        """Messages larger than any pipe come back whole and in order."""
        process = self.started(sys.executable, "-c", _ECHO)
        messages = [_message(number, "y" * 300_000) for number in range(3)]
        for message in messages:
            process.send(message, {}, Delivery())
        await self.until(lambda: len(self.listener.heard) == 3)
        self.assertEqual(self.listener.heard, messages)
        process.end()
        self.assertEqual(await self.ended, "ended with exit code 0")

    async def test_group(self) -> None:
        """What it has started ends with it."""
        child = "import time\nwhile True: open('beats', 'a').write('x'); time.sleep(0.02)"
        code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}]); input()"
        process, beats = self.started(sys.executable, "-c", code), Path(self.directory) / "beats"
        await self.until(beats.exists)
        process.end()
        await self.ended
        size = beats.stat().st_size
        await deferLater(_running_reactor(), 0.2)
        self.assertEqual(beats.stat().st_size, size)

    async def test_deaf(self) -> None:
        """A server that ignores the end of its input, and SIGTERM, is killed."""
        self.patch(sys.modules[ServerProcess.__module__], "_POLITE_SECONDS", 0.1)
        process = self.started(sys.executable, "-c", _DEAF)
        await self.until(lambda: bool(self.listener.heard))
        process.end("was not used")
        self.assertEqual(await self.ended, "was not used")

    async def test_not_started(self) -> None:
        """A program that is not there is told as one that was not started."""
        self.started("/nowhere/server")
        self.assertIn("was not started: No such file", await self.ended)
