"""Channel, exchange and pool under random orders of events: nobody hears another's answer, and nothing is left over."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from twisted.internet.error import ConnectionRefusedError as Refused
from twisted.trial.unittest import SynchronousTestCase

from tests.extent import is_all
from tests.features.gateway.case import HOST, GatewayCase, Line, Peer

P = TypeVar("P", bound=Peer)

EXAMPLES = 60 if is_all() else 30
STEPS = 60
_KINDS = ("fixed", "fixed", "chunked", "chunked", "close", "wrong")
_ASKED = re.compile(rb"X-Id: (\d+)\r\n")
_ANSWERED = re.compile(rb"<(\d+)>")
_PICK = st.integers(0, 5)
_PART = st.sampled_from((100, 100, 100, 100, 60, 10))
"""How much of what is left comes now, in percent."""
_TURNS = st.sampled_from((0, 1, 2, 9, 9, 9))
"""How many turns go by before anything else happens; 9: as many as it takes."""


class Relaying(RuleBasedStateMachine):
    """Clients and a provider that do anything at any time.

    :ivar unasked: what each client has not sent yet of its last request.
    :ivar unsaid: what the provider has not sent yet of the answers that it began, by its end of the connection.
    """

    def __init__(self) -> None:
        super().__init__()
        self.case = GatewayCase("setUp")
        self.case.setUp()
        self.place = self.case.places["openai"]
        self.lines: list[Line] = []
        self.asked: dict[Line, list[int]] = {}
        self.unasked: dict[Line, bytes] = {}
        self.answered: dict[Peer, int] = {}
        self.unsaid: dict[Peer, bytes] = {}
        self.next_id = 0
        for _ in range(2):
            self.connect()

    # clients ---------------------------------------------------------------------------------------------------------

    def connect(self) -> Line:
        """One more client."""
        line = self.case.line()
        self.lines.append(line)
        self.asked[line], self.unasked[line] = [], b""
        return line

    @rule(pick=_PICK, length=st.sampled_from((None, 0, 10, 1000, 300_000)), part=_PART, turns=_TURNS)
    def ask(self, pick: int, length: int | None, part: int, turns: int) -> None:
        """A request, or as much of it as comes now; also behind another."""
        free = [line for line in self.lines if not line.lost and not self.unasked[line]]
        line = _picked(free, pick) if free else self.connect()
        self.next_id += 1
        self.asked[line].append(self.next_id)
        framing, body = (f"Content-Length: {length}", b"x" * length) if length else ("X: 1", b"")
        if length is None:
            framing, body = "Transfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n"
        head = f"POST /openai/x HTTP/1.1\r\nHost: {HOST}\r\nX-Id: {self.next_id}\r\n{framing}\r\n\r\n"
        self.unasked[line] = head.encode() + body
        self._send_on(line, part)
        self.turn(turns)

    @precondition(lambda self: self.lines)
    @rule(pick=_PICK, part=_PART)
    def ask_on(self, pick: int, part: int) -> None:
        """More of a request."""
        line = _picked(self.lines, pick)
        if not line.lost:
            self._send_on(line, part)

    def _send_on(self, line: Line, part: int) -> None:
        rest = self.unasked[line]
        cut = -(-len(rest) * part // 100)
        line.end.write(rest[:cut])
        self.unasked[line] = rest[cut:]

    @precondition(lambda self: self.lines)
    @rule(pick=_PICK, politely=st.booleans(), turns=_TURNS)
    def leave(self, pick: int, politely: bool, turns: int) -> None:
        """A client goes."""
        line = _picked(self.lines, pick)
        line.go(politely)
        self.unasked[line] = b""
        self.turn(turns)

    # the provider ----------------------------------------------------------------------------------------------------

    @precondition(lambda self: any(self.owes(peer) for peer in self.place.peers))
    @rule(pick=_PICK, kind=st.sampled_from(_KINDS), part=_PART, turns=_TURNS)
    def answer(self, pick: int, kind: str, part: int, turns: int) -> None:
        """An answer to what was asked last, whole or not, perhaps before that is whole."""
        owing = [peer for peer in self.place.peers if not peer.lost and self.owes(peer)]
        if not owing:
            return
        peer = _picked(owing, pick)
        found = _ASKED.findall(peer.heard)
        self.answered[peer] = len(found)
        self.unsaid[peer] = _answer(kind, b"<%s>" % found[-1])
        self._say_on(peer, part)
        self.turn(turns)

    def owes(self, peer: Peer) -> bool:
        """Whether it was asked something and has not begun to answer."""
        return not self.unsaid.get(peer) and len(_ASKED.findall(peer.heard)) > self.answered.get(peer, 0)

    @precondition(lambda self: self.place.peers)
    @rule(pick=_PICK, part=_PART)
    def answer_on(self, pick: int, part: int) -> None:
        """More of an answer."""
        self._say_on(_picked(self.place.peers, pick), part)

    def _say_on(self, peer: Peer, part: int) -> None:
        rest = self.unsaid.get(peer, b"")
        cut = -(-len(rest) * part // 100)
        peer.end.write(rest[:cut])
        self.unsaid[peer] = rest[cut:]

    @precondition(lambda self: self.place.peers)
    @rule(pick=_PICK, politely=st.booleans(), turns=_TURNS)
    def go(self, pick: int, politely: bool, turns: int) -> None:
        """The provider closes a connection."""
        peer = _picked(self.place.peers, pick)
        peer.go(politely)
        self.unsaid[peer] = b""
        self.turn(turns)

    @rule(opened=st.sampled_from((True, True, True, False)))
    def be_there(self, opened: bool) -> None:
        """The provider accepts at once from now on, or lets connections wait."""
        self.place.open = opened

    @precondition(lambda self: self.place.asked)
    @rule(accepted=st.sampled_from((True, True, True, False)))
    def accept(self, accepted: bool) -> None:
        """It accepts one that waits, or refuses it."""
        if accepted:
            self.place.accept()
        else:
            self.place.refuse(Refused())

    # the world -------------------------------------------------------------------------------------------------------

    @rule(pick=st.integers(0, 20), reads=st.booleans())
    def read(self, pick: int, reads: bool) -> None:
        """Somebody stops reading, or goes on."""
        ends = [peer.end for peer in (*self.lines, *self.place.peers) if not peer.lost]
        if ends:
            end = ends[pick % len(ends)]
            end.resumeProducing() if reads else end.pauseProducing()

    @rule(seconds=st.sampled_from((1, 1, 1, 15, 15, 70)))
    def wait(self, seconds: int) -> None:
        """Time goes by."""
        self.case.clock.advance(seconds)

    def turn(self, turns: int) -> None:
        """Things take their course."""
        if turns == 9:
            self.case.net.run()
        for _ in range(turns):
            self.case.net.turn()

    @invariant()
    def answers_are_ones_own(self) -> None:
        """A client hears answers to what it asked, in that order, each once."""
        for line in self.lines:
            ids = [int(each) for each in _ANSWERED.findall(line.heard)]
            assert ids == sorted(set(ids)), line.heard
            assert set(ids) <= set(self.asked[line]), line.heard

    @invariant()
    def books_are_kept(self) -> None:
        """Who is under way is counted once, and who is over not at all."""
        under_way = [meter for meter in self.case.meters.all if meter.ending is None]
        assert len(self.case.gateway._silence._quiet) == len(under_way)
        taken = [line for line in self.lines if getattr(line.end.other.protocol, "_taken", None) is not None]
        assert len(taken) == len(under_way)

    @invariant()
    def kept_connections_are_free(self) -> None:
        """Whatever is kept carries nothing, was aborted by nobody, and is read from."""
        for connection in self.case.pools["openai"]._idle:
            assert connection._exchange is None
            assert not connection.transport.aborted
            assert connection.transport.reading or not connection.transport.connected

    def teardown(self) -> None:
        """When all clients are gone nothing is left but kept connections, and with the gateway not even those."""
        for line in self.lines:
            line.end.abortConnection()
        for peer in (*self.lines, *self.place.peers):
            peer.end.resumeProducing()
        self.case.net.run()
        self.case.wait(70, step=10)  # a client that is held for sending ahead is not seen to leave before that
        self.answers_are_ones_own()
        self.books_are_kept()
        assert not self.case.gateway._silence._quiet
        assert len(self.case.site.limiter) == 0
        assert not self.place.asked
        open_ends = [peer for peer in self.place.peers if peer.end.other.connected]
        assert len(open_ends) == len(self.case.pools["openai"]._idle)
        self.case.gateway.close()
        self.case.net.run()
        assert not any(peer.end.other.connected for peer in self.place.peers)


def _picked(peers: Sequence[P], pick: int) -> P:
    """One that is still there, if any is."""
    there = [peer for peer in peers if not peer.lost] or peers
    return there[pick % len(there)]


def _answer(kind: str, body: bytes) -> bytes:
    if kind == "fixed":
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    if kind == "chunked":
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    if kind == "close":
        return b"HTTP/1.1 200 OK\r\n\r\n" + body
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nwrong" + body


class MachineTests(SynchronousTestCase):
    """The machine."""

    def test_any_order(self) -> None:
        """Whatever happens in whatever order, every client hears its own answers, and nothing is left over."""
        run_state_machine_as_test(
            Relaying,
            settings=settings(
                deadline=None,
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                suppress_health_check=[HealthCheck.too_slow],
            ),
        )
