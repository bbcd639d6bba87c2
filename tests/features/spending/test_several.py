"""Several daemons on one database: a limit on spending holds for all of them together."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

from attrs import Factory, define, field
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.spending._ledger import Ledger
from aileron.features.spending._windows import SpendRule
from aileron.features.spending.running import SpendRecorder, SpendSharing
from aileron.features.spending.values import LimitSource, Per, SpendLimit, Unit
from aileron.model.errors import LimitExceeded
from aileron.model.queries import AuditQuery
from aileron.model.usage import Usage
from aileron.store._spending import SQLSpending
from aileron.testing import memory_store

from .case import NOON, limit, utc_day


class SeveralCase(SynchronousTestCase):
    """Three daemons, each with a ledger. Each exchanges with the others when the test says so."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(NOON.timestamp())
        self.store = memory_store(self, self.clock)
        self.numbers = count()
        self.ledgers: list[Ledger] = []
        self.spendings: list[SQLSpending] = []
        self.write(f"INSERT INTO daemons (id, started_at, seen_at, until) VALUES {', '.join(_ROWS)}")
        for name in ("one", "two", "three"):
            spending = SQLSpending(
                self.store._writer,
                self.store._readers,
                self.clock,
                name,
                self.store.audit._seals,  # type: ignore[attr-defined]
            )
            recorder = SpendRecorder(self.store.audit, spending, self.clock, lambda: f"event-{next(self.numbers)}")
            self.ledgers.append(Ledger(self.clock.seconds, utc_day, lambda _: None, recorder.tell))
            self.spendings.append(spending)

    def write(self, statement: str) -> None:
        self.successResultOf(self.store._writer.write(lambda cursor: cursor.execute(statement).rowcount))

    def limited(self, *limits: SpendLimit) -> None:
        for each in range(3):
            self.ledgers[each].set_rules([SpendRule(one, LimitSource.CONFIG) for one in limits], ())
            self.exchange(each)

    def exchange(self, *numbers: int) -> None:
        """The second of these daemons is over."""
        for number in numbers or range(3):
            ledger, spending = self.ledgers[number], self.spendings[number]
            for key, spent in ledger.take_unwritten():
                spending.note(key, spent)
            sharing = SpendSharing(ledger, spending)
            self.successResultOf(Deferred.fromCoroutine(sharing.exchange()))

    def admit(self, number: int, session: str = "s1", tokens: int = 100) -> Any:
        ledger = self.ledgers[number]
        return ledger.admit(ledger.tab("openai", session), tokens)

    def use(self, number: int, tokens: int, session: str = "s1") -> None:
        """A request at a daemon begins, and ends with so many tokens used."""
        self.admit(number, session, 1).settle(Usage(tokens, 0), "", 200, 0, 0)

    def refused(self, number: int, session: str = "s1") -> LimitExceeded:
        error: LimitExceeded = self.assertRaises(LimitExceeded, self.admit, number, session)
        return error

    def told(self) -> list[str]:
        """The events about limits, in their order."""
        page = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery())))
        types = [each.event.type for each in reversed(page.items)]
        return [each for each in types if each.startswith("spending.")]

    def left(self, number: int) -> int:
        (state,) = self.ledgers[number].states()
        return state.most - state.used - state.held


_ROWS = [f"('{name}', 0, 0, 1e12)" for name in ("one", "two", "three")]


class SharedTests(SeveralCase):
    def test_used(self) -> None:
        """What ended requests used at one daemon counts at all after a second, each once."""
        self.limited(limit(1000))
        self.use(0, 300)
        self.use(1, 200)
        for _ in range(3):
            self.exchange()
        self.assertEqual([self.left(number) for number in range(3)], [500, 500, 500])
        self.use(2, 600)
        self.exchange()
        self.exchange()
        for number in range(3):
            self.assertNotIn("retry_after", self.refused(number).details)

    def test_held(self) -> None:
        """So does what requests in progress reserve, until they end or their daemon is gone."""
        self.limited(limit(300))
        held = self.admit(0, tokens=250)
        self.exchange()
        self.assertEqual([self.left(number) for number in range(3)], [50, 50, 50])
        self.admit(1, tokens=100)
        self.exchange()
        self.refused(2)
        held.release()
        self.exchange()
        self.assertEqual([self.left(number) for number in range(3)], [200, 200, 200])
        self.write("UPDATE spending_held SET until = 0")
        self.exchange(2)
        self.assertEqual(self.left(2), 300)

    def test_sessions(self) -> None:
        """A limit for each session counts one session's requests at all daemons, and no other's."""
        self.limited(limit(1000, per=Per.SESSION))
        self.use(0, 1000, "s1")
        self.exchange()
        self.refused(1, "s1")
        self.admit(1, "s2")

    def test_models(self) -> None:
        """A limit on a model or a provider counts its own requests alone."""
        self.limited(limit(1000, provider="anthropic"))
        self.use(0, 5000)
        self.exchange()
        self.assertEqual([self.left(number) for number in range(3)], [1000] * 3)

    def test_late(self) -> None:
        """What was not written, because the database was away, counts once it is, and nothing is counted twice."""
        self.limited(limit(1000))
        self.use(0, 300)
        for key, spent in self.ledgers[0].take_unwritten():
            self.spendings[2].note(key, spent)  # as if it was not written yet
        self.use(1, 200)
        self.exchange(1)
        self.exchange(0)
        self.assertLessEqual(self.left(0), 700)
        self.exchange(2)
        self.exchange()
        self.assertEqual([self.left(number) for number in range(3)], [500, 500, 500])

    def test_rules(self) -> None:
        """Limits that are set later count what all daemons have used and reserve."""
        self.limited(limit(1000))
        self.use(0, 300)
        self.admit(0, tokens=100)
        self.exchange()
        self.ledgers[1].set_rules([SpendRule(limit(2000), LimitSource.CONFIG)], ())
        self.assertEqual(self.left(1), 1600)

    def test_told(self) -> None:
        """The operator is told once that much of a limit is used, if all daemons together have used it."""
        self.limited(limit(1000))
        for number in range(3):
            self.use(number, 300)
        self.exchange()
        self.exchange()
        self.assertEqual(self.told(), ["spending.warned"])
        self.use(0, 100)
        self.exchange()
        self.exchange()
        for number in range(3):
            self.refused(number)
        self.assertEqual(self.told(), ["spending.warned", "spending.reached"])


class ShareTests(SeveralCase):
    """Between two exchanges, each daemon admits its share of what was left."""

    def test_burst(self) -> None:
        """If all requests of a limit come to all daemons at once, they do not pass it at each of them."""
        self.limited(limit(30, Unit.REQUESTS))
        admitted = 0
        for number in range(3):
            for _ in range(30):
                try:
                    self.admit(number)
                except LimitExceeded as error:
                    self.assertEqual(error.details, {"retry_after": 1})
                else:
                    admitted += 1
        self.assertTrue(20 < admitted <= 30, admitted)  # a part of each share is granted to requests that do not come

    def test_one_daemon(self) -> None:
        """If all come to one daemon, it admits all of them within some seconds."""
        self.limited(limit(30, Unit.REQUESTS))
        admitted = []
        for _ in range(20):
            try:
                while True:
                    admitted.append(self.admit(0))
            except LimitExceeded:
                self.exchange()
        self.assertEqual(len(admitted), 30)

    def test_last(self) -> None:
        """The last of a limit may be passed by one request of each daemon, and by no second one."""
        self.limited(limit(1, Unit.REQUESTS))
        for number in range(3):
            self.admit(number)
            self.refused(number)
        self.exchange()
        self.exchange()
        for number in range(3):
            self.refused(number)

    def test_away(self) -> None:
        """While the database is away, no daemon admits more than its share."""
        self.limited(limit(30, Unit.REQUESTS))
        self.successResultOf(Deferred.fromCoroutine(self.store.close()))
        admitted = 0
        for _ in range(30):
            self.exchange(0)
            try:
                self.admit(0)
            except LimitExceeded:
                continue
            admitted += 1
        self.assertTrue(0 < admitted <= 10, admitted)

    def test_alone(self) -> None:
        """A daemon that is alone needs no share."""
        self.write("DELETE FROM daemons WHERE id <> 'one'")
        self.limited(limit(30, Unit.REQUESTS))
        for _ in range(30):
            self.admit(0)
        self.assertNotIn("retry_after", self.refused(0).details)


@define
class _Walk:
    """Requests at three daemons in any order, of one session with a limit of its own.

    :ivar rule: the limit.
    :ivar shares: of each daemon, the share that it got when it read last what the others use.
    :ivar largest: of each daemon, what its largest request reserved since.
    :ivar total: what all requests used or reserve.
    """

    case: SeveralCase
    rule: SpendRule
    session: str
    chance: random.Random
    shares: list[int] = Factory(lambda: [0, 0, 0])
    largest: list[int] = Factory(lambda: [0, 0, 0])
    open: list[tuple[Any, int]] = field(factory=list)
    total: int = 0
    last: int = 0

    def read(self, number: int) -> None:
        """A daemon reads what the others use. If nothing is left, it admits nothing more."""
        self.case.exchange(number)
        window = self.case.ledgers[number]._window(self.rule, self.session)
        if window.left > 0:
            self.last, self.largest[number] = number, 0
            self.shares[number] = max(1, window.left // 3)

    def step(self) -> None:
        """Something happens at any daemon."""
        number = self.chance.randrange(3)
        match self.chance.choice(("read", "end", *["begin"] * 8)):
            case "read":
                self.read(number)
            case "end" if self.open:
                charge, reserved = self.open.pop(self.chance.randrange(len(self.open)))
                used = self.chance.randint(1, reserved)
                charge.settle(Usage(used, 0), "", 200, 0, 0)
                self.total -= 0 if self.rule.limit.unit is Unit.REQUESTS else reserved - used
            case "begin":
                self.begin(number, self.chance.randint(1, 5))

    def begin(self, number: int, tokens: int) -> None:
        try:
            charge = self.case.admit(number, self.session, tokens)
        except LimitExceeded:
            return
        amount = 1 if self.rule.limit.unit is Unit.REQUESTS else tokens
        self.open.append((charge, tokens))
        self.total += amount
        self.largest[number] = max(self.largest[number], amount)

    def bound(self) -> int:
        """The most that may be used: the limit, and one share and one request of each daemon.

        The daemon that was the last to read that something is left knows its own share of it. A request that uses the
        last unit of a share may use more than that unit.
        """
        others = sum(share for number, share in enumerate(self.shares) if number != self.last)
        return self.rule.limit.most + others + sum(max(0, each - 1) for each in self.largest)


class BoundTests(SeveralCase):
    def test_any_order(self) -> None:
        """A limit is passed by at most one more share and one request of each daemon, whatever happens when."""
        passed = 0
        for unit in (Unit.REQUESTS, Unit.TOKENS):
            one = limit(60, unit, Per.SESSION)
            self.limited(one)
            for number in range(30):
                walk = _Walk(self, SpendRule(one, LimitSource.CONFIG), f"{unit}-{number}", random.Random(number))
                for each in range(3):
                    self.case_of(walk, each)
                for _ in range(150):
                    walk.step()
                    self.assertLessEqual(walk.total, walk.bound(), number)
                passed += walk.total > one.most
        self.assertGreater(passed, 0, "no walk came so far")

    def case_of(self, walk: _Walk, number: int) -> None:
        """Let a daemon know of the session, and of its share."""
        self.ledgers[number].tab("openai", walk.session)
        walk.read(number)
