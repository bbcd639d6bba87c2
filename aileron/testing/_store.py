"""A real store and its checkpoint signer for tests, and proxies for simulating failures."""

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
from aileron.store import Seals, ServerAddress, Store, Threads, Tuning, make_store

_numbers = count(1)
_fresh: list[bytes] = []
"""The bytes of a new database, because creating one takes milliseconds for the schema's steps."""


class RunsProxy(proxyForInterface(IRuns)):  # type: ignore[misc]
    """A proxy of C{original} runs. Override methods to simulate failures."""


class AuditProxy(proxyForInterface(IAudit)):  # type: ignore[misc]
    """A proxy of an C{original} audit log. Override methods to simulate failures."""


def seals(observer: CommitObserver | None = None) -> Seals:
    """Return the functions that compute the hash chain in the daemon, but with numbered instead of random salts."""
    numbers = count(1)
    return Seals(GENESIS, seal, payload_digest, lambda: f"salt-{next(numbers)}", observer)


def memory_store(
    case: SynchronousTestCase,
    clock: IReactorTime | None = None,
    path: Path | None = None,
    threads: Threads = UnthreadedPool,
    observer: CommitObserver | None = None,
) -> Store:
    """Return an open store whose Deferreds fire before the call returns. C{case} closes it at its end.

    A case with a method C{place_of} uses the database that this returns for the path, instead of a file.

    :param path: the file to open or create, by default a new temporary one.
    :param observer: the observer of stored events.
    :param threads: C{lambda *_: pool} with your own L{UnthreadedPool}, to delay reads and writes.
    """
    path = path or Path(case.mktemp())
    place_of = getattr(case, "place_of", None)
    if place_of is not None:
        return _open(case, unopened_store(place_of(path), clock, threads, observer=observer))
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    if is_new and _fresh:
        _write_private(path, _fresh[0])
    store = _open(case, unopened_store(path, clock, threads, observer=observer))
    if is_new and not _fresh:
        _fresh.append(path.read_bytes())
    return store


def _open(case: SynchronousTestCase, store: Store) -> Store:
    case.successResultOf(Deferred.fromCoroutine(store.open()))
    case.addCleanup(lambda: case.successResultOf(Deferred.fromCoroutine(store.close())))
    return store


def _write_private(path: Path, data: bytes) -> None:
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(data)


def unopened_store(
    place: Path | ServerAddress,
    clock: IReactorTime | None = None,
    threads: Threads = UnthreadedPool,
    tuning: Tuning | None = None,
    observer: CommitObserver | None = None,
) -> Store:
    """Return a store for tests that is not open. By default it waits neither for locks nor for the disk."""
    tuning = tuning or Tuning(busy_seconds=0, durable=False)
    return make_store(place, UnthreadedReactor(), clock or Clock(), seals(observer), tuning, threads)


def example_signer(
    store: Store, keys: IRecordKeys, control: IControl, clock: IReactorTime, observer: CommitObserver | None = None
) -> CheckpointSigner:
    """Return a signer that is not open.  Without an C{observer}, records get no MACs while the vault is locked."""

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
