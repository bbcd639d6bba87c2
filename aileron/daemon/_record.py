"""The audit log while this daemon runs: its signer, the anchors of its checkpoints, and the deletion of old contents.

An anchor is a file or an address to which the operator has checkpoints delivered. No agent acts through it, and no
other work waits for it.
"""

from __future__ import annotations

import json
import os
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from aileron.audit import CheckpointSigner, CommitObserver, Retention
from aileron.base.converter import to_json
from aileron.base.json import JSON, utc
from aileron.base.life import Life
from aileron.base.posting import post
from aileron.model.audit import DAEMON, Checkpoint, Event
from aileron.model.failures import log_failure
from aileron.model.vault import Binding
from aileron.store import Store
from aileron.vault import Vault

from ._config import AuditSettings
from ._process import fresh_ids, in_thread

_LOOK_SECONDS = 1.0
_DAY_SECONDS = 86400.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0
_MOST_WAITING = 1000
_log = Logger()

Deliver = Callable[[bytes], Awaitable[None]]
"""A function that stores one line, or raises."""


async def take_over(
    reactor: Any, settings: AuditSettings, store: Store, vault: Vault, observer: CommitObserver, life: Life
) -> CheckpointSigner:
    """Continue the audit log of the previous process, and return its signer. Call before this process records events.

    :raises StoreUnavailable: if the log or the vault cannot be read or written.
    """
    anchors = _anchors(reactor, settings)
    signer = CheckpointSigner(
        audit=store.audit,
        archive=store.archive,
        keys=vault.record_keys,
        control=vault,
        observer=observer,
        clock=reactor,
        write=_event_writer(reactor),
        randomness=secrets.token_bytes,
    )
    signer.anchors = [anchor.queue_checkpoint for anchor in anchors]
    for anchor in anchors:
        life.at_end(anchor.stop)
    life.at_end(signer.close)
    await signer.open(vault.ever_unlocked())
    return signer


async def start_recording(
    reactor: Any, settings: AuditSettings, store: Store, vault: Vault, signer: CheckpointSigner, life: Life
) -> None:
    """Record that the daemon has started, and schedule the signing of checkpoints and the deletion of old contents.

    Call when every part has started.

    :raises StoreUnavailable, VaultLocked, BindingFailed: if the event or its checkpoint cannot be stored.
    """
    await signer.record_unlock()
    telling = vault.locked().addCallback(lambda _: Deferred.fromCoroutine(signer.record_lock()))
    telling.addErrback(lambda failure: log_failure(_log, "recording that the vault is locked", failure))
    life.repeat(reactor, _LOOK_SECONDS, signer.sign_if_due)
    days = settings.keep_payloads_days
    if days is not None:
        retention = Retention(store.audit, store.archive, reactor, _event_writer(reactor), days)
        life.repeat(reactor, _DAY_SECONDS, retention.prune, now=True)


def report_needs(reactor: Any, store: Store) -> Callable[[Binding, str], None]:
    """Return a function that records that a person must renew a credential. The operator is notified of such events."""
    ids = fresh_ids(reactor)

    def report(binding: Binding, reason: str) -> None:
        why = f"{binding.name}: {reason}"
        payload: dict[str, JSON] = {"binding": binding.name, "revision": binding.revision, "reason": why}
        event = Event(ids(), "binding.needs_you", utc(reactor.seconds()), DAEMON, payload, connector=binding.connector)
        _record(store, event)

    return report


def report_strays(reactor: Any, store: Store) -> Callable[[str], None]:
    """Return a function that records that a local MCP server sent an API request between two calls and was refused."""
    write = _event_writer(reactor)
    return lambda fqn: _record(store, evolve(write("api.refused"), connector=fqn))


def _record(store: Store, event: Event) -> None:
    """Write an event of something that has already happened to the audit log. A failure is logged."""
    recording = Deferred.fromCoroutine(store.audit.append(event))  # the store waits for this task when it closes
    recording.addErrback(lambda why: log_failure(_log, "recording {type}", why, type=event.type))


def _anchors(reactor: Any, settings: AuditSettings) -> list[Anchor]:
    found = []
    if settings.anchor_file is not None:
        found.append(file_anchor(settings.anchor_file, reactor, in_thread(reactor)))
    if settings.anchor_webhook is not None:
        found.append(web_anchor(settings.anchor_webhook, reactor))
    return found


def _event_writer(reactor: Any) -> Callable[..., Event]:
    ids = fresh_ids(reactor)

    def write(type_: str, **payload: JSON) -> Event:
        return Event(ids(), type_, utc(reactor.seconds()), DAEMON, payload)

    return write


@define(eq=False)
class Anchor:
    """A queue that delivers checkpoints in order and retries each one until it is stored.

    If too many wait, the oldest are dropped: each checkpoint covers all before it.

    :param name: the name of the anchor in the log.
    """

    name: str
    _deliver: Deliver
    _clock: IReactorTime
    _waiting: deque[bytes] = field(factory=lambda: deque(maxlen=_MOST_WAITING), init=False)
    _delivering: Deferred[None] | None = field(default=None, init=False)
    _busy: bool = field(default=False, init=False)
    _stopped: bool = field(default=False, init=False)

    def queue_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Queue a checkpoint for delivery. A failure is logged and retried."""
        self._waiting.append((json.dumps(to_json(checkpoint)) + "\n").encode("ascii"))
        if not self._busy and not self._stopped:
            self._busy = True
            self._delivering = Deferred.fromCoroutine(self._deliver_all())
            self._delivering.addErrback(self._end)

    def stop(self) -> None:
        """Stop delivering checkpoints, and cancel a delivery in progress."""
        self._stopped = True
        if self._delivering is not None:
            self._delivering.cancel()

    def _end(self, failure: Any) -> None:
        if not failure.check(CancelledError):
            _log.failure("the anchor {name} has stopped", failure, name=self.name)

    async def _deliver_all(self) -> None:
        try:
            while self._waiting and not self._stopped:
                await self._insist()
        finally:
            self._busy = False

    async def _insist(self) -> None:
        """Deliver the first checkpoint of the queue. Retry until it is stored or the anchor is stopped.

        Failures are logged. The queue may change between retries.
        """
        pause = _FIRST_PAUSE
        while True:
            line = self._waiting[0]
            try:
                await self._deliver(line)
            except Exception as error:  # noqa: BLE001 - any error of the anchor: delivery is retried
                if self._stopped:
                    return
                _log.warn("anchor {name} cannot be reached yet: {error}", name=self.name, error=type(error).__name__)
                await deferLater(self._clock, pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                if self._waiting and self._waiting[0] is line:
                    self._waiting.popleft()
                return


def file_anchor(path: Path, clock: IReactorTime, in_thread: Callable[..., Deferred[None]]) -> Anchor:
    """Return an anchor that appends each line durably to the file at C{path}.

    :param in_thread: calls a function in another thread, as the disk may be slow or absent.
    """

    async def deliver(line: bytes) -> None:
        await in_thread(_append, path, line)

    return Anchor("file", deliver, clock)


def web_anchor(url: str, clock: Any) -> Anchor:
    """Return an anchor that posts each line to C{url}. After any status but 2xx, the line is posted again.

    :param clock: the reactor.
    """

    async def deliver(line: bytes) -> None:
        status = await post(url, line, clock)
        if not 200 <= status < 300:
            raise OSError(status, "refused")

    return Anchor("webhook", deliver, clock)


def _append(path: Path, line: bytes) -> None:
    """Append one whole line.

    If an earlier attempt wrote an incomplete line, as on a full disk, the new line starts after a line end.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        end = os.fstat(descriptor).st_size
        torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
        left = b"\n" + line if torn else line
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
