"""An export in legs: stretches of its lines, each of which begins with a record."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import BinaryIO

from attrs import frozen

from aileron.values import Row

from ._export import Exporting, NotAnExport, record, rows_to_end, sliced
from ._legs import LEG, seams

_LINES_BEFORE = 1
"""The header; the checkpoints follow it, and then the records."""


@frozen
class ExportLeg:
    """Some lines of one file, each a record.

    :ivar after: the sequence of the record before the first.
    :ivar until: that of the last, as the next leg says.
    :ivar begin: where in the file the first line begins, in bytes.
    :ivar end: where the one behind the last begins.
    """

    path: Path
    after: int
    until: int
    begin: int
    end: int

    def rows(self) -> Iterator[list[Row]]:
        """The records in slices; opens the file anew.

        :raises NotAnExport: a line is no record, or the file cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                yield from sliced(map(record, _lines(file, self.begin, self.end)))
        except OSError as error:
            raise NotAnExport("it cannot be read") from error

    def onward(self, file: BinaryIO, until: int) -> Iterator[list[Row]]:
        """All records from the first of this leg to the end of the export, in slices.

        :param until: the sequence of its last record.
        :raises NotAnExport: as L{Export.rows} does.
        """
        file.seek(self.begin)
        return sliced(rows_to_end(export_lines(file), self.after, until))


def export_lines(file: BinaryIO) -> Iterator[str]:
    """The lines of an export; what is no UTF-8 in it will not hold."""
    return (line.decode("utf-8", "replace") for line in file)


def export_legs(path: Path, exported: Exporting, length: int = LEG) -> tuple[ExportLeg, ...]:
    """The records of an export in legs.  The last one, and where there is but one also the first, has the end in it.

    :param length: about how many records make one.
    :raises OSError: the file cannot be read.
    """
    cuts = max(0, len(seams(exported.until - exported.after, length)) - 1)
    with path.open("rb") as file:
        first = sum(len(line) for line in islice(file, _LINES_BEFORE + len(exported.checkpoints)))
        size = file.seek(0, os.SEEK_END)
        places = [first + (size - first) * each // (cuts + 1) for each in range(1, cuts + 1)]
        found = {first: exported.after, **dict(filter(None, (_seam(file, place) for place in places)))}
    ends = [*sorted(found.items()), (size, exported.until)]
    return tuple(ExportLeg(path, after, until, begin, end) for (begin, after), (end, until) in pairwise(ends))


def _seam(file: BinaryIO, place: int) -> tuple[int, int] | None:
    """Where the first record behind C{place} begins, and the sequence of the one before it."""
    file.seek(place)
    begin = place + len(file.readline())
    try:
        sequence = record(file.readline().decode("utf-8", "replace"))[0]
    except NotAnExport:
        return None
    return (begin, sequence - 1) if type(sequence) is int else None


def _lines(file: BinaryIO, begin: int, end: int) -> Iterator[str]:
    file.seek(begin)
    while begin < end and (line := file.readline()):
        begin += len(line)
        yield line.decode("utf-8", "replace")
