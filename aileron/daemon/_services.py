"""Builds the services that the two sites hand out: the gateway, MCP over HTTP, and the notifier."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import frozen

from aileron.interfaces import IStore, ITotals
from aileron.notices import MessageComposer, Notifier, build_channels
from aileron.values import GatewaySettings, McpSettings, NoticeSettings, RelayedPath
from aileron.vault import Vault

from ._process import fresh_ids, in_thread

if TYPE_CHECKING:
    from aileron.gateway import Gateway
    from aileron.mcp import HttpEndpoint

_PAUSE_SECONDS = 0.004
"""Between two answers that are read for their tokens: so that many cannot keep the daemon from relaying."""


@frozen
class Relay:
    """The gateway, the totals of what it relayed, and what tells which paths it takes."""

    gateway: Gateway
    totals: ITotals
    published: Callable[[], Sequence[RelayedPath]]


def make_relay(reactor: Any, settings: GatewaySettings, store: IStore, vault: Vault) -> Relay:
    """Build the gateway; it takes requests once it is opened."""
    from aileron.gateway import Tally, build, published

    tally = Tally(time.perf_counter, partial(reactor.callLater, _PAUSE_SECONDS), settings.accounting)
    gateway = build(
        settings,
        reactor,
        sessions=store.sessions,
        vault=vault,
        bindings=vault,
        flags=store.flags,
        meters=tally,
        ids=fresh_ids(reactor),
    )
    return Relay(gateway, tally, partial(published, settings))


def make_mcp(reactor: Any, settings: McpSettings) -> HttpEndpoint | None:
    """Build what serves MCP over HTTP; L{None}: it is not wanted, and nothing was loaded for it."""
    if not settings.http:
        return None
    from aileron.mcp import over_http

    return over_http(reactor, settings)


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
