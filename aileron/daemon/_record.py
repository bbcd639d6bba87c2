"""The record of one life: who answers for it, where it is anchored, and what of it is deleted in time."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from aileron.audit import CheckpointSigner, CommitObserver, KeyFile, Retention
from aileron.home import Home
from aileron.interfaces import IStore
from aileron.values import DAEMON, JSON, Event, utc
from aileron.vault import Vault

from ._anchors import Anchor, file_anchor, web_anchor
from ._config import AuditSettings
from ._life import Life
from ._process import fresh_ids, in_thread

_LOOK_SECONDS = 1.0
_DAY_SECONDS = 86400.0
_log = Logger()


def make_observer(home: Home) -> CommitObserver:
    """Who looks on while events are kept."""
    return CommitObserver(KeyFile(home.audit_key))


async def take_over(
    reactor: Any, settings: AuditSettings, store: IStore, vault: Vault, observer: CommitObserver, life: Life
) -> CheckpointSigner:
    """Answer for the record from here on; nothing else of this life was put on it yet."""
    anchors = _anchors(reactor, settings)
    signer = CheckpointSigner(
        audit=store.audit,
        archive=store.archive,
        keys=vault.record_keys,
        control=vault,
        observer=observer,
        clock=reactor,
        write=_pen(reactor),
        randomness=secrets.token_bytes,
        anchors=anchors,
    )
    for anchor in anchors:
        life.at_end(anchor.stop)
    life.at_end(signer.close)
    await signer.open(vault.ever_unlocked())
    return signer


async def keep_on(
    reactor: Any, settings: AuditSettings, store: IStore, vault: Vault, signer: CheckpointSigner, life: Life
) -> None:
    """Everything else has started: say so on record, then sign and delete as time goes on."""
    await signer.tell_unlocked()
    telling = vault.locked().addCallback(lambda _: Deferred.fromCoroutine(signer.tell_locked()))
    telling.addErrback(lambda failure: _log.failure("recording that the vault is locked", failure))
    life.repeat(reactor, _LOOK_SECONDS, signer.sign_if_due)
    days = settings.keep_payloads_days
    if days is not None:
        retention = Retention(store.audit, store.archive, reactor, _pen(reactor), days)
        life.repeat(reactor, _DAY_SECONDS, retention.prune, now=True)


def _anchors(reactor: Any, settings: AuditSettings) -> list[Anchor]:
    found = []
    if settings.anchor_file is not None:
        found.append(file_anchor(settings.anchor_file, reactor, in_thread(reactor)))
    if settings.anchor_webhook is not None:
        found.append(web_anchor(settings.anchor_webhook, reactor))
    return found


def _pen(reactor: Any) -> Callable[..., Event]:
    ids = fresh_ids(reactor)

    def write(type_: str, **payload: JSON) -> Event:
        return Event(ids(), type_, utc(reactor.seconds()), DAEMON, payload)

    return write
