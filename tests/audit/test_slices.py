"""A record that is looked at in slices is found to be what it is found to be in one go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import GENESIS, PRUNED, Verification, payload_digest, seal
from aileron.audit._record_reader import verify_record
from aileron.base.json import compact, timestamp
from aileron.model.audit import ChainLink, Row, Verdict
from aileron.testing import example_event, unopened_store
from tests.audit.kit import RecordCase
from tests.extent import examples

COUNT = 12
FORGED = ("forged", None, 3, "sha256:0")


@cache
def record(secret: str = "s") -> tuple[Row, ...]:
    """Records that hold, of which the fourth and the fifth have no contents and the seventh says so."""
    rows, previous = [], GENESIS
    for number in range(1, COUNT + 1):
        event = example_event(PRUNED if number == 7 else f"x.{number}", secret, {"up_to": 5})
        event = evolve(event, id=f"{secret}{number}")
        text = compact(event.payload)
        link = ChainLink(number, event, payload_digest("salt", text))
        own = seal(previous, link)
        contents = (None, None) if number in {4, 5} else ("salt", text)
        about = (event.run_id, event.session_id, event.action, event.connector, event.failure_class)
        who = (event.actor.type, event.actor.id)
        start = (number, event.id, event.type, timestamp(event.at), *who)
        rows.append((*start, *about, link.payload_digest, previous, own, *contents))
        previous = own
    return tuple(rows)


def altered(rows: list[Row], at: int, column: int) -> list[Row]:
    """One column, but for the number, is another."""
    row = list(rows[at])
    row[1 + column] = FORGED[column % len(FORGED)]
    return [*rows[:at], tuple(row), *rows[at + 1 :]]


def removed(rows: list[Row], at: int, other: int) -> list[Row]:
    """One is missing; the others may be numbered anew."""
    return numbered([*rows[:at], *rows[at + 1 :]], other)


def inserted(rows: list[Row], at: int, other: int) -> list[Row]:
    """One stands twice; the others may be numbered anew."""
    return numbered([*rows[:at], rows[other % len(rows)], *rows[at:]], other)


def moved(rows: list[Row], at: int, other: int) -> list[Row]:
    """Two have changed places."""
    rows[at], rows[other % len(rows)] = rows[other % len(rows)], rows[at]
    return numbered(rows, other)


def cut(rows: list[Row], at: int, other: int) -> list[Row]:
    """The end is missing."""
    return rows[: at + other]


def bared(rows: list[Row], at: int, other: int) -> list[Row]:
    """Contents are missing."""
    return [*rows[:at], (*rows[at][:14], None, None), *rows[at + 1 :]]


def rewritten(rows: list[Row], at: int, other: int) -> list[Row]:
    """From some record on, or to some record, it is another record."""
    return [*rows[:at], *record("other")[at:]] if other % 2 else [*record("other")[:at], *rows[at:]]


def numbered(rows: list[Row], how: int) -> list[Row]:
    """Numbered in a row, if C{how} is even."""
    return [(number, *row[1:]) for number, row in enumerate(rows, 1)] if how % 2 == 0 else rows


DAMAGES: Sequence[Callable[[list[Row], int, int], list[Row]]] = (
    altered,
    removed,
    inserted,
    moved,
    cut,
    bared,
    rewritten,
)


class SameTests(SynchronousTestCase):
    """One go, and slices that end anywhere."""

    def verdict(self, rows: Sequence[Row], sealed: Mapping[str, tuple[int, str]], ends: Sequence[int]) -> Verdict:
        """Verify in slices that end at these places."""
        verification = Verification((), sealed=sealed)
        for begin, end in pairwise((0, *ends, len(rows))):
            verification.feed(rows[begin:end])
        return verification.end()

    @settings(deadline=None, max_examples=examples(400))
    @given(
        st.lists(st.tuples(st.sampled_from(DAMAGES), st.integers(0, COUNT - 1), st.integers(0, 13)), max_size=2),
        st.sets(st.integers(1, COUNT - 1)),
        st.sets(st.integers(1, COUNT + 2), max_size=3),
    )
    def test_same(
        self,
        damages: Sequence[tuple[Callable[[list[Row], int, int], list[Row]], int, int]],
        places: set[int],
        marks: set[int],
    ) -> None:
        """Whatever was done to it, wherever the slices end, the same is found."""
        rows = list(record())
        for damage, at, other in damages:
            rows = damage(rows, min(at, len(rows) - 1), other) if rows else rows
        rows = sorted(rows, key=lambda row: row[0])
        sealed = {f"mark {each}": (each, record()[min(each, COUNT) - 1][13]) for each in sorted(marks)}
        ends = sorted(each for each in places if each <= len(rows))
        self.assertEqual(self.verdict(rows, sealed, ends), self.verdict(rows, sealed, ()))


class ReaderTests(RecordCase):
    """The whole record is looked at while others are served."""

    def test_lets_others_go_on(self) -> None:
        """Between some signatures the reactor has its turn."""
        path = self.write(90, range(1, 91))
        clock, store = Clock(), unopened_store(path)
        self._do(store.open())
        self.addCleanup(lambda: self._do(store.close()))
        looking = Deferred.fromCoroutine(verify_record(store.archive, clock, {}))
        self.assertNoResult(looking)
        self.assertEqual(len(clock.getDelayedCalls()), 1)
        clock.advance(0)
        self.assertEqual(self.successResultOf(looking).covered, 90)
