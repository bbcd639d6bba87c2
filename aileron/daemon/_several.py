"""Runs one daemon among several on one database: its lease, runs of daemons that are gone, and others' notices."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.life import Life
from aileron.model.errors import AileronError, StoreUnavailable
from aileron.model.vault import VaultState
from aileron.runner import Runner
from aileron.store import Decided, News, SharedStore, Store
from aileron.vault import Vault

_BEATS = 3
"""How often a lease is renewed while it lasts."""

_OF_VAULT = frozenset({"pause.begun"})
"""The type of an event that may tell of a change of the vault."""

_log = Logger()


@define(eq=False)
class Company:
    """Renews this daemon's lease, takes the runs of daemons that are gone, and reads what the others changed.

    :param reactor: the reactor.
    """

    _reactor: Any
    _store: Store
    _shared: SharedStore
    _vault: Vault
    _runner: Runner | None = field(default=None, init=False)
    _in_touch_since: float | None = field(default=None, init=False)
    _waiting: News | None = field(default=None, init=False)  # news that arrived while earlier news was being read
    _reading: bool = field(default=False, init=False)
    _beating: bool = field(default=False, init=False)
    _leaves: bool = field(default=False, init=False)

    async def join(self, life: Life) -> None:
        """Use the shared vault, and begin the lease. Call before the runner is built, so that the runner stops first.

        :raises StoreUnavailable, VaultLocked, VaultDamaged: if the database or its vault cannot be used.
        """
        self._vault.share(self._shared.vaults, self._shared.renewal_turns)
        daemons = self._shared.daemons
        await daemons.join()
        life.at_end(self._leave)
        life.repeat(self._reactor, daemons.seconds / _BEATS, self.beat, to_its_end=True)
        _log.info("this daemon is {id} of several on one database", id=daemons.id)

    def listen(self, runner: Runner, life: Life) -> None:
        """Start reading the changes of other daemons and taking their runs. Call after the runner has started."""
        self._runner = runner
        daemons, listener = self._shared.daemons, self._shared.listener
        daemons.known, daemons.catch_up = self._decided, self._catch_up
        listener.heard = self._hear
        listener.start()
        life.at_end(listener.stop)

    def _decided(self) -> Decided | None:
        """Return what the operator decided, as this daemon knows it. Called in the writer's thread."""
        vault, authority = self._vault.authority()
        return None if self._runner is None else Decided(vault, authority, *self._runner.known_pauses())

    async def _catch_up(self) -> None:
        self._refresh_vault()
        if self._runner is not None:
            await self._runner.load_recorded(_OF_VAULT, ())
            self._runner.check_changes()

    async def hand_over(self, kept: Collection[str]) -> None:
        """Leave all runs that have not begun to the others, and take no more of theirs. The lease goes on.

        If the database cannot be written, the others take them when the lease is over.

        :param kept: the ids of runs that this daemon still works on.
        """
        self._leaves = True
        daemons = self._shared.daemons
        try:
            await daemons.hand_over(kept)
        except StoreUnavailable as error:
            _log.warn("the others take this daemon's runs later: {why}", why=error.message)

    async def beat(self) -> None:
        """Renew the lease. If renewing has not failed for as long as a lease lasts, take the runs of ended leases.

        So after an outage of the database, each daemon has the time of a lease to renew its own. If an earlier call is
        under way, do nothing.
        """
        if self._beating:
            return
        self._beating = True
        try:
            await self._beat()
        finally:
            self._beating = False

    async def _beat(self) -> None:
        daemons = self._shared.daemons
        try:
            if not await daemons.renew():
                _log.warn("this daemon was silent for too long: others have taken its runs")
                await daemons.join()
                self._in_touch_since = None
            now = time.monotonic()
            self._in_touch_since = now if self._in_touch_since is None else self._in_touch_since
            if self._runner is not None and now - self._in_touch_since >= daemons.seconds and self._may_act():
                await self._runner.take_over(await daemons.take_left())
        except StoreUnavailable as error:
            self._in_touch_since = None
            _log.warn("the lease of this daemon cannot be renewed: {why}", why=error.message)

    def _may_act(self) -> bool:
        return not self._leaves and self._vault.state() is VaultState.UNLOCKED

    async def _leave(self) -> None:
        daemons = self._shared.daemons
        try:
            await daemons.leave()
        except StoreUnavailable as error:
            _log.warn("the lease of this daemon ends by itself: {why}", why=error.message)

    def _hear(self, news: News) -> None:
        self._store.wake()
        if news.vault:
            self._refresh_vault()
        if news.left and not self._leaves:
            Deferred.fromCoroutine(self.beat()).addErrback(_log_failure)
        self._waiting = news if self._waiting is None else self._waiting.plus(news)
        if not self._reading:
            self._reading = True
            Deferred.fromCoroutine(self._read_news()).addErrback(_log_failure)

    def _refresh_vault(self) -> None:
        try:
            if self._vault.refresh() and self._runner is not None:
                self._runner.check_changes()
        except AileronError as error:
            _log.error("the vault in the database cannot be used: {why}", why=error.message)

    async def _read_news(self) -> None:
        try:
            while self._waiting is not None and self._runner is not None:
                news, self._waiting = self._waiting, None
                types = news.types
                if news.vault and types is not None:
                    types |= _OF_VAULT
                await self._runner.load_recorded(types, news.runs)
        except StoreUnavailable as error:
            _log.warn("news of other daemons cannot be read: {why}", why=error.message)
        finally:
            self._reading = False


def _log_failure(failure: Failure) -> None:
    _log.failure("reading news of other daemons", failure)
