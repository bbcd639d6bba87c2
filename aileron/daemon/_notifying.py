"""The notifier, with what of the daemon it works with."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from aileron.notices import Collaborators, Notifier, build
from aileron.store import Store
from aileron.values import NoticeSettings
from aileron.vault import VaultFile

from ._ids import fresh_ids
from ._threads import in_thread


def make_notifier(
    reactor: Any, settings: NoticeSettings, store: Store, vault: VaultFile, operator_url: Callable[[], str]
) -> Notifier:
    """The notifier; it tells once it is started."""
    return build(
        settings,
        Collaborators(
            audit=store.audit,
            runs=store.runs,
            sessions=store.sessions,
            watermarks=store.watermarks,
            vault=vault,
            bindings=vault,
            reactor=reactor,
            in_thread=in_thread(reactor),
            ids=fresh_ids(reactor),
            operator_url=operator_url,
            environ=os.environ,
        ),
    )
