"""The chain: what a hash covers, and what a break looks like."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

import aileron
from aileron.audit import GENESIS, payload_digest, seal
from aileron.audit._chain import KEYS, seal_row
from aileron.base.json import canonical, digest, timestamp
from aileron.model.audit import Actor, ChainLink, Event
from aileron.testing import example_event
from tests.extent import examples

from .recorded import RECORDED

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


def sealed_form(previous: str, link: ChainLink) -> dict[str, Any]:
    """What a hash is of."""
    event = link.event
    return {
        "form": "aileron.audit.v1",
        "previous_hash": previous,
        "sequence": link.sequence,
        "id": event.id,
        "type": event.type,
        "at": timestamp(event.at),
        "actor_type": event.actor.type,
        "actor_id": event.actor.id,
        "run_id": event.run_id,
        "session_id": event.session_id,
        "action": event.action,
        "connector": event.connector,
        "failure_class": event.failure_class,
        "payload_digest": link.payload_digest,
    }


class SealTests(SynchronousTestCase):
    @settings(deadline=None, max_examples=examples(100))
    @given(_TEXT, st.integers(1, 2**53 - 1), _EVENTS, _TEXT)
    def test_canonical(self, previous: str, sequence: int, event: Event, payload: str) -> None:
        """The hash is SHA-256 over RFC 8785 of the sealed form, as anybody can compute it."""
        link = ChainLink(sequence, event, payload)
        self.assertEqual(seal(previous, link), digest(sealed_form(previous, link)))
        self.assertEqual(sorted(sealed_form(previous, link)), list(KEYS))

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
        self.assertEqual(canonical(sealed_form(GENESIS, link)), expected)
        self.assertEqual(seal(GENESIS, link), "sha256:" + hashlib.sha256(expected).hexdigest())

    def test_strange_columns(self) -> None:
        """A column of another type has a hash of its own: 1 is not true, and a number is not its digits."""
        row: tuple[Any, ...] = (1, "id", "type", "at", "service", "a", None, None, None, None, None, "sha256:p")
        strange = [(True, *row[1:]), ("1", *row[1:]), (1, 7, *row[2:]), (1, "7", *row[2:]), (*row[:8], 7, *row[9:])]
        self.assertEqual(len({seal_row(GENESIS, each) for each in (row, *strange)}), 6)

    def test_payload_digest(self) -> None:
        """A payload's digest is salted, and the salt cannot be moved into the payload."""
        self.assertEqual(payload_digest("s", "{}"), "sha256:" + hashlib.sha256(b"s\n{}").hexdigest())
        self.assertEqual(len({payload_digest(*pair) for pair in (("s", "{}"), ("t", "{}"), ("s{", "}"))}), 3)


class RecordedTests(SynchronousTestCase):
    def test_written_down(self) -> None:
        """Every type has a dotted name and a whole sentence."""
        for name, sentence in RECORDED.items():
            self.assertTrue(re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", name), name)
            self.assertTrue(re.fullmatch(r"[A-Z].*\.", sentence), name)

    def test_nothing_else_is_recorded(self) -> None:
        """Every type that the package records is written down."""
        kinds = "|".join(sorted({name.partition(".")[0] for name in RECORDED}))
        literal = re.compile(
            rf'"((?:{kinds})\.(?!(?:css|db|html|js|json|key|md|py|sql|toml|webmanifest|xml)")[a-z_]+)"'
        )
        package = Path(aileron.__file__).parent
        used = {name for file in package.rglob("*.py") for name in literal.findall(file.read_text("utf-8"))}
        self.assertEqual(used - set(RECORDED), set())
