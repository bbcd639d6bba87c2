"""One look along a record in a file, shared among processes where it is long."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

from aileron.audit.verify import (
    BEFORE_ALL,
    LEG,
    HelperLost,
    NotAnExport,
    Verification,
    export_legs,
    export_lines,
    processes_at_hand,
    read_export,
    seams,
)
from aileron.cli._errors import CommandError
from aileron.errors import InvalidRequest
from aileron.store.copy import is_database, opened
from aileron.values import Checkpoint, Row, Verdict


@frozen
class Evidence:
    """What a record is held against.

    :ivar keys: the public keys, or their fingerprints, by which its checkpoints must be signed; none: any may sign.
    :ivar anchored: checkpoints that were kept elsewhere.
    :ivar sealed: further pairs of sequence and hash that a database must reach, and who says so.
    """

    keys: Collection[str] = ()
    anchored: Sequence[Checkpoint] = ()
    sealed: Mapping[str, tuple[int, str]] = field(factory=dict)


def look_at(path: Path, evidence: Evidence | None = None, *, processes: int | None = None, leg: int = LEG) -> Verdict:
    """What a look along the record at C{path} finds.

    :param processes: how many look; L{None}: as many as fit this machine.
    :param leg: how many records one of them takes at a time.
    :raises CommandError: it is no record, or the look could not be finished.
    """
    look = _at_database if is_database(path) else _at_export
    try:
        return look(path, evidence or Evidence(), processes or processes_at_hand(), leg)
    except HelperLost:
        why = "A process that looked at a part of the record was ended, so nothing is known of the whole."
        raise CommandError(why, "Try again, perhaps with --processes 1, which needs less memory.") from None


def _at_database(path: Path, evidence: Evidence, processes: int, leg: int) -> Verdict:
    with opened(path) as copy:
        verification = Verification(copy.checkpoints(), evidence.anchored, evidence.sealed, evidence.keys)
        try:
            for rows in copy.rows(BEFORE_ALL, 0):
                verification.feed(rows)
            last = copy.last()
            verification.hurry(copy.legs(seams(last, leg), last), processes)
            return _to_the_end(verification, copy.rows(verification.reached))
        except InvalidRequest as error:
            return verification.end(error.message.rstrip("."))


def _at_export(path: Path, evidence: Evidence, processes: int, leg: int) -> Verdict:
    with path.open("rb") as file:
        try:
            part = read_export(export_lines(file)).exported
        except NotAnExport as error:
            raise CommandError(
                f"{path} is neither a database nor an export: {error}.", "Make one: aileron audit export >FILE"
            ) from None
        # What the anchor tells of records that are not in this part says nothing about it.
        within = [each for each in evidence.anchored if part.after <= each.sequence <= part.until]
        verification = Verification(part.checkpoints, within, {}, evidence.keys, part.after, part.previous)
        legs = export_legs(path, part, leg)
        held = verification.hurry(legs[:-1], processes)
        try:
            return _to_the_end(verification, legs[held].onward(file, part.until))
        except NotAnExport as error:
            return verification.end(str(error))


def _to_the_end(verification: Verification, slices: Iterator[Sequence[Row]]) -> Verdict:
    for rows in slices:
        verification.feed(rows)
        if not verification.going:
            break
    return verification.end()
