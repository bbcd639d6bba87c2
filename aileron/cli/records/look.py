"""Verifies a record that lies in a file: a database or an export."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

from aileron.audit.verify import BEFORE_ALL, NotAnExport, Verification, read_export
from aileron.cli._errors import CommandError
from aileron.errors import InvalidRequest
from aileron.store.copy import is_database, opened
from aileron.values import Checkpoint, Row, Verdict


@frozen
class Evidence:
    """The evidence that a record is held against.

    :ivar keys: the public keys, or their fingerprints, by which its checkpoints must be signed; none: any may sign.
    :ivar anchored: checkpoints that were kept elsewhere.
    :ivar sealed: further pairs of sequence and hash that a database must reach, and who says so.
    """

    keys: Collection[str] = ()
    anchored: Sequence[Checkpoint] = ()
    sealed: Mapping[str, tuple[int, str]] = field(factory=dict)


def look_at(path: Path, evidence: Evidence | None = None) -> Verdict:
    """Verify the record at C{path}.

    :raises CommandError: it is no record.
    """
    look = _at_database if is_database(path) else _at_export
    return look(path, evidence or Evidence())


def _at_database(path: Path, evidence: Evidence) -> Verdict:
    with opened(path) as copy:
        verification = Verification(copy.checkpoints(), evidence.anchored, evidence.sealed, evidence.keys)
        try:
            return _to_the_end(verification, copy.rows(BEFORE_ALL))
        except InvalidRequest as error:
            return verification.end(error.message.rstrip("."))


def _at_export(path: Path, evidence: Evidence) -> Verdict:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        try:
            export = read_export(file)
        except NotAnExport as error:
            raise CommandError(
                f"{path} is neither a database nor an export: {error}.", "Make one: aileron audit export >FILE"
            ) from None
        part = export.exported
        # What the anchor tells of records that are not in this part says nothing about it.
        within = [each for each in evidence.anchored if part.after <= each.sequence <= part.until]
        verification = Verification(part.checkpoints, within, {}, evidence.keys, part.after, part.previous)
        try:
            return _to_the_end(verification, export.rows)
        except NotAnExport as error:
            return verification.end(str(error))


def _to_the_end(verification: Verification, slices: Iterator[Sequence[Row]]) -> Verdict:
    for rows in slices:
        verification.feed(rows)
        if not verification.going:
            break
    return verification.end()
