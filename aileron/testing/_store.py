"""A real store and the signer of its record for tests, and proxies of parts that a test lets fail."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock
from twisted.python.components import proxyForInterface
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import GENESIS, CheckpointSigner, CommitObserver, KeyFile, payload_digest, seal
from aileron.base.json import JSON, utc
from aileron.base.unthreaded import UnthreadedPool, UnthreadedReactor
from aileron.model.audit import DAEMON, Event
from aileron.model.interfaces.authority import IControl, IRecordKeys
from aileron.model.interfaces.store import IAudit, IRuns
from aileron.store import Seals, Store, Threads, Tuning, make_store

_numbers = count(1)
_fresh: list[bytes] = []
"""The file that a store makes where there is none; the steps of the schema, each kept durably, take milliseconds."""


class RunsProxy(proxyForInterface(IRuns)):  # type: ignore[misc]
    """Passes each call on to the C{original} runs; a subclass overrides what is to go wrong."""


class AuditProxy(proxyForInterface(IAudit)):  # type: ignore[misc]
    """Passes each call on to the C{original} record; a subclass overrides what is to go wrong."""


def seals(observer: CommitObserver | None = None) -> Seals:
    """Return the real seals, with salts that count."""
    numbers = count(1)
    return Seals(GENESIS, seal, payload_digest, lambda: f"salt-{next(numbers)}", observer)


def memory_store(
    case: SynchronousTestCase,
    clock: IReactorTime | None = None,
    path: Path | None = None,
    threads: Threads = UnthreadedPool,
    observer: CommitObserver | None = None,
) -> Store:
    """Return an open store whose Deferreds fire before the call returns; C{case} closes it at its end.

    :param path: an existing file to open again, or where to make one; by default a fresh temporary one.
    :param observer: who looks on while events are kept.
    :param threads: C{lambda *_: pool} with an L{UnthreadedPool} of yours, to hold back what is read and written.
    """
    path = path or Path(case.mktemp())
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    if is_new and _fresh:
        _write_private(path, _fresh[0])
    store = unopened_store(path, clock, threads, observer=observer)
    case.successResultOf(Deferred.fromCoroutine(store.open()))
    case.addCleanup(lambda: case.successResultOf(Deferred.fromCoroutine(store.close())))
    if is_new and not _fresh:
        _fresh.append(path.read_bytes())
    return store


def _write_private(path: Path, data: bytes) -> None:
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(data)


def unopened_store(
    path: Path,
    clock: IReactorTime | None = None,
    threads: Threads = UnthreadedPool,
    tuning: Tuning | None = None,
    observer: CommitObserver | None = None,
) -> Store:
    """Return a store on C{path} for tests; by default it neither waits for locks nor for the disk."""
    tuning = tuning or Tuning(busy_seconds=0, durable=False)
    return make_store(path, UnthreadedReactor(), clock or Clock(), seals(observer), tuning, threads)


def example_signer(
    store: Store, keys: IRecordKeys, control: IControl, clock: IReactorTime, observer: CommitObserver | None = None
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
