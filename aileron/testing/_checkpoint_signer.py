"""Builds the signer of a record for tests: the real one, over memory."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from twisted.internet.interfaces import IReactorTime

from aileron.audit import CheckpointSigner, CommitObserver, KeyFile
from aileron.interfaces import IControl, IRecordKeys, IStore
from aileron.values import DAEMON, JSON, Event, utc

_numbers = count(1)


def example_signer(
    store: IStore, keys: IRecordKeys, control: IControl, clock: IReactorTime, observer: CommitObserver | None = None
) -> CheckpointSigner:
    """Build one that has not taken over yet; without a C{observer} nothing is sealed while the vault is locked."""

    def write(type_: str, **payload: JSON) -> Event:
        return Event(f"signed-{next(_numbers):06}", type_, utc(clock.seconds()), DAEMON, payload)

    return CheckpointSigner(
        audit=store.audit,
        archive=store.archive,
        keys=keys,
        control=control,
        observer=observer or CommitObserver(KeyFile(Path("/dev/null"))),
        clock=clock,
        write=write,
        randomness=lambda size: next(_numbers).to_bytes(size, "big"),
    )
