"""The service in a proof: it answers well or as badly as it is told, and counts what it has carried out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from urllib.parse import unquote_plus

from attrs import define, field, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from aileron.connectors import Sample, ServiceAnswer, keys_of

_LENGTH = re.compile(rb"^content-length: *([0-9]{1,12})\r$", re.IGNORECASE | re.MULTILINE)


@frozen
class Move:
    """What the service does with one request.

    :ivar writes: to the connection; L{None}: nothing.
    :ivar does: how often it carries the request out.
    :ivar ends: the connection afterwards: C{close}, C{abort}, or C{hold}: it stays as it is.
    :ivar early: before the request has arrived whole.
    :ivar after: seconds until it writes.
    """

    writes: bytes | None
    does: int = 1
    ends: str = "close"
    early: bool = False
    after: float = 0.0


def wire(answer: ServiceAnswer, method: str = "", status: int | None = None, reason: str = "Answer") -> bytes:
    """Write an answer as it goes over the connection; that to HEAD has no body."""
    length = {} if "content-length" in map(str.lower, answer.headers) else {"Content-Length": str(len(answer.body))}
    lines = (f"{name}: {value}" for name, value in {**answer.headers, **length, "Connection": "close"}.items())
    head = "\r\n".join((f"HTTP/1.1 {status or answer.status} {reason}", *lines, "", ""))
    return head.encode("latin-1") + (b"" if method == "HEAD" else answer.body)


@define(eq=False, slots=False)
class ServiceDouble(Factory):
    """One service, for one run after the other.

    :ivar sample: what is asked of it, and what it answers.
    :ivar script: what it does with the next requests; with those beyond it answers well.
    :ivar key: the effect key of the run.
    :ivar looking: whether requests look for the effect by now.
    :ivar done: how often it carried out what the run asked for.
    :ivar answered: how often it was asked, looks apart.
    :ivar whole: how often it answered well, to the end.
    :ivar shows: whether a look finds the effect, whatever was done; L{None}: it finds what was done.
    """

    clock: IReactorTime
    sample: Sample
    script: list[Move] = field(factory=list)
    key: str = ""
    looking: bool = False
    done: int = 0
    answered: int = 0
    whole: int = 0
    shows: bool | None = None
    open: list[_Connection] = field(factory=list)
    noisy = False
    _looked: int = 0
    _seen: set[object] = field(factory=set)

    def begin(self, moves: Sequence[Move], shows: bool | None) -> None:
        """Forget what was before, for another run."""
        self.script, self.shows, self.key, self.looking = list(moves), shows, "", False
        self.done = self.answered = self.whole = self._looked = 0
        self._seen.clear()

    def buildProtocol(self, addr: object) -> Protocol:
        """Serve one connection."""
        return _Connection(self)

    @property
    def held(self) -> int:
        """How many connections it holds on which nothing happens."""
        return sum(each.held for each in self.open)

    def hurries(self) -> Move | None:
        """Return what it does before the next request has arrived, if anything."""
        early = not self.looking and bool(self.script) and self.script[0].early
        return self.script.pop(0) if early else None

    def decide(self, request: bytes) -> Move:
        """Decide what to do with a request that has arrived."""
        if self.looking:
            return Move(self._look(request), 0)
        self.answered += 1
        is_new = self._is_new(request)
        if self.script:
            move = self.script.pop(0)
        else:
            move = Move(self.well() if is_new else wire(self.sample.again or self._done()[0], self._method))
            self.whole += 1
        self.done += move.does if is_new else 0
        if move.does and is_new:
            self._seen.add(self._identity(request))
        return move

    def well(self) -> bytes:
        """Return what is answered where all is well: the next page of it, where there are several."""
        pages = self._done()
        return wire(pages[min(self.whole, len(pages) - 1)], self._method)

    @property
    def _method(self) -> str:
        return self.sample.operation.method

    def _done(self) -> Sequence[ServiceAnswer]:
        return self.sample.done(self.key)

    def _is_new(self, request: bytes) -> bool:
        return self._identity(request) not in self._seen

    def _identity(self, request: bytes) -> object:
        """Return what tells a request from others: its effect key, or all of it where the service takes two for one."""
        if self.sample.operation.operation.idempotent and self._carries_key(request):
            return self.key
        return request if self.sample.again is not None else object()

    def _carries_key(self, request: bytes) -> bool:
        text = unquote_plus(request.decode("latin-1"))
        return any(form in text for form in keys_of(self.key))

    def _look(self, request: bytes) -> bytes:
        """Answer a look: by what was done, or by what somebody else did."""
        sample = self.sample
        there = self.done > 0 if self.shows is None else self.shows
        assert sample.found is not None
        if there:
            answers = sample.found(self.key)
        elif sample.keyed or not self._carries_key(request):
            answers = sample.found(f"another-{self.key}")
        else:
            answers = sample.nothing
        self._looked += 1
        return wire(answers[(self._looked - 1) % len(answers)], "GET")


class _Connection(Protocol):
    """One connection as the service sees it."""

    def __init__(self, service: ServiceDouble) -> None:
        self._service, self._received, self.held = service, b"", False

    def connectionMade(self) -> None:
        """Count it."""
        self._service.open.append(self)

    def dataReceived(self, data: bytes) -> None:
        """Serve one request."""
        self._received += data
        move = self._service.hurries()
        if move is None:
            head, blank, body = self._received.partition(b"\r\n\r\n")
            length = _LENGTH.search(head + b"\r\n")
            if not blank or len(body) < (int(length[1]) if length else 0):
                return
            move, self._received = self._service.decide(self._received), b""
        self.held = bool(move.after) or move.ends == "hold"
        if move.after:
            self._service.clock.callLater(move.after, self._act, move)
        else:
            self._act(move)

    def _act(self, move: Move) -> None:
        self.held = move.ends == "hold"
        assert self.transport is not None
        if move.writes:
            self.transport.write(move.writes)
        if move.ends == "close":
            self.transport.loseConnection()
        elif move.ends == "abort":
            self.drop()

    def drop(self) -> None:
        """End the connection at once."""
        abort: Callable[[], None] = getattr(self.transport, "abortConnection")  # noqa: B009 - of TCP and TLS alike
        abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Count it no more."""
        self.held = False
        self._service.open.remove(self)
