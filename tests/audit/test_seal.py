"""The chain: what a hash covers, and what a break looks like."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import GENESIS, check_chain, payload_digest, seal
from aileron.audit._seal import KEYS, seal_row, sealed
from aileron.testing import example_event
from aileron.values import Actor, ChainLink, Event, Record, canonical, compact, digest

_TEXT = st.text(st.characters(codec="utf-8"))
_OPTIONAL = st.none() | _TEXT
_ACTORS = st.builds(Actor, _TEXT, _TEXT)
_EVENTS = st.builds(
    Event,
    id=_TEXT,
    type=_TEXT,
    at=st.just(example_event().at),
    actor=_ACTORS,
    run_id=_OPTIONAL,
    session_id=_OPTIONAL,
    action=_OPTIONAL,
    connector=_OPTIONAL,
    failure_class=_OPTIONAL,
)


def chain(*events: Event) -> list[Record]:
    """Records as a store would keep them."""
    records, previous = [], GENESIS
    for sequence, event in enumerate(events, 1):
        link = ChainLink(sequence, event, payload_digest("salt", compact(event.payload)))
        records.append(Record(sequence, event, previous, seal(previous, link), link.payload_digest, "salt"))
        previous = records[-1].hash
    return records


class SealTests(SynchronousTestCase):
    @settings(deadline=None, max_examples=100)
    @given(_TEXT, st.integers(1, 2**53 - 1), _EVENTS, _TEXT)
    def test_canonical(self, previous: str, sequence: int, event: Event, payload: str) -> None:
        """The hash is SHA-256 over RFC 8785 of the sealed form, as anybody can compute it."""
        link = ChainLink(sequence, event, payload)
        self.assertEqual(seal(previous, link), digest(dict(zip(KEYS, sealed(previous, link), strict=True))))

    def test_known(self) -> None:
        """The form never changes: a chain that was sealed by an older version holds."""
        event = evolve(example_event("run.received", "run-1", action="ship"), id="01J")
        expected = (
            b'{"action":"ship","actor_id":"aileron","actor_type":"service","at":"2023-11-14T22:13:20.250000Z",'
            b'"connector":null,"failure_class":null,"form":"aileron.audit.v1","id":"01J","payload_digest":"sha256:p",'
            b'"previous_hash":"' + GENESIS.encode() + b'","run_id":"run-1","sequence":7,"session_id":null,'
            b'"type":"run.received"}'
        )
        link = ChainLink(7, event, "sha256:p")
        self.assertEqual(canonical(dict(zip(KEYS, sealed(GENESIS, link), strict=True))), expected)
        self.assertEqual(seal(GENESIS, link), "sha256:" + hashlib.sha256(expected).hexdigest())

    def test_strange_columns(self) -> None:
        """A column of another type has a hash of its own: 1 is not true, and a number is not its digits."""
        row: tuple[Any, ...] = (1, "id", "type", "at", "service", "a", None, None, None, None, None, "sha256:p")
        strange = [(True, *row[1:]), ("1", *row[1:]), (1, 7, *row[2:]), (1, "7", *row[2:]), (*row[:8], 7, *row[9:])]
        self.assertEqual(len({seal_row(GENESIS, each) for each in (row, *strange)}), 6)

    def test_every_field_counts(self) -> None:
        """A change of any field of the event, the sequence, the payload or the previous hash changes the hash."""
        event = example_event()
        other = Actor("human", "someone")
        changes: dict[str, Any] = {
            "id": "x",
            "type": "x",
            "at": event.at + timedelta(microseconds=1),
            "actor": other,
            "run_id": "x",
        }
        more = {"session_id": "x", "action": "x", "connector": "x", "failure_class": "x"}
        links = [ChainLink(1, evolve(event, **{name: value}), "p") for name, value in {**changes, **more}.items()]
        links += [ChainLink(1, event, "p"), ChainLink(2, event, "p"), ChainLink(1, event, "q")]
        links += [ChainLink(1, evolve(event, actor=Actor("service", "x")), "p")]
        hashes = [seal(GENESIS, link) for link in links]
        self.assertEqual(len({*hashes, seal(hashes[0], links[0])}), len(links) + 1)

    def test_payload_digest(self) -> None:
        """A payload's digest is salted, and the salt cannot be moved into the payload."""
        self.assertEqual(payload_digest("s", "{}"), "sha256:" + hashlib.sha256(b"s\n{}").hexdigest())
        self.assertEqual(len({payload_digest(*pair) for pair in (("s", "{}"), ("t", "{}"), ("s{", "}"))}), 3)


class CheckChainTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.records = chain(*(example_event(payload={"n": number}) for number in range(4)))

    def test_sound(self) -> None:
        """A sound chain, a part of it and an empty one hold."""
        self.assertIsNone(check_chain(self.records))
        self.assertIsNone(check_chain([]))
        self.assertIsNone(check_chain(self.records[2:], self.records[1].hash, 2))

    def test_changed(self) -> None:
        """A changed event, payload, salt or hash is found where it is."""
        third = self.records[2]
        event = third.event
        for changed in (
            evolve(third, event=evolve(event, type="x")),
            evolve(third, event=evolve(event, payload={"n": 9})),
            evolve(third, salt="other"),
            evolve(third, hash="sha256:x"),
            evolve(third, previous_hash="sha256:x"),
            evolve(third, payload_digest=payload_digest("salt", '{"n":9}'), event=evolve(event, payload={"n": 9})),
            evolve(third, sequence=9),
        ):
            self.assertEqual(check_chain([*self.records[:2], changed, self.records[3]]), 3)

    def test_resealed(self) -> None:
        """Who changes a record and seals it anew breaks the next one."""
        first = chain(example_event("x"))[0]
        self.assertEqual(check_chain([first, *self.records[1:]]), 2)

    def test_removed_or_moved(self) -> None:
        """A missing, doubled or moved record is found at its place."""
        a, b, c, d = self.records
        for broken, place in (([b, c, d], 1), ([a, c, d], 2), ([a, b, b, c], 3), ([a, c, b, d], 2)):
            self.assertEqual(check_chain(broken), place)
