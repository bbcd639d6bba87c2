"""The notifier, with what of the daemon it works with."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from aileron.interfaces import IStore
from aileron.notices import MessageComposer, Notifier, build_channels
from aileron.values import NoticeSettings
from aileron.vault import Vault

from ._ids import fresh_ids
from ._threads import in_thread


def make_notifier(
    reactor: Any, settings: NoticeSettings, store: IStore, vault: Vault, operator_url: Callable[[], str]
) -> Notifier:
    """Build the notifier; it tells once it is started."""
    composer = MessageComposer(
        runs=store.runs,
        sessions=store.sessions,
        vault=vault,
        clock=reactor,
        ids=fresh_ids(reactor),
        operator_url=operator_url,
        contents=settings.contents,
    )
    channels = build_channels(
        settings, bindings=vault, reactor=reactor, in_thread=in_thread(reactor), environ=os.environ
    )
    return Notifier(audit=store.audit, watermarks=store.watermarks, composer=composer, clock=reactor, channels=channels)
