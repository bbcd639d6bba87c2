"""Bounds of what exchanges hold, and who is told of silence."""

from __future__ import annotations

import json
from typing import Any

from attrs import define, field
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.gateway._gateway import SilenceWatch
from aileron.features.gateway._limits import (
    MOST_SESSION_BYTES,
    MOST_WAITING_BYTES,
    RESERVED_BYTES,
    UPLOAD_BYTES,
    Account,
    ByteBudget,
)

from .case import HOST, KEY, OK, GatewayCase, request, status_of

LENGTH = 900_000


def upload(path: str = "/openai/x") -> bytes:
    """The head of a request with a body that is kept for another try, and is longer than what may wait."""
    return f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {LENGTH}\r\n\r\n".encode()


@define(eq=False)
class Held:
    """An exchange that holds some bytes, and gives up all of them.

    :ivar asked: how often it was to give way.
    """

    account: Account
    size: int
    asked: int = 0

    def __attrs_post_init__(self) -> None:
        """Say how many."""
        self.account.count(self, self.size)

    def free_memory(self) -> None:
        """See L{Holder.free_memory}."""
        self.asked += 1
        self.account.count(self, 0)


class AccountTests(SynchronousTestCase):
    """Counting."""

    def setUp(self) -> None:
        """Little room."""
        self.budget = ByteBudget(most_bytes=100, most_session_bytes=60)

    def test_in_turn(self) -> None:
        """As many give way as it takes, those first that have made no progress for longest."""
        account = self.budget.account("one")
        held = [Held(account, 15) for _ in range(4)]
        account.count(held[0], 15)
        held.append(Held(account, 20))
        self.assertEqual([each.asked for each in held], [0, 1, 1, 0, 0])
        account.count(held[0], 35)
        self.assertEqual(([each.asked for each in held], account.held_bytes), ([0, 1, 1, 1, 0], 55))

    def test_given_back(self) -> None:
        """Who gives bytes back never has another give way, and what is given back can be used again."""
        accounts = [self.budget.account(name) for name in "ab"]
        held = [Held(account, 50) for account in accounts]
        self.budget.most_bytes = 10
        accounts[0].count(held[0], 20)
        self.assertEqual([each.asked for each in held], [0, 0])
        self.budget.most_bytes = 100
        held.append(Held(accounts[0], 30))
        self.assertEqual(([each.asked for each in held], self.budget.held_bytes), ([0, 0, 0], 100))

    def test_one_for_a_session(self) -> None:
        """Exchanges of one session share an account as long as one of them is there; none is kept after that."""
        account = self.budget.account("one")
        held = Held(account, 5)
        self.assertIs(self.budget.account("one"), account)
        held.free_memory()
        del account, held
        self.assertFalse(self.budget._accounts)


class HeldTests(GatewayCase):
    """A gateway whose provider does not answer."""

    @property
    def held(self) -> int:
        """How many bytes are counted."""
        return self.gateway._budget.held_bytes

    def test_connected(self) -> None:
        """What was sent by a fresh connection is not kept; by one that served before until its answer begins."""
        line, there = self.ask(upload())
        self.assertEqual(self.held, UPLOAD_BYTES)
        line.pour(LENGTH)
        self.assertEqual(self.held, 0)
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)
        line.say(upload())
        line.pour(LENGTH)
        self.assertGreater(self.held, LENGTH)
        there.end.write(OK)
        self.assertEqual((self.after(line), self.held), (OK, 0))

    def test_unconnected(self) -> None:
        """While nobody is connected to, what waits is counted, and given back when that has lasted too long."""
        self.places["openai"].open = False
        line = self.line()
        line.say(upload())
        line.pour(LENGTH)
        self.assertGreater(self.held, MOST_WAITING_BYTES)
        self.assertLess(self.held, MOST_WAITING_BYTES + UPLOAD_BYTES + 2 * RESERVED_BYTES)
        self.wait(60)
        self.assertEqual((status_of(self.after(line)), self.held), (504, 0))

    def test_unknown_key(self) -> None:
        """While its key is looked up, a request counts with those of no session; then with its own."""
        self.session(at_hand=False)
        self.keys.slow = True
        line = self.line()
        line.say(upload(f"/s/{KEY}/openai/x"))
        line.pour(LENGTH)
        self.assertGreater(self.held, MOST_WAITING_BYTES)
        self.keys.waiting[0].callback(None)
        self.net.run()
        self.places["openai"].peers[0].end.write(OK)
        self.assertEqual((self.after(line), self.held), (OK, 0))

    def test_many_unknown_keys(self) -> None:
        """Requests whose keys are looked up are bounded like all others: beyond the bound the oldest end."""
        self.keys.slow = True
        lines = [self.line() for _ in range(MOST_SESSION_BYTES // MOST_WAITING_BYTES + 1)]
        for line in lines:
            line.say(upload(f"/s/{KEY}/openai/x"))
            line.pour(LENGTH)
        self.assertLessEqual(self.held, MOST_SESSION_BYTES)
        self.assertEqual(status_of(self.after(lines[0])), 429)

    def test_many(self) -> None:
        """Beyond its bound those of a session give way that have waited longest, as the provider would refuse them."""
        self.places["openai"].open = self.places["anthropic"].open = False
        lines = []
        for _ in range(60):
            lines.append(self.line())
            lines[-1].say(upload("/anthropic/v1/x"))
            lines[-1].pour(LENGTH)
        self.assertLessEqual(self.held, MOST_SESSION_BYTES)
        refused = [status_of(line.heard) for line in lines]
        self.assertEqual(refused, sorted(refused, reverse=True))
        self.assertEqual({*refused}, {0, 429})
        place = self.places["anthropic"]
        self.assertEqual((place.given_up, place.asked), (refused.count(429), refused.count(0)))  # nobody looks for them
        error = json.loads(lines[0].take().partition(b"\r\n\r\n")[2])["error"]
        self.assertEqual(error["type"], "rate_limit_error")
        for key in ((), (f"X-Aileron-Gateway-Key: {KEY}",)):
            self.session()
            asked = self.places["openai"].asked
            self.assertEqual(
                (self.line().say(request("/openai/x", *key)), self.places["openai"].asked), (b"", asked + 1)
            )
        self.wait(60)
        self.assertEqual(self.held, 0)


@define(eq=False)
class Quiet:
    """An exchange in which nothing stirs; told of it, it ends, and others with it."""

    silence: SilenceWatch
    ends: list[Quiet] = field(factory=list)
    stirred: bool = False
    over: bool = False
    told: int = 0

    def silent(self, seconds: float) -> None:
        self.told += 1
        for each in (self, *self.ends):
            each.over = True
            self.silence.forget(each)  # type: ignore[arg-type]  # as far as silence looks


class SilenceTests(SynchronousTestCase):
    """Looks at exchanges."""

    def test_ended_by_another(self) -> None:
        """What the end of one ends is told nothing, and looked at no more."""
        silence: Any = SilenceWatch(1.0)
        first, second, third = (Quiet(silence) for _ in range(3))
        first.ends = [second]
        for each in (first, second, third):
            silence.watch(each)
        third.stirred = True
        second.stirred = True
        for _ in range(10):
            silence.look()
            second.stirred = True
        self.assertEqual([each.told for each in (first, second, third)], [1, 0, 1])
        self.assertFalse(silence._quiet)
