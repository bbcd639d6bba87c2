"""Verifies an audit record in a file: a database or an export."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from aileron.audit.verify import BEFORE_ALL, NotAnExport, Verification, read_export
from aileron.cli.errors import CommandError
from aileron.cli.output import progress
from aileron.model.audit import Checkpoint, Row, Verdict
from aileron.model.errors import InvalidRequest
from aileron.store.copy import Copy, is_database, open_copy


def look_at(
    path: Path,
    keys: Collection[str] = (),
    anchored: Sequence[Checkpoint] = (),
    sealed: Mapping[str, tuple[int, str]] = MappingProxyType({}),
) -> Verdict:
    """Verify the record at C{path}.

    :param keys: the public keys or fingerprints that must sign its checkpoints; empty accepts any key.
    :param anchored: checkpoints stored elsewhere.
    :param sealed: further pairs of sequence number and hash that a database must reach, by their source.
    :raises CommandError: if the file is not an audit record.
    """
    if not is_database(path):
        return _look_at_export(path, keys, anchored)
    with open_copy(path) as copy:
        return look_at_copy(copy, keys, anchored, sealed)


def look_at_copy(
    copy: Copy,
    keys: Collection[str] = (),
    anchored: Sequence[Checkpoint] = (),
    sealed: Mapping[str, tuple[int, str]] = MappingProxyType({}),
) -> Verdict:
    """Verify the record in an open database. See L{look_at}."""
    verification = Verification(copy.checkpoints(), anchored, sealed, keys)
    try:
        return _to_the_end(verification, copy.rows(BEFORE_ALL), (copy.head() or (0, ""))[0])
    except InvalidRequest as error:
        return verification.end(error.message.rstrip("."))


def _look_at_export(path: Path, keys: Collection[str], anchored: Sequence[Checkpoint]) -> Verdict:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        try:
            export = read_export(file)
        except NotAnExport as error:
            raise CommandError(
                f"{path} is neither a database nor an export: {error}.", "Create an export: aileron audit export >FILE"
            ) from None
        part = export.exported
        # An anchor's checkpoints of events outside this part do not concern it.
        within = [each for each in anchored if part.after <= each.sequence <= part.until]
        verification = Verification(part.checkpoints, within, {}, keys, part.after, part.previous)
        try:
            return _to_the_end(verification, export.rows, part.until)
        except NotAnExport as error:
            return verification.end(str(error))


def _to_the_end(verification: Verification, slices: Iterator[Sequence[Row]], last: int) -> Verdict:
    with progress("Verifying the audit log", last, lambda: verification.reached):
        for rows in slices:
            verification.feed(rows)
            if not verification.going:
                break
        return verification.end()
