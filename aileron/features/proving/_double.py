"""The double of a service: it answers correctly or as badly as instructed, and counts what it carried out."""

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
    """One operation that is put through trials.

    :ivar looks: whether the double shows the effect to a look for it.
    :ivar certain: whether a look that finds nothing is to say that nothing was done.
    :ivar sample: its recorded answers, where there are such; the rest is for a service that speaks HTTP.
    :ivar form: C{json}, C{xml} and the like: in which it answers.
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
        """Tell whether it has no effect."""
        return self.operation.effect == READ


@frozen
class Move:
    """An instruction to the service: what to do with one request.

    :ivar writes: to the connection, which it closes then.
    :ivar does: how often it carries the request out.
    :ivar ends: the connection otherwise: C{abort}; C{hold}: it says no more; C{stay}: it goes on.
    :ivar early: before the request has arrived whole.
    :ivar after: seconds until it writes.
    :ivar stage: of a conversation, at which it does so; where it writes nothing, it says there what it usually says.
    :ivar shows: a text that it shows as the name of a mailbox, and in a message.
    """

    writes: bytes = field(repr=False)
    does: int = 1
    ends: str = "close"
    early: bool = False
    after: float = 0.0
    stage: str = ""
    shows: bytes = field(default=b"", repr=False)


def wire(answer: ServiceAnswer, method: str = "", reason: str = "Answer") -> bytes:
    """Write an answer as it goes over the connection; that to HEAD has no body."""
    headers = {"content-length": str(len(answer.body)), **answer.headers, "connection": "close"}
    head = "\r\n".join((f"HTTP/1.1 {answer.status} {reason}", *(f"{n}: {v}" for n, v in headers.items()), "", ""))
    return head.encode("latin-1") + (b"" if method == "HEAD" else answer.body)


class DoubleConnection(Protocol):
    """One connection as the double sees it.

    :ivar held: whether it waits on purpose.
    :cvar rests: whether it stays where nothing is under way.
    """

    rests = False

    def __init__(self, service: Any) -> None:
        self._service, self._received, self.held = service, b"", False

    def connectionMade(self) -> None:
        """Count it."""
        self._service.open.append(self)

    def act(self, move: Move) -> None:
        """Do as instructed."""
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
        """End the connection at once."""
        transport: Any = self.transport
        transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Stop counting it."""
        self._service.open.remove(self)


class HttpDoubleConnection(DoubleConnection):
    """One connection on which a service speaks HTTP."""

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
        self.act(move)


@define(eq=False, repr=False)
class Double:
    """Stands for what a connector talks to, for one run after the other.

    :ivar case: what is asked of it.
    :ivar script: what it does next; with what is beyond it answers well.
    :ivar shows: whether a look finds the effect, whatever was done; L{None}: it finds what was done.
    :ivar twist: what is wrong with it from the beginning, as its kind has it.
    :ivar key: the effect key of the run.
    :ivar looking: whether requests look for the effect by now.
    :ivar done: how often it carried out what the run asked for.
    :ivar asked: how often it was asked, looks apart.
    :ivar strange: what it was given that the connector's file does not declare.
    :ivar heard: how many pieces arrived, or happened, in all.
    :ivar beside: whether something runs beside the reactor, which hands on in several turns.
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
        """Forget what was before, for another run."""
        self.case, self.script, self.key, self.looking = case, list(moves), "", False
        self.shows, self.twist = shows, twist
        self.done = self.asked = 0
        self.strange.clear()

    def speak(self, speech: str) -> IProtocol:
        """Return what speaks on a new connection.

        :param speech: as of L{ProofNetwork}.
        """
        raise NotImplementedError

    def busy(self) -> bool:
        """Tell whether anything is under way that it does not hold open on purpose."""
        return not all(each.held or each.rests for each in self.open)

    def left(self) -> str:
        """Return what still runs though nobody waits for it any more, in a clause; empty: nothing does."""
        return ""

    async def rest(self) -> None:
        """Wait until what runs beside the reactor has taken its turn."""

    def drop(self) -> None:
        """End every connection."""
        for each in list(self.open):
            each.drop()


@define(eq=False, repr=False)
class ServiceDouble(Double):
    """A service that speaks HTTP.

    :ivar marked: whether the effect key was in a request that it carried out: no look finds the key else.
    """

    marked: bool = field(default=False, init=False)
    _pages: int = field(default=0, init=False)
    _looks: int = field(default=0, init=False)
    _seen: set[object] = field(factory=set, init=False)

    def begin(self, case: Case, moves: Sequence[Any], shows: bool | None = None, twist: str = "") -> None:
        """Forget what was before, for another run."""
        super().begin(case, moves, shows, twist)
        self._pages = self._looks = 0
        self.marked = False
        self._seen.clear()

    def speak(self, speech: str) -> IProtocol:
        """Return a connection."""
        return HttpDoubleConnection(self)

    def hurries(self) -> Move | None:
        """Return what it does before the next request has arrived, if anything."""
        return self.script.pop(0) if not self.looking and self.script and self.script[0].early else None

    def decide(self, request: bytes) -> Move:
        """Decide what to do with a request that has arrived."""
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
        """Answer what is not the request under trial, such as a look; L{None}: it is."""
        return self._look(request) if self.looking else None

    def answer_well(self) -> bytes:
        """Answer as a service does that has carried the request out."""
        pages = [self.case.good] if self.case.sample is None else self.case.sample.done(self.key)
        self._pages += 1
        return wire(pages[min(self._pages, len(pages)) - 1], self.case.method)

    def takes(self, request: bytes) -> bool:
        """Carry the request out; tell whether that was possible."""
        return True

    def _identify(self, request: bytes) -> object:
        """Return what tells a request from others: its key, or what it asks where the service takes two for one."""
        if self.case.operation.idempotent and self._carries_key(request):
            return self.key
        head, _, body = request.partition(b"\r\n\r\n")
        recognised = self.case.sample is not None and self.case.sample.again is not None
        return (head.partition(b"\r\n")[0], body) if recognised else object()

    def _carries_key(self, request: bytes) -> bool:
        text = unquote_plus(request.decode("latin-1"))
        return any(form.text in text for key in keys_of(self.key) for form in written_forms(key))

    def _look(self, request: bytes) -> bytes | None:
        """Answer a look: by what was done, or by what somebody else did; one that asks by the key finds no other."""
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
