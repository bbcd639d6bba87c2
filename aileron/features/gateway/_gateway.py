"""The gateway: accepts requests from the agent site's channel and relays them to their providers."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeAlias, cast

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.http1 import HeadCache, RelayClient, RequestHead, Route
from aileron.features.gateway.interfaces import IMeters
from aileron.model.errors import (
    AileronError,
    Forbidden,
    InternalError,
    InvalidRequest,
    NetworkError,
    NotFound,
    VaultLocked,
)
from aileron.model.interfaces.services import IConnectingReactor
from aileron.model.interfaces.store import IBindingFlags, ISessions
from aileron.model.interfaces.vault import IBindings, IVault
from aileron.model.sessions import SANDBOX_ADDRESS, Session
from aileron.redaction import SecretFilter

from ._admission import GatewaySwitch, Keyed, check, keyed
from ._client_side import Refusal, RelayTerms, answer
from ._destination import Destination
from ._eager import writer
from ._injection import Injection, LeakRecorder
from ._limits import Account, ByteBudget
from ._proxies import read_proxies
from ._routes import RelayTo, RouteTable, routes
from ._tally import Tally
from .exchange import UpstreamExchange
from .values import Ending, GatewaySettings
from .watching import RequestWatch, SpendGuard

_log = Logger()
_UNSOUND = "The path has dot segments, backslashes or encoded slashes: nothing was sent."
_PREFIXED = (
    "{path} is relayed only below a provider's prefix, so nothing was sent. Let the client's base URL end in "
    "{prefix}/v1, not in /v1; for a provider of your own the prefix is gateway.providers.<name>.prefix in config.yaml."
)
_NO_WEBSOCKET = "There is no WebSocket here: go on with HTTP."
_STOPPING = "Aileron's daemon is being stopped: try again once it runs."
_NO_SESSION = "This session has ended, or never was: launch the agent again."


_LOOKS = 4
_LONGEST_SECONDS = 10.0


class SilenceWatch:
    """Measures how long each exchange under way has been silent, which means that no byte of it moved.

    One timer serves all exchanges, because one timer each would cost more. When an exchange has been silent for
    C{seconds}, L{UpstreamExchange.silent} is called. The call is late by at most a quarter of C{seconds} or ten
    seconds, whichever is less.

    :ivar step: the seconds between two calls of L{look}.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        looks = max(_LOOKS, math.ceil(seconds / _LONGEST_SECONDS))
        self.step = seconds / looks
        self._most = looks - 1
        self._quiet: dict[UpstreamExchange, int] = {}

    def watch(self, exchange: UpstreamExchange) -> None:
        """Start to measure how long an exchange is silent, which means that no byte of it moves."""
        self._quiet[exchange] = 0

    def forget(self, exchange: UpstreamExchange) -> None:
        """Stop measuring how long an exchange is silent. Idempotent."""
        self._quiet.pop(exchange, None)

    def watched(self) -> list[UpstreamExchange]:
        """Return all exchanges whose silence is measured."""
        return list(self._quiet)

    def look(self) -> None:
        """Add C{step} seconds to the silence of each exchange, and report those that were silent for too long."""
        for exchange, quiet in list(self._quiet.items()):
            if exchange.over:
                continue  # it ended during this pass
            if exchange.stirred:
                exchange.stirred = False
                self._quiet[exchange] = 0
            elif quiet < self._most:
                self._quiet[exchange] = quiet + 1
            else:
                exchange.silent(self.seconds)


@define(eq=False)
class RelayRoute:
    """The route of one client's requests whose heads differ only in the length of the body.

    It implements L{aileron.base.http1.Route}.

    :ivar digest: SHA-256 of the gateway key in these requests, or None if they have none.
    :ivar onward: the heads sent to the provider, before a proxy's fields and a credential are added.
    :ivar begin: starts an exchange: finds its session and connects it to the provider, or fails the exchange.
    """

    terms: RelayTerms
    to: RelayTo
    digest: bytes | None = field(repr=False)
    onward: HeadCache
    begin: Callable[[RelayRoute, UpstreamExchange], None]
    _budget: ByteBudget
    _account: Account | None = field(default=None, init=False)
    _account_of: str | None = field(default=None, init=False)
    _sandboxed: bool | None = field(default=None, init=False)

    def exchange(self, length: int) -> UpstreamExchange:
        return UpstreamExchange(self.terms, length, partial(self.begin, self))

    def account(self, session_id: str | None) -> Account:
        """Return the account that counts the bytes in memory of a session's requests. It is cached for this route."""
        account = self._account
        if account is None or self._account_of != session_id:
            account = self._account = self._budget.account(session_id)
            self._account_of = session_id
        return account

    def notes_tools(self, session: Session | None) -> bool:
        """Return whether to record the tools that a request asks its provider to run, regardless of the configuration.

        If the request has a session, its setting C{notes_tools} decides. Else the tools are recorded if the client is
        in a sandbox.
        """
        if session is not None:
            return session.notes_tools
        if self._sandboxed is None:
            peer = self.terms.client.transport.getPeer()
            self._sandboxed = getattr(peer, "host", None) == SANDBOX_ADDRESS
        return self._sandboxed


Continuation: TypeAlias = Callable[[UpstreamExchange, RelayRoute, Session | None], None]
"""A function that continues an exchange after its session was found."""


class Gateway:
    """The relay: accepts requests and starts their exchanges. It implements L{aileron.base.http1.RelayHandler}."""

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
        """Create a relay. L{open} starts its timers.

        :param destinations: the destinations by the provider's name.
        """
        self._settings = settings
        self._destinations = destinations
        self._sessions, self._meters, self._injection = sessions, meters, injection
        self._watch: RequestWatch | None = None
        self._watched: frozenset[str] = frozenset()
        self._guard: SpendGuard | None = None
        self._door = GatewaySwitch(vault, clock)
        self._looping: frozenset[str] = frozenset()
        self._table = RouteTable(routes(settings), settings.providers)
        self._silence = SilenceWatch(settings.silence_seconds)
        self._budget = ByteBudget()
        self._looking = LoopingCall(self._look)
        self._looking.clock = clock

    def watch_requests(self, watch: RequestWatch) -> None:
        """Call C{watch} with each further request before it is sent, to find the tools that the provider is to run."""
        self._watch, self._watched = watch, watch.providers

    def guard_spending(self, guard: SpendGuard) -> None:
        """Call C{guard}, which enforces limits on spending, before each further request that may cost something."""
        self._guard = guard

    def open(self, own_ports: Collection[int]) -> None:
        """Begin to end exchanges that are silent for too long.

        :param own_ports: the ports of this daemon. Requests to them are refused.
        """
        self._looping = frozenset(
            name for name, destination in self._destinations.items() if destination.loopback_port in own_ports
        )
        self._looking.start(self._silence.step, now=False)

    def close(self) -> None:
        """Stop the timers, abort exchanges under way, and close idle connections."""
        self._looking.stop()
        for exchange in self._silence.watched():
            exchange.fail(NetworkError(_STOPPING), 502, Ending.CUT)
        if self._watch is not None:
            self._watch.read_rest()
        for destination in self._destinations.values():
            destination.pool.close()

    def _look(self) -> None:
        try:
            self._silence.look()
            for destination in self._destinations.values():
                destination.pool.sweep()
        except Exception:  # noqa: BLE001 - a timer's rim: a LoopingCall stops for good after one failure
            _log.failure("the exchanges under way could not be checked")

    def route(self, head: RequestHead, client: RelayClient) -> Route | None:
        found = keyed(head)
        to = self._table.decide(head, found.path)
        if to is None:
            return None
        try:
            check(head, found)
        except AileronError as error:
            return Refusal(client, answer(error, to.refusal, to.dialect))
        if not to.sound:
            return Refusal(client, answer(InvalidRequest(_UNSOUND), 400, to.dialect))
        if to.prefixed:
            elsewhere = NotFound(_PREFIXED.format(path=to.path.decode("ascii")[:100], prefix=to.provider.prefix))
            return Refusal(client, answer(elsewhere, elsewhere.status, to.dialect))
        if to.upgrade:
            return Refusal(client, answer(InvalidRequest(_NO_WEBSOCKET), 426, to.dialect))
        return self._onward(head, client, found, to)

    def _onward(self, head: RequestHead, client: RelayClient, found: Keyed, to: RelayTo) -> RelayRoute:
        terms = RelayTerms(
            client,
            writer(client.transport),
            head.method,
            to.dialect,
            keep=b"close" not in head.fields.get(b"connection", b"").lower(),
            most_bytes=self._settings.max_body_bytes,
            hindrance=self._hindrance,
            ended=self._silence.forget,
        )
        onward = self._destinations[to.provider.name].head(head, found, to.path)
        return RelayRoute(terms, to, found.digest, HeadCache(onward, head.length), self._begin, self._budget)

    def _begin(self, asked: RelayRoute, exchange: UpstreamExchange) -> None:
        digest = asked.digest
        session = None if digest is None else self._sessions.known_gateway_key(digest)
        if digest is None or session is not None:
            self._carry(exchange, asked, session)
            return
        exchange.count_on(asked.account(None))
        if not exchange.over:
            self._find_session(exchange, asked, self._carry)

    def _hindrance(self) -> AileronError | None:
        shut = self._door.shut()
        return None if shut is None else VaultLocked(shut)

    def _find_session(self, exchange: UpstreamExchange, asked: RelayRoute, then: Continuation) -> None:
        """Find the session of a request in the database, then call C{then}.

        If the exchange has ended meanwhile, do nothing. If the session is unknown or has ended, fail the exchange.
        """
        Deferred.fromCoroutine(self._look_up(exchange, asked, then)).addErrback(_answer_failed, exchange)

    async def _look_up(self, exchange: UpstreamExchange, asked: RelayRoute, then: Continuation) -> None:
        session = None if asked.digest is None else await self._sessions.by_gateway_key(asked.digest)
        if exchange.over:
            return
        if asked.digest is not None and (session is None or not session.live):
            exchange.fail(Forbidden(_NO_SESSION), asked.to.refusal)
        else:
            then(exchange, asked, session)

    def _carry(self, exchange: UpstreamExchange, asked: RelayRoute, session: Session | None) -> None:
        to, provider = asked.to, asked.to.provider
        session_id = None
        if session is not None:
            session_id = session.id
            asked.terms.client.keep(session_id)
        exchange.meter = self._meters.begin(provider, session_id, to.inference, to.path)
        if to.refusal != exchange.refusal:  # the default is a class attribute
            exchange.refusal = to.refusal
        watch, guard = self._watch, self._guard if to.spends else None
        noting = watch is not None and asked.notes_tools(session)
        holds = guard is not None and provider.name in guard.reading
        reads = holds or noting or provider.name in self._watched
        exchange.count_on(asked.account(session_id), opens=provider.credential is None and not reads)
        if exchange.over:
            return
        shut = self._door.shut()
        if shut is not None:
            exchange.fail(VaultLocked(shut), to.refusal)
        elif provider.name in self._looping:
            exchange.fail(NetworkError(f"{provider.name} leads back to this daemon: see aileron status."), 502)
        elif guard is not None and not (
            self._is_admitted(guard, exchange, asked, session)
            if holds
            else guard.admit(exchange, provider.name, session_id)
        ):
            return
        elif provider.credential is None and not reads:
            self._send(exchange, asked, asked.onward.with_length(exchange.length))
        else:
            self._watch_request(exchange, asked, session)

    def _is_admitted(
        self, guard: SpendGuard, exchange: UpstreamExchange, asked: RelayRoute, session: Session | None
    ) -> bool:
        """Return whether the limits on spending admit a request by its contents. If they do not, fail the exchange.

        If the request is not complete, hold it and return False.
        """
        provider, session_id = asked.to.provider.name, None if session is None else session.id
        head, body = asked.onward.with_length(exchange.length), exchange.read_whole()
        if body is not None:
            return guard.admit_read(exchange, provider, session_id, head, body)
        self._silence.watch(exchange)  # waiting for the body counts as silence too
        later = partial(self._find_session, exchange, asked, self._watch_held)
        guard.hold(exchange, provider, session_id, head=head, go_later=later)
        return False

    def _watch_held(self, exchange: UpstreamExchange, asked: RelayRoute, session: Session | None) -> None:
        """Continue with a request that was held until it was complete: read it for tools and send it.

        If nothing may be sent now, fail the exchange.
        """
        hindrance = self._hindrance()
        if hindrance is not None:
            exchange.fail(hindrance, asked.to.refusal)
        else:
            self._watch_request(exchange, asked, session)

    def _watch_request(self, exchange: UpstreamExchange, asked: RelayRoute, session: Session | None) -> None:
        """Send the request.

        If tools that the provider runs are recorded or restricted, read the request for them first.
        """
        watch, provider = self._watch, asked.to.provider
        noting = watch is not None and asked.notes_tools(session)
        if watch is None or not (noting or provider.name in self._watched):
            self._go(exchange, asked, session)
            return
        self._silence.watch(exchange)  # waiting for the body counts as silence too
        watch.watch(
            exchange,
            provider,
            None if session is None else session.id,
            noting=noting,
            head=asked.onward.with_length(exchange.length),
            go=partial(self._go, exchange, asked, session),
            go_later=partial(self._find_session, exchange, asked, self._send_held),
        )

    def _send_held(self, exchange: UpstreamExchange, asked: RelayRoute, session: Session | None) -> None:
        """Send a request that was held until it was complete. If nothing may be sent now, fail the exchange."""
        hindrance = self._hindrance()
        if hindrance is not None:
            exchange.fail(hindrance, asked.to.refusal)
        else:
            self._go(exchange, asked, session)

    def _go(self, exchange: UpstreamExchange, asked: RelayRoute, session: Session | None) -> None:
        if asked.to.provider.credential is not None:
            Deferred.fromCoroutine(self._send_with_key(exchange, asked, session)).addErrback(_answer_failed, exchange)
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
        exchange.open(destination.for_proxy(onward) if destination.more else onward, screen)
        if not exchange.over:
            self._silence.watch(exchange)
            destination.pool.carry(exchange)


def build(
    settings: GatewaySettings,
    reactor: IConnectingReactor,
    *,
    sessions: ISessions,
    vault: IVault,
    bindings: IBindings,
    flags: IBindingFlags,
    tally: Tally,
    ids: Callable[[], str],
) -> Gateway:
    """Build the gateway to all providers of C{settings}. It neither listens nor connects yet.

    :param ids: returns a new ULID.
    """
    proxies, clock = read_proxies(dict(settings.environment)), cast(IReactorTime, reactor)
    return Gateway(
        settings,
        {each.name: Destination.build(each, reactor, proxies, settings.ca_certificates) for each in settings.providers},
        sessions=sessions,
        vault=vault,
        meters=tally,
        injection=Injection(bindings, LeakRecorder(flags, clock, ids).record_leak),
        clock=clock,
    )


def _answer_failed(failure: Failure, exchange: UpstreamExchange) -> None:
    """Fail the exchange with an error that was raised while its session or key was looked up. Log an unexpected one."""
    error = failure.value
    if not isinstance(error, AileronError):
        _log.failure("a request could not be relayed", failure)
        error = InternalError("The gateway failed: its log says more.")
    if not exchange.over:
        exchange.fail(error, error.status)
