"""Web Push as a feature that runs in the daemon."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from attrs import frozen

from aileron.base.addresses import is_lasting, read_origin
from aileron.connectors import system_transport
from aileron.features.core import Core, ListeningSites
from aileron.features.feature import RunningFeature
from aileron.model.vault import Scope

from ._browsers import PushBrowsers
from ._delivery import BrowserDelivery
from ._notifier import PendingCounter, PushNotifier
from ._sender import PushSender
from .values import SCOPE

if TYPE_CHECKING:
    from aileron.api import Dependencies

UNAVAILABLE = (
    "These pages have a new address at each start of the daemon, and a browser is notified for one address only. To "
    "keep the address, set operator_host to localhost in config.yaml."
)


@frozen
class _PushScope:
    """The scope of this feature's entries in the vault, in the form in which features name scopes."""

    def scope(self) -> Scope:
        """Return the scope that the entries were encrypted for."""
        return SCOPE


@frozen(eq=False)
class RunningPush(RunningFeature):
    """The running notifier and the registered browsers."""

    browsers: PushBrowsers
    notifier: PushNotifier

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that the feature's routes and pages look up by class: only this one."""
        return (self,)

    async def serve(self, sites: ListeningSites) -> None:
        await self.notifier.start()

    def find_scope(self, name: str) -> _PushScope | None:
        return _PushScope() if self.browsers.is_bound(name) else None


def explain_unavailable(pages: str) -> str | None:
    """Return why no browser can be registered by pages of this origin, or None if one can be."""
    return None if is_lasting(read_origin(pages)) else UNAVAILABLE


def find_pages(deps: Dependencies) -> str:
    """Return the origin of the pages that a request comes from: those on the computer, or the phone's."""
    return read_origin(deps.review_url("")).url


def start_push(core: Core) -> RunningPush:
    """Build the notifier. It sends nothing before both sites listen."""
    store, process = core.store, core.process
    clock = process.reactor
    deliveries: dict[str, BrowserDelivery] = {}
    browsers = PushBrowsers(core.vault, store.audit, clock, process.ids, deliveries, core.vault.passkeys)
    sender = PushSender(
        post=system_transport(clock, lambda: process.own_ports).send,
        clock=clock,
        randomness=secrets.token_bytes,
    )
    notifier = PushNotifier(
        audit=store.audit,
        watermarks=store.watermarks,
        counter=PendingCounter(store.runs, store.snoozes.all, clock),
        browsers=browsers,
        sender=sender,
        deliveries=deliveries,
        clock=clock,
        leads=lambda: store.leads,
    )
    process.life.at_end(notifier.stop)
    return RunningPush(browsers, notifier)
