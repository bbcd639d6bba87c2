"""What requests used is kept by local day, session, provider and model, each once."""

from __future__ import annotations

from datetime import date, timedelta

from attrs import evolve

from aileron.model.usage import LimitKey, SharedUse, SpendKey, Spent
from aileron.store._spending import KEPT_DAYS, WRITE_SECONDS, SQLSpending
from aileron.testing import example_event, example_session

from .test_usage import TODAY, UsageCase

ONE, TWO = Spent(1, 10, 5, 2, 30, 0, 1), Spent(1, 7, 3, 0, 12, 1, 0)


def key(session: str = "s1", model: str = "m", day: date = TODAY) -> SpendKey:
    """What requests are added up by."""
    return SpendKey(day, session, "openai", model)


class SpendingTests(UsageCase):
    """L{SQLSpending}."""

    def since(self, day: date = date.min) -> dict[SpendKey, Spent]:
        """What was used."""
        return dict(self.do(self.store.spending.since(day)))

    def test_sums(self) -> None:
        """It is added up by all of its key."""
        for each in (key(), key(), key("s2"), key(model="n"), key("", "")):
            self.store.spending.note(each, ONE)
        self.since()
        self.store.spending.note(key(), TWO)
        self.assertEqual(self.since(), {key(): ONE + ONE + TWO, key("s2"): ONE, key(model="n"): ONE, key("", ""): ONE})
        self.assertEqual(self.since(TODAY + timedelta(days=1)), {})

    def two(self) -> list[SQLSpending]:
        """Two daemons on the database."""
        store = self.store
        seals = store.audit._seals  # type: ignore[attr-defined]
        return [SQLSpending(store._writer, store._readers, self.clock, name, seals) for name in ("one", "two")]

    def test_recorded_once(self) -> None:
        """Several daemons record one event for each type and each state of a limit, also after a restart."""
        one, two = self.two()
        state = LimitKey("tokens-day", TODAY.isoformat(), 1000)
        known = [
            self.do(each.record_once(example_event(f"spending.{type_}"), at))
            for each, type_, at in (
                (one, "warned", state),
                (two, "warned", state),
                (one, "warned", state),
                (two, "reached", state),
                (one, "reached", state),
                (two, "warned", evolve(state, most=2000)),
                (one, "warned", evolve(state, place="s1")),
                (self.store.spending, "warned", evolve(state, limit_id="money")),
            )
        ]
        self.assertEqual(known, [True, False, False, True, False, True, True, True])
        found = self.query("SELECT type FROM audit_events WHERE type LIKE 'spending.%' ORDER BY seq")
        types = [row[0].removeprefix("spending.") for row in found]
        self.assertEqual(types, ["warned", "reached", "warned", "warned", "warned"])

    def test_forgotten(self) -> None:
        """What was told long ago is deleted."""
        state = LimitKey("tokens-day", "", 1000)
        self.do(self.store.spending.record_once(example_event("spending.warned"), state))
        self.do(self.store.spending.prune(TODAY))
        self.assertEqual(self.query("SELECT count(*) FROM spending_told"), [(1,)])
        self.query(f"UPDATE spending_told SET at = at - {86400 * (KEPT_DAYS + 1)}")
        self.do(self.store.spending.prune(TODAY))
        self.assertEqual(self.query("SELECT count(*) FROM spending_told"), [(0,)])

    def test_shared(self) -> None:
        """Each daemon reads what all used, and what the others reserve until they stop renewing it."""
        one, two = self.two()
        one.note(key(), ONE)
        two.note(key(), TWO)
        place = ("tokens-day", TODAY.isoformat())
        self.assertEqual(self.do(one.share({place: 5}, TODAY)), SharedUse({key(): ONE}, {}, 1))
        self.assertEqual(self.do(two.share({place: 7}, TODAY)), SharedUse({key(): ONE + TWO}, {place: 5}, 1))
        self.assertEqual(self.do(one.share({}, TODAY)), SharedUse({key(): ONE + TWO}, {place: 7}, 1))
        self.assertEqual(self.do(two.share({}, TODAY + timedelta(days=1))), SharedUse({}, {}, 1))
        self.do(one.share({place: 5}, TODAY))
        self.query("UPDATE spending_held SET until = 0")
        self.query("INSERT INTO daemons (id, started_at, seen_at, until) VALUES ('a', 0, 0, 1e12), ('b', 0, 0, 1e12)")
        self.assertEqual(self.do(two.share({}, TODAY)), SharedUse({key(): ONE + TWO}, {}, 2))

    def test_restart(self) -> None:
        """It is written within a second, and by a store that is closed; the next one has it."""
        self.store.spending.note(key(), ONE)
        self.clock.advance(WRITE_SECONDS)
        self.finish()
        self.assertEqual(self.query("SELECT requests, input FROM spending"), [(1, 10)])
        self.store.spending.note(key(), TWO)
        self.do(self.store.close())
        self.store = self.opened()
        self.assertEqual(self.since(), {key(): ONE + TWO})

    def test_refused(self) -> None:
        """What the database did not take is written the next time, once."""
        self.store.spending.note(key(), ONE)
        with self.locked():
            flushing = self.store.spending.flush()
            self.finish()
            self.successResultOf(flushing)
            self.assertEqual(self.query("SELECT * FROM spending"), [])
        self.store.spending.note(key(), TWO)
        self.assertEqual(self.since(), {key(): ONE + TWO})

    def test_prune(self) -> None:
        """Old rows go, but not those of a session that is still active; a clock that is set wrongly removes nothing."""
        old = TODAY - timedelta(days=KEPT_DAYS + 1)
        self.do(self.store.sessions.open(example_session("live"), bytes(32), bytes(range(32)), ()))
        for each in (key(), key("live", day=old), key("gone", day=old), key("", day=old)):
            self.store.spending.note(each, ONE)
        self.since()
        self.do(self.store.spending.prune(TODAY + timedelta(days=10_000)))
        self.do(self.store.spending.prune(old))
        self.assertEqual(set(self.since()), {key(), key("live", day=old)})
