"""The double of a service: it answers correctly or as badly as instructed, and counts what it carried out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote_plus

from attrs import define, field, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from aileron.connectors import Sample, ServiceAnswer, keys_of
from aileron.redaction import written_forms

_LENGTH = re.compile(rb"^content-length: *([0-9]{1,12})\r$", re.IGNORECASE | re.MULTILINE)


@frozen
class Move:
    """An instruction to the service: what to do with one request.

    :ivar writes: to the connection, which it closes then.
    :ivar does: how often it carries the request out.
    :ivar ends: the connection otherwise: C{abort}, or C{hold}: it stays as it is.
    :ivar early: before the request has arrived whole.
    :ivar after: seconds until it writes.
    """

    writes: bytes = field(repr=False)
    does: int = 1
    ends: str = "close"
    early: bool = False
    after: float = 0.0


def wire(answer: ServiceAnswer, method: str = "", reason: str = "Answer") -> bytes:
    """Write an answer as it goes over the connection; that to HEAD has no body."""
    headers = {"content-length": str(len(answer.body)), **answer.headers, "connection": "close"}
    head = "\r\n".join((f"HTTP/1.1 {answer.status} {reason}", *(f"{n}: {v}" for n, v in headers.items()), "", ""))
    return head.encode("latin-1") + (b"" if method == "HEAD" else answer.body)


class DoubleConnection(Protocol):
    """One connection as the service sees it."""

    def __init__(self, service: ServiceDouble) -> None:
        self._service, self._received, self.held = service, b"", False

    def connectionMade(self) -> None:
        """Count it."""
        self._service.open.append(self)

    def dataReceived(self, data: bytes) -> None:
        """Serve a request, once it is whole."""
        self._received += data
        move = self._service.hurries()
        if move is None:
            head, blank, body = self._received.partition(b"\r\n\r\n")
            length = _LENGTH.search(head + b"\r\n")
            if not blank or len(body) < (int(length[1]) if length else 0):
                return
            move, self._received = self._service.decide(self._received), b""
        if move.after:
            self.held = True
            self._service.clock.callLater(move.after, self._act, move)
        else:
            self._act(move)

    def _act(self, move: Move) -> None:
        self.held = move.ends == "hold"
        if self.transport is None or move.ends == "abort":
            self.drop()
            return
        self.transport.write(move.writes)
        if not self.held:
            self.transport.loseConnection()

    def drop(self) -> None:
        """End the connection at once."""
        transport: Any = self.transport
        transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Stop counting it."""
        self._service.open.remove(self)


@define(eq=False, repr=False)
class ServiceDouble:
    """One service, for one run after the other.

    :ivar sample: what is asked of it, and what it answers.
    :ivar script: what it does with the next requests; with those beyond it answers well.
    :ivar shows: whether a look finds the effect, whatever was done; L{None}: it finds what was done.
    :ivar key: the effect key of the run.
    :ivar looking: whether requests look for the effect by now.
    :ivar done: how often it carried out what the run asked for.
    :ivar marked: whether the effect key was in a request that it carried out: no look finds the key else.
    :ivar asked: how often it was asked, looks apart.
    """

    clock: IReactorTime
    sample: Sample = field(init=False)
    script: list[Move] = field(factory=list)
    shows: bool | None = None
    key: str = ""
    looking: bool = False
    done: int = 0
    marked: bool = False
    asked: int = 0
    open: list[DoubleConnection] = field(factory=list)
    _pages: int = 0
    _looks: int = 0
    _seen: set[object] = field(factory=set)

    def begin(self, sample: Sample, moves: Sequence[Move], shows: bool | None) -> None:
        """Forget what was before, for another run."""
        self.sample, self.script, self.shows, self.key, self.looking = sample, list(moves), shows, "", False
        self.done = self.asked = self._pages = self._looks = 0
        self.marked = False
        self._seen.clear()

    def hurries(self) -> Move | None:
        """Return what it does before the next request has arrived, if anything."""
        return self.script.pop(0) if not self.looking and self.script and self.script[0].early else None

    def decide(self, request: bytes) -> Move:
        """Decide what to do with a request that has arrived."""
        if self.looking:
            return Move(self._look(request), 0)
        self.asked += 1
        identity, method = self._identify(request), self.sample.operation.method
        if self.script:
            move = self.script.pop(0)
        elif identity in self._seen and self.sample.again is not None:
            move = Move(wire(self.sample.again, method), 0)
        else:
            pages = self.sample.done(self.key)
            move = Move(wire(pages[min(self._pages, len(pages) - 1)], method))
            self._pages += 1
        if move.does and identity not in self._seen:
            self._seen.add(identity)
            self.done += move.does
            self.marked = self.marked or self._carries_key(request)
        return move

    def _identify(self, request: bytes) -> object:
        """Return what tells a request from others: its key, or what it asks where the service takes two for one."""
        if self.sample.operation.operation.idempotent and self._carries_key(request):
            return self.key
        head, _, body = request.partition(b"\r\n\r\n")
        return (head.partition(b"\r\n")[0], body) if self.sample.again is not None else object()

    def _carries_key(self, request: bytes) -> bool:
        text = unquote_plus(request.decode("latin-1"))
        return any(form.text in text for key in keys_of(self.key) for form in written_forms(key))

    def _look(self, request: bytes) -> bytes:
        """Answer a look: by what was done, or by what somebody else did; one that asks by the key finds no other."""
        found, nothing = self.sample.found, self.sample.nothing
        there = self.marked if self.shows is None else self.shows
        if not there and not self.sample.keyed and self._carries_key(request):
            answers = nothing
        else:
            answers = nothing if found is None else found(self.key if there else f"{self.key}-another")
        self._looks += 1
        return wire(answers[(self._looks - 1) % len(answers)], "GET")
