"""Verifies, at an unlock, the records that were written while the vault was locked."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from aileron.model.audit import Break, LockedPeriod, Maced

from ._chain import GENESIS
from ._commit_observer import mac_of
from ._key_file import EvolvingKey
from ._record_reader import RecordArchive
from .verify import Verification

_SLICE = 500
_GONE = "The key of the record that goes on while the vault is locked is gone, or another's: what was written then"


async def find_wrong(archive: RecordArchive, known: Sequence[LockedPeriod], state: EvolvingKey | None) -> Break | None:
    """Return the first fault in the records of the locked period, or None if there is none or no period is known.

    :param known: the locked period issued last, preceded by the earlier one if that one may still be in use.
    :param state: the key in the file, or None.
    :raises StoreUnavailable: if the database fails.
    """
    if not known:
        return None
    period = next((each for each in known if state is not None and state.period == each.id), None)
    if period is None or state is None:
        return Break("removed", await _find_first(archive, known) or 0, f"{_GONE} cannot be told from what was put in.")
    first = await archive.first_of(period.id)
    reached = EvolvingKey(period.id, 0, period.key)
    if first is not None:
        wrong = await _find_altered(archive, first)
        if wrong is not None:
            return wrong
        found = await _check_along(archive, first, reached)
        if isinstance(found, Break):
            return found
        reached = found
    return _left(reached, state, EvolvingKey(period.id, 0, period.key))


async def _find_first(archive: RecordArchive, known: Sequence[LockedPeriod]) -> int | None:
    firsts = [await archive.first_of(each.id) for each in known]
    return min((each for each in firsts if each is not None), default=None)


async def _find_altered(archive: RecordArchive, first: int) -> Break | None:
    """Return the first fault in the hash chain from record C{first} on, or None if there is none.

    :raises StoreUnavailable: if the database fails.
    """
    before = await archive.rows(first - 2, 1) if first > 1 else ()
    previous = before[0][13] if before else GENESIS
    verification = Verification((), after=first - 1, previous=previous)
    after = first - 1
    while verification.going and (rows := await archive.rows(after, _SLICE)):
        verification.feed(rows)
        after = rows[-1][0]
    return verification.end().broken


async def _check_along(archive: RecordArchive, first: int, state: EvolvingKey) -> Break | EvolvingKey:
    """Verify the MAC of each record from C{first} on. Return the first fault, or the key after the last record.

    :raises StoreUnavailable: if the database fails.
    """
    after = first - 1
    while records := await archive.macs(after, _SLICE):
        for record in records:
            if not _holds(record, state):
                return Break("altered", record.sequence, _why(record))
            state = state.advance(1)
        after = records[-1].sequence
    return state


def _holds(record: Maced, state: EvolvingKey) -> bool:
    if record.period != state.period or record.mac is None:
        return False
    return hmac.compare_digest(record.mac, mac_of(state, record.hash))


def _why(record: Maced) -> str:
    if record.mac is None:
        return f"Record {record.sequence} was put in while the vault was locked: it has no MAC."
    return f"Record {record.sequence} was altered, or put in, while the vault was locked: its MAC does not hold."


def _left(reached: EvolvingKey, state: EvolvingKey, first: EvolvingKey) -> Break | None:
    """Compare the key in the file with the keys of the period, and return a fault or None.

    It is a fault if the key is ahead of the records or is not of this period. After a crash the file may be behind.

    :param reached: the key after the last record.
    :param state: the key in the file.
    :param first: the key of the period's first record.
    """
    if state.index > reached.index:
        gone = state.index - reached.index
        return Break("truncated", 0, f"{gone} records that were written last, while the vault was locked, are gone.")
    if not hmac.compare_digest(first.advance(state.index).key, state.key):
        return Break("removed", 0, f"{_GONE} cannot be told from what was put in.")
    return None
