"""Whose request is begun next, where many are sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.api import GuardedSite, SiteRules
from aileron.api.channels.limiter import MOST_BEGUN_IN_A_TURN, RequestTurns

from .test_channel import HOST, ChannelCase, Line, Proving, Turns, head


class Sender:
    """A connection with requests that wait.

    :ivar taken: how many turns it has had.
    """

    def __init__(self, turns: RequestTurns, owner: str | None, requests: int) -> None:
        self.turns, self.owner, self.requests, self.taken = turns, owner, requests, 0
        turns.wait(self, owner)

    def take_turn(self) -> None:
        """Begin one request, and wait for the next turn."""
        assert self.turns.begin()
        self.taken += 1
        if self.taken < self.requests:
            self.turns.wait(self, self.owner)


class RequestTurnsTests(SynchronousTestCase):
    """Requests of many connections."""

    def setUp(self) -> None:
        self.reactor = Turns()
        self.turns = RequestTurns(self.reactor)

    def test_few_in_a_turn(self) -> None:
        """So many begin in a turn of the reactor, and in the next one as many again."""
        for _ in range(2):
            begun = [self.turns.begin() for _ in range(MOST_BEGUN_IN_A_TURN + 2)]
            self.assertEqual(begun, [True] * MOST_BEGUN_IN_A_TURN + [False] * 2)
            self.reactor.turn()
        self.assertEqual(self.reactor.calls, [])

    def test_owners_in_turn(self) -> None:
        """An owner with one connection is served as often as one with three hundred."""
        many = [Sender(self.turns, "greedy", 100) for _ in range(300)]
        one, nobody = Sender(self.turns, "other", 20), Sender(self.turns, None, 20)
        for number in range(1, 4):
            self.reactor.turn()
            self.assertEqual(sum(each.taken for each in many) + one.taken + nobody.taken, number * 16)
            self.assertGreaterEqual(min(one.taken, nobody.taken), number)
            self.assertFalse(self.turns.begin())
        self.assertEqual(max(each.taken for each in many), 1)

    def test_left(self) -> None:
        """Who left has no turn any more, also where another's turn ended it; a turn that fails takes nobody else's."""
        gone, last = Sender(self.turns, "ann", 1), Sender(self.turns, "bob", 1)
        self.turns.leave(gone)
        self.turns.leave(gone)
        first = Sender(self.turns, "cat", 1)
        self.turns.leave(last)
        self.turns.wait(last, "bob")
        first.take_turn = lambda: self.turns.leave(last)  # type: ignore[method-assign]
        self.reactor.turn()
        self.assertEqual([each.taken for each in (gone, first, last)], [0, 0, 0])
        self.assertEqual(self.reactor.calls, [])
        failing, others = Sender(self.turns, "ann", 1), [Sender(self.turns, "bob", 1) for _ in range(2)]
        failing.take_turn = lambda: 1 / 0  # type: ignore[assignment,method-assign]
        self.assertRaises(ZeroDivisionError, self.reactor.turn)
        self.reactor.turn()
        self.assertEqual([each.taken for each in others], [1, 1])

    @given(st.lists(st.tuples(st.sampled_from(["ann", "bob", "cat", None]), st.integers(1, 5)), max_size=60))
    def test_all_in_the_end(self, wanted: list[tuple[str | None, int]]) -> None:
        """Every request gets its turn, and nothing goes on after the last."""
        self.setUp()
        senders = [Sender(self.turns, owner, requests) for owner, requests in wanted]
        for _ in range(400):
            self.reactor.turn()
        self.assertEqual([each.taken for each in senders], [requests for _, requests in wanted])
        self.assertEqual((self.reactor.calls, self.turns._queues), ([], {}))


class ChannelTests(ChannelCase):
    """Connections of one owner that ask again and again, one request after another."""

    def test_owners_in_turn(self) -> None:
        """They wait for each other, and nobody else for them; the first request of a connection waits for nobody."""
        self.echo = Proving()
        self.site = GuardedSite(self.echo, SiteRules([HOST]), self.clock, most_connections=400)
        greedy, other = [Line(self.site) for _ in range(40)], Line(self.site)
        for line in (*greedy, other):
            self.assertTrue(line.say(head("X-Name: ann" if line is not other else "X-Name: bob")))
        answered = [bool(line.say(head("X-Name: ann"))) for line in greedy]
        self.assertEqual(answered, [True] * 16 + [False] * 24)
        self.assertFalse(other.say(head("X-Name: bob")))
        self.assertTrue(Line(self.site).say(head("X-Name: cat")))
        self.clock.turn()
        self.assertTrue(other.hear())
        self.assertEqual([bool(line.hear()) for line in greedy], [False] * 16 + [True] * 15 + [False] * 9)
        self.clock.turn()
        self.assertEqual([bool(line.hear()) for line in greedy], [False] * 31 + [True] * 9)
