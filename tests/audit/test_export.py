"""What is exported is read back as it was, whatever a service answered."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import payload_digest
from aileron.audit.verify import GENESIS, Exporting, NotAnExport, read_export, record_line
from aileron.base.json import JSON, compact
from aileron.model.audit import Row

_TEXTS = st.text(max_size=6)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)


class RoundTripTests(SynchronousTestCase):
    """One record through an export and back."""

    @settings(deadline=None, max_examples=80)
    @given(st.dictionaries(_TEXTS, _VALUES, max_size=3), _TEXTS, st.none() | _TEXTS)
    def test_same(self, payload: dict[str, JSON], text: str, maybe: str | None) -> None:
        """Every column is the same, and so is the text that was hashed; a record without contents stays one."""
        about = (text, "t", "at", "service", text, maybe, None, maybe, None, None)
        exporting = Exporting(0, GENESIS, 1, ())
        kept = compact(payload)
        for digest, *contents in (
            (payload_digest("salt", kept), "salt", kept),
            ("d", "salt", kept),
            ("d", None, None),
        ):
            row: Row = (1, *about, digest, GENESIS, "h", *contents)
            lines = [*exporting.head("1"), record_line(row), exporting.end()]
            self.assertEqual(list(read_export(lines).rows), [[row]])

    def exported(self) -> list[str]:
        """The lines of an export of two records."""
        rows = [
            (each, f"i{each}", "t", "at", "s", "a", None, None, None, None, None, "d", GENESIS, "h", "s", '{"a":1}')
            for each in (1, 2)
        ]
        exporting = Exporting(0, GENESIS, 2, ())
        return [*exporting.head("1"), *map(record_line, rows), exporting.end()]

    def test_one_reading(self) -> None:
        """A line that two programs could read differently, or that says more than is verified, is refused."""
        self.assertEqual(len(next(read_export(self.exported()).rows)), 2)
        for number, before, after in (
            (1, '{"a":1}', '{"a":1'),
            (1, '{"a":1}', '{},"more":{}'),
            (1, '{"a":1}', "[" * 100_000),
            (1, '"sequence":1', '"sequence":01'),
            (1, '"type":"t"', '"type":"t","note":"approved by the operator"'),
            (1, '"type":"t"', '"type":"forged","type":"t"'),
            (1, '{"a":1}', '{"a":2,"a":1}'),
            (1, ',"connector":null', ""),
            (0, '"until":2', '"until":2,"sealed_by":"the vault"'),
            (3, '"until":2', '"until":2,"all":true'),
        ):
            lines = self.exported()
            self.assertIn(before, lines[number])
            lines[number] = lines[number].replace(before, after)
            with self.assertRaises(NotAnExport):
                list(read_export(lines).rows)

    def test_written_anew(self) -> None:
        """Contents that a program has written with blanks and in another order are read as they were sealed."""
        kept = '{"a":1,"b":2}'
        about = (1, "i", "t", "at", "s", "a", None, None, None, None, None)
        row: Row = (*about, payload_digest("s", kept), GENESIS, "h", "s", kept)
        exporting = Exporting(0, GENESIS, 1, ())
        line = record_line(row).replace(kept, '{"b": 2, "a": 1}')
        self.assertEqual(list(read_export([*exporting.head("1"), line, exporting.end()]).rows), [[row]])

    def test_whole(self) -> None:
        """What was cut off before the end, or put behind it, is noticed."""
        lines = self.exported()
        for spoilt in (
            [*lines, lines[1]],
            [*lines[:2], lines[3]],
            [*lines[:2], '{"kind":"end","until":1}\n'],
            lines[:3],
        ):
            with self.assertRaises(NotAnExport):
                list(read_export(spoilt).rows)

    def test_inert(self) -> None:
        """Whatever stands in a strange file, an export of it is plain ASCII, one line for each record."""
        for payload in ("\x1b[2J", "{}\n{}", "\u009b2J", '{"a":"\x7f"}', ""):
            row = (1, "\x7fi", "t", "at", "s", "a", None, None, None, None, None, "d", GENESIS, "h", "s", payload)
            line = record_line(row)
            self.assertRegex(line, r"\A[ -~]+\n\Z")

    @settings(deadline=None, max_examples=60)
    @given(
        st.lists(st.text(max_size=20) | st.sampled_from(('{"kind":"header"}', "[]", "null", "1" * 5000)), max_size=4)
    )
    def test_wild(self, lines: list[str]) -> None:
        """What is no export is refused, and nothing else is raised."""
        try:
            list(read_export(lines).rows)
        except NotAnExport:
            return
        self.fail("it was taken for an export")
