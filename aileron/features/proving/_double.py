"""The double of a service, against which a connector is tested.

It answers correctly or misbehaves as instructed, and counts the effects it performs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote_plus

from attrs import define, evolve, field, frozen
from twisted.internet.interfaces import IProtocol, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from aileron.base.json import JSON
from aileron.connectors import Sample, ServiceAnswer, keys_of
from aileron.model.connectors import READ, Operation
from aileron.redaction import written_forms

_LENGTH = re.compile(rb"^content-length: *([0-9]{1,12})\r$", re.IGNORECASE | re.MULTILINE)


_GOOD = ServiceAnswer(204, {}, b"")


@frozen
class Case:
    """One operation of a connector under test.

    :ivar looks: whether the double can answer a lookup of the effect.
    :ivar certain: whether a lookup that finds nothing proves that nothing was done.
    :ivar sample: recorded answers of an HTTP service, or None if there are none.
    :ivar method: the method of the request.
    :ivar form: the form of the answer, such as C{json} or C{xml}.
    :ivar good: the answer of a service that has carried out the request.
    :ivar most_bytes: the maximal size of an answer that the connector reads.
    """

    operation: Operation
    inputs: Mapping[str, JSON]
    looks: bool = False
    certain: bool = False
    sample: Sample | None = None
    method: str = "POST"
    form: str = "json"
    good: ServiceAnswer = field(default=_GOOD, repr=False)
    most_bytes: int = 0

    @property
    def reads(self) -> bool:
        """Return whether the operation only reads."""
        return self.operation.effect == READ


@frozen
class Move:
    """An instruction to the double for one request.

    :ivar writes: the bytes to write to the connection.
    :ivar does: how many times to carry out the request.
    :ivar ends: what to do with the connection: C{close} after writing; C{abort} instead of writing; C{hold} open and
        silent after writing; C{stay} open for more requests.
    :ivar early: whether to act before the request has arrived completely.
    :ivar after: the delay before writing, in seconds.
    :ivar stage: the stage of a conversation at which to act, for mail. If C{writes} is empty, the usual reply is sent.
    :ivar shows: a text to show as the name of a mailbox and in a message, for mail.
    """

    writes: bytes = field(repr=False)
    does: int = 1
    ends: str = "close"
    early: bool = False
    after: float = 0.0
    stage: str = ""
    shows: bytes = field(default=b"", repr=False)


def wire(answer: ServiceAnswer, method: str = "", reason: str = "Answer") -> bytes:
    """Return an answer as the bytes of an HTTP response, without a body for HEAD."""
    headers = {"content-length": str(len(answer.body)), **answer.headers, "connection": "close"}
    head = "\r\n".join((f"HTTP/1.1 {answer.status} {reason}", *(f"{n}: {v}" for n, v in headers.items()), "", ""))
    return head.encode("latin-1") + (b"" if method == "HEAD" else answer.body)


class DoubleConnection(Protocol):
    """The connection of a connector under test to the double of its service, on the double's side.

    :ivar held: whether the double keeps the connection waiting on purpose.
    :cvar rests: whether an open connection counts as idle.
    """

    rests = False

    def __init__(self, service: Any) -> None:
        self._service, self._received, self.held = service, b"", False

    def connectionMade(self) -> None:
        """Add this connection to the open ones of the double."""
        self._service.open.append(self)

    def act(self, move: Move) -> None:
        """Carry out an instruction, after its delay."""
        self.held = move.after > 0 or move.ends == "hold"
        if move.after:
            self._service.clock.callLater(move.after, self.act, evolve(move, after=0.0))
        elif self.transport is None or move.ends == "abort":
            self.drop()
        else:
            self.transport.write(move.writes)
            if move.ends == "close":
                self.transport.loseConnection()

    def drop(self) -> None:
        """Abort the connection at once."""
        transport: Any = self.transport
        transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Remove this connection from the open ones of the double."""
        self._service.open.remove(self)


class HttpDoubleConnection(DoubleConnection):
    """The double's side of an HTTP connection."""

    def dataReceived(self, data: bytes) -> None:
        """Collect a request and act when it is complete, or at once if the double is instructed to be early."""
        self._received += data
        move = self._service.hurries()
        if move is None:
            head, blank, body = self._received.partition(b"\r\n\r\n")
            length = _LENGTH.search(head + b"\r\n")
            if not blank or len(body) < (int(length[1]) if length else 0):
                return
            move, self._received = self._service.decide(self._received), b""
        self.act(move)


@define(eq=False, repr=False)
class Double:
    """The double of a service that a connector uses, for one run after the other.

    :ivar case: the operation under test.
    :ivar script: instructions for the next requests. When the script is used up, the double answers correctly.
    :ivar shows: the result that lookups report: True if the effect is found, False if it is not, None if they report
        what the double really did.
    :ivar twist: a fault for the whole run, such as C{late}; each kind of double defines its own.
    :ivar key: the effect key of the run's step.
    :ivar looking: whether requests are now lookups of the effect.
    :ivar done: how many times the effect was performed.
    :ivar asked: how many times the effect was requested, lookups not counted.
    :ivar strange: parts of a sentence for the report, each about data that was sent although the connector's file does
        not declare it.
    :ivar heard: a count of everything that arrived, to notice activity.
    :ivar beside: whether a thread or a process works outside the reactor.
    :ivar open: the open connections.
    """

    clock: IReactorTime
    case: Case = field(init=False)
    script: list[Any] = field(factory=list, init=False)
    shows: bool | None = field(default=None, init=False)
    twist: str = field(default="", init=False)
    key: str = field(default="", init=False)
    looking: bool = field(default=False, init=False)
    done: int = field(default=0, init=False)
    asked: int = field(default=0, init=False)
    strange: list[str] = field(factory=list, init=False)
    heard: int = field(default=0, init=False)
    beside: bool = False
    open: list[Any] = field(factory=list, init=False)

    def begin(self, case: Case, moves: Sequence[Any], shows: bool | None = None, twist: str = "") -> None:
        """Reset the double for a run of the connector under test.

        :param moves: the instructions for the next requests.
        :param shows: see L{Double}.
        :param twist: see L{Double}.
        """
        self.case, self.script, self.key, self.looking = case, list(moves), "", False
        self.shows, self.twist = shows, twist
        self.done = self.asked = 0
        self.strange.clear()

    def speak(self, speech: str) -> IProtocol:
        """Return the protocol for a new connection.

        :param speech: C{HTTP}, C{SMTP}, C{IMAP} or C{STDIO}.
        """
        raise NotImplementedError

    def busy(self) -> bool:
        """Return whether a connection is open that is neither idle nor held on purpose."""
        return not all(each.held or each.rests for each in self.open)

    def left(self) -> str:
        """Return a clause about what still runs after the run; empty if nothing does."""
        return ""

    async def rest(self) -> None:
        """Wait until work outside the reactor is idle. The base class has no such work."""

    def drop(self) -> None:
        """Abort all open connections to the double."""
        for each in list(self.open):
            each.drop()


@define(eq=False, repr=False)
class ServiceDouble(Double):
    """The double of an HTTP service.

    :ivar marked: whether a request that was carried out contained the effect key. Only then a lookup can find the key.
    """

    marked: bool = field(default=False, init=False)
    _pages: int = field(default=0, init=False)
    _looks: int = field(default=0, init=False)
    _seen: set[object] = field(factory=set, init=False)

    def begin(self, case: Case, moves: Sequence[Any], shows: bool | None = None, twist: str = "") -> None:
        """Reset the double for a run of the connector under test. See L{Double.begin}."""
        super().begin(case, moves, shows, twist)
        self._pages = self._looks = 0
        self.marked = False
        self._seen.clear()

    def speak(self, speech: str) -> IProtocol:
        """Return the protocol for a new connection, which speaks HTTP.

        :param speech: not used.
        """
        return HttpDoubleConnection(self)

    def hurries(self) -> Move | None:
        """Remove and return the next instruction if it acts before the request has arrived, or return None."""
        return self.script.pop(0) if not self.looking and self.script and self.script[0].early else None

    def decide(self, request: bytes) -> Move:
        """Return the instruction for a complete request, and perform the effect if the instruction says so."""
        aside = self.answer_aside(request)
        if aside is not None:
            return Move(aside, 0)
        self.asked += 1
        identity, again = self._identify(request), self.case.sample and self.case.sample.again
        if self.script:
            move: Move = self.script.pop(0)
        elif identity in self._seen and again:
            move = Move(wire(again, self.case.method), 0)
        else:
            move = Move(self.answer_well())
        if move.does and identity not in self._seen and self.takes(request):
            self._seen.add(identity)
            self.done += move.does
            self.marked = self.marked or self._carries_key(request)
        return move

    def answer_aside(self, request: bytes) -> bytes | None:
        """Return the answer to a request that is not under test, such as a lookup, or None if it is under test."""
        return self._look(request) if self.looking else None

    def answer_well(self) -> bytes:
        """Return the answer of a service that has carried out the request: the next page if there are pages."""
        pages = [self.case.good] if self.case.sample is None else self.case.sample.done(self.key)
        self._pages += 1
        return wire(pages[min(self._pages, len(pages)) - 1], self.case.method)

    def takes(self, request: bytes) -> bool:
        """Perform the effect of a request. Return False if that is not possible."""
        return True

    def _identify(self, request: bytes) -> object:
        """Return the identity of a request, equal for two requests if the service would perform them only once."""
        if self.case.operation.idempotent and self._carries_key(request):
            return self.key
        head, _, body = request.partition(b"\r\n\r\n")
        recognised = self.case.sample is not None and self.case.sample.again is not None
        return (head.partition(b"\r\n")[0], body) if recognised else object()

    def _carries_key(self, request: bytes) -> bool:
        text = unquote_plus(request.decode("latin-1"))
        return any(form.text in text for key in keys_of(self.key) for form in written_forms(key))

    def _look(self, request: bytes) -> bytes | None:
        """Return the answer to a lookup of the effect, or None without recorded answers.

        If the lookup must not find the effect, the answer shows no effect or one with another key.
        """
        sample = self.case.sample
        if sample is None:
            return None
        there = self.marked if self.shows is None else self.shows
        if not there and not sample.keyed and self._carries_key(request):
            answers = sample.nothing
        else:
            answers = (
                sample.nothing if sample.found is None else sample.found(self.key if there else f"{self.key}-another")
            )
        self._looks += 1
        return wire(answers[(self._looks - 1) % len(answers)], "GET")
