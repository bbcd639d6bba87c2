"""A line that we wrote is read in a shorter way, as the long way would have read it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import payload_digest
from aileron.audit._export_line import read_own_line
from aileron.audit.verify import GENESIS, Exporting, NotAnExport, read_export, record_line
from aileron.values import JSON, Row, compact

_TEXTS = st.text(max_size=6)
_PAYLOADS = st.dictionaries(_TEXTS, st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS, max_size=3)


def row_of(payload: str | None, text: str = "x", maybe: str | None = None) -> Row:
    """A record of which all but its place in the chain is right."""
    digest = "d" if payload is None else payload_digest("salt", payload)
    about = (maybe, None, maybe, None, maybe)
    salt = None if payload is None else "salt"
    return (1, text, "t", "at", "service", text, *about, digest, GENESIS, "h", salt, payload)


def long_way(line: str) -> Row:
    """What is read of the line where a blank at its end keeps it from the short way."""
    exporting = Exporting(0, GENESIS, 1, ())
    ((row,),) = read_export([*exporting.head("1"), line[:-1] + " \n", exporting.end()]).rows
    return row


class OwnLineTests(SynchronousTestCase):
    """One line, both ways."""

    @settings(deadline=None, max_examples=150)
    @given(_PAYLOADS, _TEXTS, st.none() | _TEXTS)
    def test_same(self, payload: dict[str, JSON], text: str, maybe: str | None) -> None:
        """Whatever stands in it, the short way reads the same or leaves it to the long one."""
        line = record_line(row_of(compact(payload), text, maybe))
        self.assertIn(read_own_line(line), (None, long_way(line)))

    def test_taken(self) -> None:
        """An ordinary line is read in the short way, with its contents or without."""
        for payload in ('{"a":[1,{"b":"\\u00e9\\n"}]}', None):
            for maybe in ("run-1", None):
                line = record_line(row_of(payload, maybe=maybe))
                self.assertEqual(read_own_line(line), row_of(payload, maybe=maybe))
                self.assertEqual(read_own_line(line), long_way(line))

    def test_left(self) -> None:
        """What was altered, or written by another tool, or is no JSON, is left to the long way, and found there."""
        line = record_line(row_of('{"a":1}'))
        for before, after in (
            ('{"a":1}', '{"a":2}'),
            ('{"a":1}', '{"a": 1}'),
            ('"kind":"record",', '"kind":"record","note":"x",'),
            ('"type":"t"', '"type":"t","type":"u"'),
            ('"id":"x"', '"id":"\\u0078"'),
            ('"sequence":1', '"sequence":01'),
        ):
            self.assertIn(before, line)
            self.assertIsNone(read_own_line(line.replace(before, after)))

    def test_hashed_as_it_is(self) -> None:
        """Contents that say a name twice, or are no JSON, are refused although their hash is right."""
        for payload in ('{"a":1,"a":2}', '{"a":1', '{},"more":{}', "[" * 100_000):
            line = record_line(row_of(payload))
            self.assertIsNone(read_own_line(line))
            with self.assertRaises(NotAnExport):
                long_way(line)
