"""What was used, what may be used, and what a limit lets pass."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.gateway.interfaces import RequestCharge
from aileron.features.spending._ledger import Ledger, local_day
from aileron.features.spending._totals import MOST_MODELS, OTHER_MODELS
from aileron.features.spending._windows import SpendRule
from aileron.features.spending.values import LimitSource, Per, Price, Raise, SpendLimit, SpendNews, Unit
from aileron.model.errors import LimitExceeded
from aileron.model.usage import SpendKey, Spent, Usage
from tests.extent import examples

from .case import DAY, NOON, limit, utc_day


class LedgerCase(SynchronousTestCase):
    """A ledger at noon."""

    def setUp(self) -> None:
        """Have no limits."""
        self.clock = Clock()
        self.clock.advance(NOON.timestamp())
        self.news: list[SpendNews] = []
        self.ledger = Ledger(self.clock.seconds, utc_day, lambda _: None, self.news.append)

    def limited(self, *limits: SpendLimit, raises: tuple[Raise, ...] = ()) -> None:
        """Have these limits."""
        self.ledger.set_rules([SpendRule(each, LimitSource.CONFIG) for each in limits], raises)

    def admit(
        self, session: str = "s1", model: str = "m", provider: str = "openai", tokens: int = 100
    ) -> RequestCharge:
        """Admit a request."""
        self.ledger.look_at_clock()
        return self.ledger.admit(self.ledger.tab(provider, session, model), tokens, 50)

    def settle(self, charge: RequestCharge, tokens: int, cost: int = 0) -> None:
        """Have a request end that used so much."""
        charge.settle(Usage(tokens, 0, 0, cost), "", 200, 0, 0)

    def use(self, tokens: int, session: str = "s1", model: str = "m", provider: str = "openai", cost: int = 0) -> None:
        """Have a request pass that used so much."""
        self.settle(self.admit(session, model, provider), tokens, cost)

    def refused(self, session: str = "s1", model: str = "m", provider: str = "openai") -> str:
        """Assert that a request is refused; the sentence."""
        return str(self.assertRaises(LimitExceeded, self.admit, session, model, provider))


class LedgerTests(LedgerCase):
    """Limits."""

    def test_reached(self) -> None:
        """A request passes while anything of the limit is left, and none does once it is used."""
        self.limited(limit(1000))
        self.use(999)
        self.use(5000)
        told = self.refused()
        for part in ("tokens a day", "5,999 tokens of 1,000 tokens", "aileron gateway limit raise"):
            self.assertIn(part, told)

    def test_parallel(self) -> None:
        """Of requests at the same time, each reserves what it may use: they do not all pass the last unit."""
        self.limited(limit(200))
        first, _ = self.admit(), self.admit("s2")
        self.assertIn("0 tokens of 200 tokens and 200 tokens reserved", self.refused())
        self.settle(first, 1)
        self.admit()
        self.refused()
        self.limited(limit(3, Unit.REQUESTS, Per.SESSION))
        self.admit()
        self.refused()
        self.admit("s2")

    def test_request(self) -> None:
        """A request that may use more than a limit for one is refused, and reserves nothing."""
        self.limited(limit(99, per=Per.REQUEST), limit(1000))
        self.assertIn("about 100 tokens", self.refused())
        self.assertEqual([each.held for each in self.ledger.states()], [0, 0])
        self.limited(limit(49, Unit.MONEY, Per.REQUEST))
        self.refused()
        self.limited(limit(50, Unit.MONEY, Per.REQUEST), limit(100, per=Per.REQUEST))
        self.admit()

    def test_once(self) -> None:
        """A request is charged once, and released once."""
        self.limited(limit(1000))
        reservation = self.admit()
        for _ in range(2):
            self.settle(reservation, 7)
            reservation.release()
        (state,) = self.ledger.states()
        self.assertEqual((state.used, state.held), (7, 0))
        ((key, spent),) = self.ledger.take_unwritten()
        self.assertEqual((key, spent), (SpendKey(DAY, "s1", "openai", "m"), Spent(1, 7)))
        self.assertEqual(self.ledger.take_unwritten(), [])

    def test_release(self) -> None:
        """What was not sent is not charged."""
        self.limited(limit(1, Unit.REQUESTS))
        for _ in range(2):
            self.admit().release()
        self.assertEqual((self.ledger.take_unwritten(), self.ledger.totals()), ([], {}))

    def test_units(self) -> None:
        """Tokens, requests and money are counted each by itself."""
        self.limited(limit(10, Unit.TOKENS), limit(3, Unit.REQUESTS), limit(100, Unit.MONEY))
        self.use(4, cost=30)
        self.assertEqual([each.used for each in self.ledger.states()], [4, 1, 30])

    def test_narrow(self) -> None:
        """A limit for a provider, a model or sessions counts what it covers, and nothing else."""
        self.limited(
            limit(10, provider="openai"), limit(10, model="gpt-5*"), limit(10, per=Per.SESSION), limit(10, model="x")
        )
        self.use(10, provider="anthropic", session="s1", model="claude")
        self.assertIn("one session", self.refused("s1", "x", "anthropic"))
        self.use(10, provider="anthropic", session="s2", model="gpt-5-mini")
        self.assertIn("model gpt-5*", self.refused("s3", "gpt-5", "anthropic"))
        self.use(10, session="s4")
        self.assertIn("for openai", self.refused("s5"))
        self.use(10, provider="anthropic", session="s6", model="xx")

    def test_no_session(self) -> None:
        """Requests without a session count together as one."""
        self.limited(limit(10, per=Per.SESSION))
        self.use(10, session="")
        self.refused("")
        self.admit("s1")

    def test_midnight(self) -> None:
        """A day ends at midnight of local time; a request counts for the day on which it began."""
        self.limited(limit(100), limit(1000, per=Per.SESSION))
        late = self.admit()
        self.clock.advance(12 * 3600)
        self.settle(late, 100)
        self.assertEqual(self.ledger.take_unwritten()[0][0].day, DAY)
        self.use(99)
        self.use(1)
        self.refused()
        self.assertEqual(self.ledger.today, DAY + timedelta(days=1))
        self.assertEqual([each.used for each in self.ledger.states()], [100, 200])

    def test_clock_set_back(self) -> None:
        """After a jump of the clock, forward and back, what was used on the day is still known."""
        self.limited(limit(10))
        self.use(10)
        self.clock.rightNow += 3 * 86_400
        self.use(3)
        self.clock.rightNow -= 3 * 86_400
        self.refused()
        self.assertEqual(self.ledger.today, DAY)

    def test_restart(self) -> None:
        """What was used before the daemon started counts; the operator is not warned of it again."""
        self.limited(limit(10), limit(10, per=Per.SESSION))
        self.ledger.load({SpendKey(DAY, "s1", "openai", "m"): Spent(requests=1, input=9)})
        self.use(1)
        self.assertEqual(self.news, [])
        self.refused()
        self.assertEqual([each.type for each in self.news], ["spending.reached"])

    def test_days_before(self) -> None:
        """What was used yesterday counts for its session, and not today."""
        self.limited(limit(10), limit(10, per=Per.SESSION))
        self.ledger.load({SpendKey(DAY - timedelta(days=1), "s1", "openai", "m"): Spent(requests=1, input=10)})
        self.assertIn("one session", self.refused())
        self.admit("s2")

    def test_models(self) -> None:
        """A provider that names ever other models does not fill the memory."""
        for number in range(MOST_MODELS + 5):
            self.use(1, model=f"m{number}")
        models = {key.model for key in self.ledger.totals()}
        self.assertEqual(len(models), MOST_MODELS + 1)
        self.assertIn(OTHER_MODELS, models)

    @settings(deadline=None, max_examples=examples(100))
    @given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 3), st.booleans()), max_size=40))
    def test_sums(self, calls: list[tuple[int, int, bool]]) -> None:
        """However requests overlap: what is left of reservations is nothing, and a limit counts what was charged.

        Each admission is at a moment at which what was used and reserved is below the limit.
        """
        self.setUp()
        self.limited(limit(500), limit(400, per=Per.SESSION))
        open_, sent = list[tuple[RequestCharge, int]](), 0
        for tokens, session, ends in calls:
            try:
                open_.append((self.admit(f"s{session}", tokens=tokens + 1), tokens))
            except LimitExceeded:
                (day, *_) = self.ledger.states()
                reached = [each for each in self.ledger.states() if each.is_reached]
                self.assertTrue(reached, day)
            if ends and open_:
                reservation, used = open_.pop(0)
                sent += used
                self.settle(reservation, used)
        for reservation, used in open_:
            sent += used
            self.settle(reservation, used)
        self.assertEqual((self.ledger.states()[0].used, self.ledger.states()[0].held), (sent, 0))


class NewsTests(LedgerCase):
    """What the operator is told."""

    def test_warned(self) -> None:
        """There is one warning at four fifths, and one when the limit is reached."""
        self.limited(limit(100, per=Per.SESSION))
        self.use(79)
        self.assertEqual(self.news, [])
        self.use(1)
        self.use(1)
        (warned,) = self.news
        self.assertEqual((warned.type, warned.session_id, warned.used, warned.most), ("spending.warned", "s1", 80, 100))
        self.assertIn("80 tokens of 100 tokens in one session", warned.why)
        self.use(50)
        for _ in range(3):
            self.refused()
        self.assertEqual([each.type for each in self.news], ["spending.warned", "spending.reached"])

    def test_raised(self) -> None:
        """What is added holds for that session or day alone, and the operator is told when that is reached."""
        self.limited(limit(100, per=Per.SESSION))
        name = limit(1, per=Per.SESSION).id
        self.use(100)
        self.use(100, "s2")
        self.refused()
        self.limited(limit(100, per=Per.SESSION), raises=(Raise(name, "s1", 50), Raise(name, "s1", 50)))
        self.refused("s2")
        self.use(99)
        self.use(1)
        self.refused()
        reached = [each for each in self.news if each.type == "spending.reached"]
        self.assertEqual([(each.session_id, each.most) for each in reached], [("s1", 100), ("s2", 100), ("s1", 200)])

    def test_changed(self) -> None:
        """With other limits everything is counted anew, requests in progress too."""
        free = self.admit()
        self.limited(limit(1000))
        reservation = self.admit()
        self.use(5)
        self.limited(limit(105))
        self.refused()
        self.settle(reservation, 1)
        (state,) = self.ledger.states()
        self.assertEqual((state.used, state.held), (6, 0))
        self.limited(limit(105), limit(7, Unit.REQUESTS))
        self.settle(free, 1)
        self.assertEqual([each.used for each in self.ledger.states()], [7, 3])
        self.assertEqual([each.type for each in self.news], ["spending.reached"])


class CostTests(SynchronousTestCase):
    """Money."""

    def test_cost(self) -> None:
        """A cost is that of the input, of its part from the cache, and of the output, rounded up."""
        price = Price(3.0, 15.0, 0.3)
        self.assertEqual(price.cost(1000, 100, 400), 600 * 3 + 120 + 1500)
        self.assertEqual(price.cost(1, 0, 0), 3)
        self.assertEqual(Price(0.1, 0.1, 0.1).cost(1, 0, 0), 1)
        self.assertEqual(price.cost(1, 0, 5), 1)

    def test_reported(self) -> None:
        """A reported cost comes before a price; without either the cost is unknown, and never invented."""
        clock, prices = Clock(), {"m": Price(3.0, 15.0, 0.3)}
        ledger = Ledger(clock.seconds, utc_day, prices.get, lambda _: None)
        for model, usage in (("m", Usage(10, 1, 0, 77)), ("m", Usage(10, 1)), ("n", Usage(10, 1))):
            charge = ledger.admit(ledger.tab("openai", "s1"), 1)
            charge.settle(usage, model, 200, 0, 0)
        found = {key.model: (spent.microdollars, spent.unpriced) for key, spent in ledger.totals().items()}
        self.assertEqual(found, {"m": (77 + 45, 0), "n": (0, 1)})

    def test_local_day(self) -> None:
        """The day is one of this process's time zone."""
        self.assertIsInstance(local_day(0.0), date)
        self.assertIn(local_day(NOON.timestamp()), {DAY, DAY + timedelta(days=1)})
