"""Who answers for a record, for other rooms' tests: the real one, over memory."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from twisted.internet.interfaces import IReactorTime

from aileron.audit import KeyFile, Notary, Witness
from aileron.interfaces import IControl, IRecordKeys
from aileron.store import Store
from aileron.values import DAEMON, JSON, Event, utc

_numbers = count(1)


def example_notary(
    store: Store, keys: IRecordKeys, control: IControl, clock: IReactorTime, witness: Witness | None = None
) -> Notary:
    """One that has not taken over yet; without a C{witness} nothing is sealed while the vault is locked."""

    def write(type_: str, **payload: JSON) -> Event:
        return Event(f"notary-{next(_numbers):06}", type_, utc(clock.seconds()), DAEMON, payload)

    return Notary(
        audit=store.audit,
        archive=store.archive,
        keys=keys,
        control=control,
        witness=witness or Witness(KeyFile(Path("/dev/null"))),
        clock=clock,
        write=write,
        randomness=lambda size: next(_numbers).to_bytes(size, "big"),
    )
