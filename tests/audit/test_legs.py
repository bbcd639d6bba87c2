"""A record that is looked at in legs is found to be what it is found to be in one go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import GENESIS, PRUNED, Verification, payload_digest, seal
from aileron.audit._legs import gone_along, seams
from aileron.audit.verify import NotAnExport
from aileron.testing import example_event
from aileron.values import Checkpoint, Link, Row, Verdict, compact, timestamp
from tests.audit.kit import Signer

COUNT = 12
FORGED = ("forged", None, 3, "sha256:0")


@frozen
class MemoryLeg:
    """Some rows in memory, of which the last may not be had."""

    after: int
    until: int
    kept: Sequence[Row]
    damaged: bool = False

    def rows(self) -> Iterator[Sequence[Row]]:
        """Two at a time."""
        yield from (self.kept[at : at + 2] for at in range(0, len(self.kept), 2))
        if self.damaged:
            raise NotAnExport("it is damaged")


@cache
def record(secret: str = "s") -> tuple[Row, ...]:
    """Records that hold, of which the fourth and the fifth have no contents and the seventh says so."""
    rows, previous = [], GENESIS
    for number in range(1, COUNT + 1):
        event = example_event(PRUNED if number == 7 else f"x.{number}", secret, {"up_to": 5})
        event = evolve(event, id=f"{secret}{number}")
        text = compact(event.payload)
        link = Link(number, event, payload_digest("salt", text))
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
    """One go, and legs with seams anywhere."""

    def looked(self, rows: Sequence[Row], sealed: Mapping[str, tuple[int, str]], ends: Sequence[int]) -> Verdict:
        """What is found in legs that end after these records; a look in slices goes on behind what held."""
        verification = Verification((), sealed=sealed)
        legs = [
            MemoryLeg(after, until, [row for row in rows if after < row[0] <= until]) for after, until in pairwise(ends)
        ]
        verification.hurry(legs, 1)
        left = [row for row in rows if row[0] > verification.reached]
        for at in range(0, len(left), 3):
            verification.feed(left[at : at + 3])
        return verification.end()

    @settings(deadline=None, max_examples=400)
    @given(
        st.lists(st.tuples(st.sampled_from(DAMAGES), st.integers(0, COUNT - 1), st.integers(0, 13)), max_size=2),
        st.sets(st.integers(1, COUNT - 1)),
        st.sets(st.integers(1, COUNT + 2), max_size=3),
        st.integers(1, COUNT),
    )
    def test_same(
        self,
        damages: Sequence[tuple[Callable[[list[Row], int, int], list[Row]], int, int]],
        places: set[int],
        marks: set[int],
        size: int,
    ) -> None:
        """Whatever was done to it, wherever the seams and the slices are, the same is found."""
        rows = list(record())
        for damage, at, other in damages:
            rows = damage(rows, min(at, len(rows) - 1), other) if rows else rows
        rows = sorted(rows, key=lambda row: row[0])
        sealed = {f"mark {each}": (each, record()[min(each, COUNT) - 1][13]) for each in sorted(marks)}
        one = Verification((), sealed=sealed)
        for at in range(0, len(rows), size):
            one.feed(rows[at : at + size])
        self.assertEqual(self.looked(rows, sealed, [0, *sorted(places), COUNT]), one.end())

    def test_all_in_legs(self) -> None:
        """A record that holds is gone along in legs from one end to the other, wherever the seams are."""
        for length in range(1, COUNT // 2 + 1):
            ends = [*seams(COUNT, length), COUNT]
            legs = [MemoryLeg(*pair, record()[slice(*pair)]) for pair in pairwise(ends)]
            verification = Verification(self.signed(3, 8))
            self.assertEqual(verification.hurry(legs, 1), len(legs))
            found = verification.end()
            self.assertEqual((found.sound, found.last, found.pruned, found.covered), (True, COUNT, 2, 8))

    def signed(self, *sequences: int) -> Sequence[Checkpoint]:
        """Checkpoints of these records, one after the other."""
        signer = Signer()
        return [signer.sign(each, record()[each - 1][13]) for each in sequences]


class LegTests(SynchronousTestCase):
    """One leg."""

    def test_damaged(self) -> None:
        """What cannot be read to its end is left to another look."""
        self.assertIsNotNone(gone_along(MemoryLeg(0, 4, record()[:4])))
        self.assertIsNone(gone_along(MemoryLeg(0, 4, record()[:4], damaged=True)))

    def test_nothing(self) -> None:
        """A leg without a record says nothing."""
        self.assertIsNone(gone_along(MemoryLeg(0, 4, ())))

    def test_another_record(self) -> None:
        """A leg that holds by itself, but belongs to another record, is not joined."""
        legs = [MemoryLeg(0, 6, record()[:6]), MemoryLeg(6, COUNT, record("other")[6:])]
        verification = Verification(())
        self.assertEqual((verification.hurry(legs, 1), verification.reached), (1, 6))

    def test_marked(self) -> None:
        """A leg that holds, but is not what somebody answers for, is not joined."""
        for sequence in range(1, 7):
            verification = Verification((), sealed={"the vault": (sequence, "sha256:another")})
            self.assertEqual(verification.hurry([MemoryLeg(0, 6, record()[:6])], 1), 0)

    def test_never_too_many(self) -> None:
        """However many records a file says it has, the legs are some thousands; a short record has none."""
        self.assertLessEqual(len(seams(2**62)), 10_001)
        self.assertEqual(len(seams(19_999)), 0)
        self.assertEqual(len(seams(20_000)), 2)
