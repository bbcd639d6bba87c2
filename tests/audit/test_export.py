"""What is exported is read back as it was, whatever a service answered."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit.verify import GENESIS, Exporting, NotAnExport, read_export, record_line
from aileron.values import JSON, Row, compact

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
        """Every column is the same, and so is the text that was hashed."""
        kept = compact(payload)
        row: Row = (
            1,
            text,
            "t",
            "at",
            "service",
            text,
            maybe,
            None,
            maybe,
            None,
            None,
            "d",
            GENESIS,
            "h",
            "salt",
            kept,
        )
        exporting = Exporting(0, GENESIS, 1, ())
        lines = [*exporting.head("1"), record_line(row), exporting.end()]
        self.assertEqual(list(read_export(lines).rows), [[row]])

    def test_pruned(self) -> None:
        """A record without contents stays one."""
        row: Row = (1, "i", "t", "at", "s", "a", None, None, None, None, None, "d", GENESIS, "h", None, None)
        exporting = Exporting(0, GENESIS, 1, ())
        lines = [*exporting.head("1"), record_line(row), exporting.end()]
        self.assertEqual(list(read_export(lines).rows), [[row]])

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
