"""Lines become rows: none too wide, nothing left out, none that passes for a line of ours."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.watching.rows import columns, cut, padded, rows_of
from aileron.values import visible


class RowsTests(SynchronousTestCase):
    def test_broken(self) -> None:
        """A long line goes on in a row with a mark, so that it cannot begin as one of ours does."""
        self.assertEqual(rows_of(["abc", "12345digest", ""], 7), ("abc", "12345di", "↪ gest", ""))

    def test_wide(self) -> None:
        """A character that may take two columns counts as two."""
        self.assertEqual((columns("ab"), columns("漢"), columns("ž"), columns("│")), (2, 2, 1, 2))
        self.assertEqual(rows_of(["漢漢漢漢"], 5), ("漢漢", "↪ 漢", "↪ 漢"))

    def test_cut(self) -> None:
        """A cell that is too long says that it was cut."""
        self.assertEqual((cut("abcdef", 6), cut("abcdefg", 6), padded("ab", 4)), ("abcdef", "abcd…", "ab  "))

    @settings(max_examples=80, deadline=None)
    @given(st.text(max_size=80), st.integers(min_value=6, max_value=40))
    def test_nothing_is_lost(self, text: str, width: int) -> None:
        """Every row fits, and together they are the line."""
        line = visible(text)
        rows = rows_of([line], width)
        self.assertTrue(all(columns(row) <= width for row in rows))
        self.assertEqual(rows[0] + "".join(row.removeprefix("↪ ") for row in rows[1:]), line)
