"""Keeps connections to services open for some seconds, so that the next read of a tool needs no new one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from attrs import define, field, frozen
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IProtocol, IProtocolFactory, IReactorTime
from twisted.internet.protocol import Factory
from twisted.web._newclient import HTTP11ClientProtocol, RequestNotSent
from twisted.web.client import RequestTransmissionFailed, ResponseNeverReceived

KEPT_SECONDS = 20
"""The time for which a connection without a request is kept."""

MOST_KEPT = 4
"""The most connections that are kept for requests with the same scope."""

MOST_KEPT_OF_ALL = 64
"""The most connections that are kept. Each host and each credential has a scope of its own, so there can be many."""

_IDLE = "QUIESCENT"


def is_stale(error: BaseException) -> bool:
    """Return whether a request failed before any byte of its answer, as on a connection that the service has closed."""
    return isinstance(error, RequestNotSent | RequestTransmissionFailed | ResponseNeverReceived)


class ScopedEndpoint(Protocol):
    """The endpoint of one request."""

    @property
    def scope(self) -> Hashable:
        """The scope of the request. A kept connection is used only by requests with an equal scope."""

    @property
    def anew(self) -> bool:
        """True if no kept connection may be used."""

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Open a new connection."""

    def use(self, protocol: HTTP11ClientProtocol) -> None:
        """Note that the request uses a connection, which may be a kept one."""


@frozen(eq=False)
class _Idle:
    scope: Hashable
    protocol: HTTP11ClientProtocol
    end: IDelayedCall


@define(eq=False)
class KeptConnections:
    """The connections that are open and have no request. Twisted's agent uses it in place of its own pool.

    The addresses of a service are checked when a connection is opened, and not again while it is kept.
    """

    persistent = True

    _clock: IReactorTime
    _idle: list[_Idle] = field(factory=list, init=False)

    def getConnection(self, key: object, endpoint: ScopedEndpoint) -> Deferred[HTTP11ClientProtocol]:
        """Return a kept connection of the endpoint's scope, or a new one."""
        # guard of own tools: a kept connection is used by requests of one session, credential and host alone
        #    -> connectors.test_kept.KeptTests.test_scopes, instead scope = ""
        scope = endpoint.scope
        while not endpoint.anew and (protocol := self._pop(scope)) is not None:
            if protocol.state == _IDLE:  # else the service has closed it
                endpoint.use(protocol)
                return succeed(protocol)
        factory: Any = Factory.forProtocol(lambda: HTTP11ClientProtocol(lambda done: self._keep(scope, done)))
        factory.noisy = False
        opening: Deferred[Any] = endpoint.connect(factory)

        def use(protocol: HTTP11ClientProtocol) -> HTTP11ClientProtocol:
            endpoint.use(protocol)
            return protocol

        return opening.addCallback(use)

    def _pop(self, scope: Hashable) -> HTTP11ClientProtocol | None:
        """Remove and return the connection of a scope that was kept last, or None if there is none."""
        found = next((each for each in reversed(self._idle) if each.scope == scope), None)
        if found is None:
            return None
        self._remove(found)
        return found.protocol

    def _keep(self, scope: Hashable, protocol: Any) -> None:
        protocol.transport.user = None
        own = [each for each in self._idle if each.scope == scope]
        # guard of own tools: connections that are kept do not use up what the daemon may open
        #    -> connectors.test_kept.KeptTests.test_few_are_kept_of_all
        if len(own) == MOST_KEPT or len(self._idle) == MOST_KEPT_OF_ALL:
            oldest = own[0] if len(own) == MOST_KEPT else self._idle[0]
            self._remove(oldest)
            _close(oldest.protocol)
        idle = _Idle(scope, protocol, self._clock.callLater(KEPT_SECONDS, lambda: self._end(idle)))
        self._idle.append(idle)

    def _remove(self, idle: _Idle) -> None:
        self._idle.remove(idle)
        if idle.end.active():
            idle.end.cancel()

    def _end(self, idle: _Idle) -> None:
        self._remove(idle)
        _close(idle.protocol)


def _close(protocol: Any) -> None:
    if protocol.state == _IDLE:
        protocol.transport.abortConnection()
