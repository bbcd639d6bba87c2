"""The gateway, with what of the daemon it works with."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import frozen

from aileron.interfaces import IStore, ITotals
from aileron.values import GatewaySettings, RelayedPath
from aileron.vault import Vault

from ._ids import fresh_ids

if TYPE_CHECKING:
    from aileron.gateway import Gateway

_PAUSE_SECONDS = 0.004
"""Between two answers that are read for their tokens: so that many cannot keep the daemon from relaying."""


@frozen
class Relay:
    """What takes requests, what counted them, and what tells which are taken."""

    gateway: Gateway
    totals: ITotals
    published: Callable[[], Sequence[RelayedPath]]


def make_relay(reactor: Any, settings: GatewaySettings, store: IStore, vault: Vault) -> Relay:
    """The gateway; it takes requests once it is opened."""
    from aileron.gateway import Parts, Tally, build, published

    tally = Tally(time.perf_counter, partial(reactor.callLater, _PAUSE_SECONDS), settings.accounting)
    parts = Parts(store.sessions, vault, vault, store.flags, tally, fresh_ids(reactor))
    return Relay(build(settings, reactor, parts), tally, partial(published, settings))
