"""The legs of an export are its lines, each once."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.audit.verify import Exporting, NotAnExport, export_legs, record_line
from tests.audit.test_legs import COUNT, record

AFTER = 3


class ExportLegsTests(SynchronousTestCase):
    """A part of a record in a file."""

    def setUp(self) -> None:
        """All records after the third."""
        self.path = Path(self.mktemp())
        self.exporting = Exporting(AFTER, record()[AFTER - 1][13], COUNT, ())
        self.rows = record()[AFTER:]
        self.write([*self.exporting.head("1"), *map(record_line, self.rows), self.exporting.end()])

    def write(self, lines: list[str]) -> None:
        """Have these lines in the file."""
        self.path.write_text("".join(lines), encoding="utf-8")

    def test_each_once(self) -> None:
        """However long they are, all but what the last one has are the lines of the file, in their order."""
        for length in range(1, COUNT):
            legs = export_legs(self.path, self.exporting, length)
            with self.path.open("rb") as file:
                onward = list(chain.from_iterable(legs[-1].onward(file, COUNT)))
            read = [row for leg in legs[:-1] for rows in leg.rows() for row in rows]
            self.assertEqual((*read, *onward), self.rows)
            self.assertEqual([leg.until for leg in legs], [*(leg.after for leg in legs[1:]), COUNT])

    def test_as_many(self) -> None:
        """There are about as many as were asked for, and one where the export is short."""
        self.assertGreater(len(export_legs(self.path, self.exporting, 1)), 6)
        self.assertEqual(len(export_legs(self.path, self.exporting, 3)), 3)
        self.assertEqual(len(export_legs(self.path, self.exporting)), 1)

    def test_onward(self) -> None:
        """From each of them the way leads to the end, and what is wrong there is found."""
        for leg in export_legs(self.path, self.exporting, 1):
            with self.path.open("rb") as file:
                self.assertEqual(tuple(chain.from_iterable(leg.onward(file, COUNT))), self.rows[leg.after - AFTER :])
            with self.path.open("rb") as file, self.assertRaises(NotAnExport):
                list(leg.onward(file, COUNT + 1))

    def test_no_seam(self) -> None:
        """Where no record begins no leg does."""
        self.write([*self.exporting.head("1"), *["no record\n"] * 50])
        self.assertEqual(len(export_legs(self.path, self.exporting, 1)), 1)
