"""Renews a credential while no other daemon does, if several daemons share the vault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import define, field, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from aileron.credentials import TokenAnswer, TokenExchange, TokenRequest
from aileron.model.errors import NetworkError, StoreUnavailable

_LOOK_SECONDS, _WAIT_SECONDS = 0.5, 45.0

_log = Logger()


class SecretReplaced(Exception):
    """Raised if another daemon has stored another secret since this one was read. Nothing was sent."""


class RenewalTurn(Protocol):
    """The turn of this daemon to renew a credential, which no other daemon has at the same time."""

    def lasts(self) -> bool:
        """Return whether the turn cannot be over yet."""

    async def end(self) -> None:
        """End the turn.

        :raises StoreUnavailable: if that cannot be stored. The turn then ends by itself.
        """


class RenewalTurns(Protocol):
    """Lets one daemon at a time renew a credential."""

    async def take(self, credential: str) -> RenewalTurn | None:
        """Return the turn to renew a credential, or None if another daemon has it.

        :raises StoreUnavailable: if it cannot be stored.
        """


@frozen
class Sharing:
    """The objects by which credentials of a shared vault are renewed.

    :ivar refresh: reads what other daemons changed in the vault.
    """

    turns: RenewalTurns
    refresh: Callable[[], object]


@define(eq=False)
class SharedRenewal:
    """The renewal of one credential, during one use of the credential.

    A daemon that did not get the turn at once, or that got it after another daemon had renewed the credential, sends
    nothing: it uses what the other one has stored.

    :param credential: a name of the credential that is unique in the database.
    :param is_replaced: returns whether the vault, as known here, has another secret than the one in use.
    """

    _sharing: Sharing
    _credential: str
    _is_replaced: Callable[[], bool]
    _exchange: TokenExchange
    _clock: IReactorTime
    _turn: RenewalTurn | None = field(default=None, init=False)

    async def exchange(self, asked: TokenRequest) -> TokenAnswer:
        """Send a request to the token endpoint, once this daemon has the turn.

        :raises SecretReplaced: if another daemon has renewed the credential meanwhile.
        :raises NetworkError: if the turn was not available, or no complete response arrived.
        :raises BindingFailed: if the URL is not allowed.
        """
        turn = await self.begin()
        # guard of several daemons: a token that another daemon has renewed is not renewed again
        #    -> vault.test_shared_renewal.RenewalTests.test_loser
        if self._is_replaced():
            raise SecretReplaced
        # guard of several daemons: a daemon that stood still for longer than its turn renews nothing
        #    -> vault.test_shared_renewal.RenewalTests.test_stood_still
        if not turn.lasts():
            raise NetworkError("This daemon was silent for too long, so the credential was not renewed.")
        return await self._exchange(asked)

    async def begin(self) -> RenewalTurn:
        """Wait until no other daemon renews the credential, then read the vault. Idempotent.

        :raises SecretReplaced: if another daemon has renewed the credential meanwhile.
        :raises NetworkError: if the turn was not available in time, or the database is not.
        """
        until, turns = self._clock.seconds() + _WAIT_SECONDS, self._sharing.turns
        try:
            while self._turn is None:
                self._turn = await turns.take(self._credential)
                if self._turn is None:
                    await self._wait(until)
                else:
                    self._sharing.refresh()
        except StoreUnavailable as error:
            raise NetworkError(f"The credential cannot be renewed now: {error.message}") from None
        return self._turn

    async def _wait(self, until: float) -> None:
        if self._clock.seconds() >= until:
            raise NetworkError("Another daemon has not finished renewing the credential.")
        await deferLater(self._clock, _LOOK_SECONDS)
        self._sharing.refresh()
        if self._is_replaced():
            raise SecretReplaced

    async def end(self) -> None:
        """End the turn, if this daemon has it. Idempotent."""
        turn, self._turn = self._turn, None
        if turn is not None:
            try:
                await turn.end()
            except StoreUnavailable as error:
                _log.warn("the turn to renew a credential ends by itself: {why}", why=error.message)
