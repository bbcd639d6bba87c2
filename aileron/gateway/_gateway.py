"""The gateway: takes requests off the agent site's channel and carries them to their providers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.errors import (
    AileronError,
    Forbidden,
    InternalError,
    InvalidRequest,
    NetworkError,
    VaultLocked,
)
from aileron.http1 import HeadCache, RelayClient, RequestHead, Route
from aileron.interfaces import IMeters, ISessions, IVault
from aileron.values import Dialect, Ending, GatewaySettings, Session

from ._admission import GatewaySwitch, Keyed, check, keyed
from ._destination import Destination
from ._eager import Write, writer
from ._exchange import UpstreamExchange
from ._injection import Injection
from ._limits import ByteBudget, SilenceWatch
from ._refusals import Refusal, answer
from ._routes import RelayTo, RouteTable, routes
from ._secret_filter import SecretFilter

_log = Logger()
_UNSOUND = "The path has dot segments, backslashes or encoded slashes: nothing was sent."
_NO_WEBSOCKET = "There is no WebSocket here: go on with HTTP."
_STOPPING = "Aileron's daemon is being stopped: try again once it runs."
_NO_SESSION = "This session has ended, or never was: launch the agent again."


@frozen
class RelayTerms:
    """The terms that one client's requests have in common that differ in their length alone.

    :ivar write: to the client.
    :ivar dialect: in which the client expects errors.
    :ivar keep: whether it may send another request on its connection.
    :ivar most_bytes: of a body, framing included; L{None}: without limit.
    """

    client: RelayClient
    write: Write
    gateway: Gateway
    method: bytes
    dialect: Dialect
    keep: bool
    most_bytes: int | None


@frozen
class RelayRoute:
    """Carries on one client's requests that differ in their length alone.  It is L{aileron.http1.Route}.

    :ivar digest: SHA-256 of the gateway key that they bring; L{None}: they bring none.
    :ivar onward: their heads as they go to the provider, but for what a proxy wants or a credential changes.
    """

    terms: RelayTerms
    to: RelayTo
    digest: bytes | None = field(repr=False)
    onward: HeadCache

    def exchange(self, length: int) -> UpstreamExchange:
        return UpstreamExchange(self.terms, length, self)


class Gateway:
    """Takes requests over and begins their exchanges.  It is L{aileron.http1.RelayHandler}."""

    def __init__(
        self,
        settings: GatewaySettings,
        destinations: Mapping[str, Destination],
        *,
        sessions: ISessions,
        vault: IVault,
        meters: IMeters,
        injection: Injection,
        clock: IReactorTime,
    ) -> None:
        """Make it; L{open} sets it going.

        :param destinations: by the provider's name.
        """
        self._settings = settings
        self._destinations = destinations
        self._sessions, self._meters, self._injection = sessions, meters, injection
        self._door = GatewaySwitch(vault, clock)
        self._looping: frozenset[str] = frozenset()
        self._table = RouteTable(routes(settings))
        self._silence = SilenceWatch(settings.silence_seconds)
        self._budget = ByteBudget()
        self._looking = LoopingCall(self._look)
        self._looking.clock = clock

    def open(self, own_ports: Collection[int]) -> None:
        """Watch the clock from now on.

        :param own_ports: of this daemon, to which nothing is relayed.
        """
        self._looping = frozenset(
            name for name, destination in self._destinations.items() if destination.loopback_port in own_ports
        )
        self._looking.start(self._silence.step, now=False)

    def close(self) -> None:
        """Watch it no more, break off what is under way, and close what is kept for later requests."""
        self._looking.stop()
        for exchange in self._silence.watched():
            exchange.fail(NetworkError(_STOPPING), 502, Ending.CUT)
        for destination in self._destinations.values():
            destination.pool.close()

    def _look(self) -> None:
        try:
            self._silence.look()
            for destination in self._destinations.values():
                destination.pool.sweep()
        except Exception:  # noqa: BLE001 - a timer's rim: a LoopingCall stops for good after one failure
            _log.failure("looking at what is under way")

    def route(self, head: RequestHead, client: RelayClient) -> Route | None:
        found = keyed(head)
        decision = self._table.decide(head, found.path)
        if decision is None:
            return None
        to, switching = (decision, False) if isinstance(decision, RelayTo) else (decision.to, True)
        try:
            check(head, found)
        except AileronError as error:
            return Refusal(client, answer(error, to.refusal, to.dialect))
        if not to.sound:
            return Refusal(client, answer(InvalidRequest(_UNSOUND), 400, to.dialect))
        if switching:
            return Refusal(client, answer(InvalidRequest(_NO_WEBSOCKET), 426, to.dialect))
        return self._onward(head, client, found, to)

    def _onward(self, head: RequestHead, client: RelayClient, found: Keyed, to: RelayTo) -> RelayRoute:
        terms = RelayTerms(
            client,
            writer(client.transport),
            self,
            head.method,
            to.dialect,
            keep=b"close" not in head.fields.get(b"connection", b"").lower(),
            most_bytes=self._settings.max_body_bytes,
        )
        onward = self._destinations[to.provider.name].head(head, found, to.path)
        return RelayRoute(terms, to, found.digest, HeadCache(onward, head.length))

    # for its exchanges ---------------------------------------------------------------------------------------------

    def begin(self, exchange: UpstreamExchange, asked: RelayRoute) -> None:
        """Find a connection to the provider for an exchange, or have it fail."""
        digest = asked.digest
        session = None if digest is None else self._sessions.known_gateway_key(digest)
        if digest is None or session is not None:
            self._carry(exchange, asked, session)
            return
        exchange.count_on(self._budget.account(None))
        if not exchange.over:
            Deferred.fromCoroutine(self._carry_once_known(exchange, asked, digest)).addErrback(_failed, exchange)

    def hindrance(self) -> AileronError | None:
        """Why nothing may leave now; asked again where an exchange had to wait for its connection."""
        shut = self._door.shut()
        return None if shut is None else VaultLocked(shut)

    def refusal(self, exchange: UpstreamExchange, error: AileronError, status: int) -> bytes:
        """Write the whole answer in the provider's place."""
        return answer(error, status, exchange.terms.dialect)

    def ended(self, exchange: UpstreamExchange) -> None:
        """Note that an exchange is over."""
        self._silence.forget(exchange)

    async def _carry_once_known(self, exchange: UpstreamExchange, asked: RelayRoute, digest: bytes) -> None:
        session = await self._sessions.by_gateway_key(digest)
        if exchange.over:
            return
        if session is None or not session.live:
            exchange.fail(Forbidden(_NO_SESSION), asked.to.refusal)
        else:
            self._carry(exchange, asked, session)

    def _carry(self, exchange: UpstreamExchange, asked: RelayRoute, session: Session | None) -> None:
        to, provider = asked.to, asked.to.provider
        if session is not None:
            asked.terms.client.keep(session.id)
        exchange.meter = self._meters.begin(provider, None if session is None else session.id, to.inference)
        if to.refusal != exchange.refusal:  # else its class says it
            exchange.refusal = to.refusal
        exchange.count_on(self._budget.account(None if session is None else session.id))
        if exchange.over:
            return
        hindrance = self.hindrance()
        if hindrance is not None:
            exchange.fail(hindrance, to.refusal)
        elif provider.name in self._looping:
            exchange.fail(NetworkError(f"{provider.name} leads back to this daemon: see aileron status."), 502)
        elif provider.credential is not None:
            Deferred.fromCoroutine(self._send_with_key(exchange, asked, session)).addErrback(_failed, exchange)
        else:
            self._send(exchange, asked, asked.onward.with_length(exchange.length))

    async def _send_with_key(self, exchange: UpstreamExchange, asked: RelayRoute, session: Session | None) -> None:
        to, onward = asked.to, asked.onward.with_length(exchange.length)
        try:
            onward, screen = await self._injection.inject(onward, to.provider, session, inference=to.inference)
        except AileronError as error:
            if not exchange.over:
                exchange.fail(error, to.refusal)
            return
        if not exchange.over:
            self._send(exchange, asked, onward, screen)

    def _send(
        self, exchange: UpstreamExchange, asked: RelayRoute, onward: bytes, screen: SecretFilter | None = None
    ) -> None:
        destination = self._destinations[asked.to.provider.name]
        exchange.open(destination.for_proxy(onward), screen)
        if not exchange.over:
            self._silence.watch(exchange)
            destination.pool.carry(exchange)


def _failed(failure: Failure, exchange: UpstreamExchange) -> None:
    """Answer for a request that failed while it waited for its session or its key."""
    error = failure.value
    if not isinstance(error, AileronError):
        _log.failure("beginning to relay", failure)
        error = InternalError("The gateway failed: its log says more.")
    if not exchange.over:
        exchange.fail(error, error.status)
