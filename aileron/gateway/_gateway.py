"""The gateway: takes requests off the agent site's channel and carries them to their providers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.errors import AileronError, Forbidden, InternalError, InvalidRequest, NetworkError, VaultLocked
from aileron.http1 import Client, RequestHead, Taken
from aileron.interfaces import IMeters, ISessions, IVault
from aileron.values import GatewaySettings, Session, VaultState

from ._admission import Keyed, check, keyed
from ._destination import Destination
from ._eager import writer
from ._exchange import Exchange
from ._failures import answer
from ._injection import Injection
from ._routes import RelayTo, RouteTable, Upgrade, routes
from ._silence import Silence

_log = Logger()
_SHUT = {
    VaultState.LOCKED: "Aileron's vault is locked: run aileron vault unlock in a terminal of your own, then try again.",
    VaultState.LOST: "Aileron's vault is lost: run aileron doctor in a terminal of your own.",
}


class Asked(NamedTuple):
    """A request that was taken."""

    head: RequestHead
    found: Keyed
    to: RelayTo


class Dismissed:
    """A request that is refused by its head.  It is L{aileron.http1.Taken}."""

    def __init__(self, client: Client, whole_answer: bytes) -> None:
        self._client = client
        self._answer = whole_answer

    def take(self, data: bytes) -> int:
        """Its body is of no interest."""
        return -1

    def start(self) -> None:
        """Say so."""
        self._client.dismiss(self._answer)

    def client_is_slow(self) -> None:
        """There is nothing to wait for."""

    def client_has_caught_up(self) -> None:
        """There is nothing to go on with."""

    def client_left(self) -> None:
        """There is nothing to take down."""


class Gateway:
    """It is L{aileron.http1.Taker}."""

    def __init__(
        self,
        settings: GatewaySettings,
        destinations: Mapping[str, Destination],
        *,
        sessions: ISessions,
        vault: IVault,
        meters: IMeters,
        injection: Injection,
        own_ports: Callable[[], Collection[int]],
        clock: IReactorTime,
    ) -> None:
        """Make it; L{begin} sets it going.

        :param destinations: by the provider's name.
        """
        self._settings = settings
        self._destinations = destinations
        self._sessions, self._vault, self._meters, self._injection = sessions, vault, meters, injection
        self._own_ports = own_ports
        self._table = RouteTable(routes(settings))
        self._silence = Silence(settings.silence_seconds)
        self._looking = LoopingCall(self._look)
        self._looking.clock = clock

    def begin(self) -> None:
        """Watch the clock from now on."""
        self._looking.start(self._silence.step, now=False)

    def end(self) -> None:
        """Watch it no more, and close what is kept for later requests."""
        self._looking.stop()
        for destination in self._destinations.values():
            destination.pool.close()

    def _look(self) -> None:
        self._silence.look()
        for destination in self._destinations.values():
            destination.pool.sweep()

    def taken(self, head: RequestHead, client: Client) -> Taken | None:
        """See L{Taker.taken}."""
        found = keyed(head)
        decision = self._table.decide(head, found.path)
        if decision is None:
            return None
        to = decision.to if isinstance(decision, Upgrade) else decision
        try:
            check(head, found, prefixed=len(to.path) != len(found.path))
        except AileronError as error:
            return Dismissed(client, _refusal(to, error, 400 if isinstance(error, InvalidRequest) else to.refusal))
        if isinstance(decision, Upgrade):
            return Dismissed(client, _refusal(to, InvalidRequest("There is no WebSocket here: go on with HTTP."), 426))
        return Exchange(
            head,
            client,
            writer(client.transport),
            begin=partial(self._begin, Asked(head, found, to)),
            refusal=partial(_refusal, to),
            on_end=self._silence.forget,
            most_bytes=self._settings.max_body_bytes,
        )

    def _begin(self, asked: Asked, exchange: Exchange) -> None:
        digest = asked.found.digest
        session = None if digest is None else self._sessions.known_gateway_key(digest)
        if digest is None or session is not None:
            self._carry(asked, session, exchange)
        else:
            Deferred.fromCoroutine(self._carry_once_known(asked, digest, exchange)).addErrback(_failed, exchange)

    async def _carry_once_known(self, asked: Asked, digest: bytes, exchange: Exchange) -> None:
        session = await self._sessions.by_gateway_key(digest)
        if exchange.ended:
            return
        if session is None or not session.live:
            exchange.fail(Forbidden("This session has ended, or never was: launch the agent again."), asked.to.refusal)
        else:
            self._carry(asked, session, exchange)

    def _carry(self, asked: Asked, session: Session | None, exchange: Exchange) -> None:
        to = asked.to
        exchange.meter = self._meters.begin(to.provider, session.id if session else None, to.inference)
        shut = _SHUT.get(self._vault.state())
        if shut is not None:
            exchange.fail(VaultLocked(shut), to.refusal)
            return
        destination = self._destinations[to.provider.name]
        if destination.loopback_port in self._own_ports():
            exchange.fail(NetworkError(f"{to.provider.name} leads back to this daemon: see aileron status."), 502)
            return
        head, screen = destination.head(asked.head, asked.found, to.path), None
        if to.provider.credential is not None:
            try:
                head, screen = self._injection.inject(head, to.provider, session, inference=to.inference)
            except AileronError as error:
                exchange.fail(error, to.refusal)
                return
        exchange.open(destination.for_proxy(head), screen)
        self._silence.watch(exchange)
        destination.pool.carry(exchange)


def _refusal(to: RelayTo, error: AileronError, status: int) -> bytes:
    return answer(error, status, to.dialect)


def _failed(failure: Failure, exchange: Exchange) -> None:
    """The rim of a request whose session had to be looked for."""
    error = failure.value
    if not isinstance(error, AileronError):
        _log.failure("beginning to relay", failure)
        error = InternalError("The gateway failed: its log says more.")
    if not exchange.ended:
        exchange.fail(error, error.status)
