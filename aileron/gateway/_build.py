"""The gateway's own composition."""

from __future__ import annotations

from typing import cast

from twisted.internet.interfaces import IReactorTime

from aileron.interfaces import IMeters, ISessions, IVault
from aileron.values import GatewaySettings, Provider

from ._destination import Destination
from ._dial import Forwarding, IDialReactor, dialler, forwarding
from ._gateway import Gateway
from ._pool import Pool
from ._proxies import Proxies, read_proxies
from ._unreachable import Unreachable


def build(
    settings: GatewaySettings, reactor: IDialReactor, *, sessions: ISessions, vault: IVault, meters: IMeters
) -> Gateway:
    """The gateway to all providers of C{settings}.  It neither listens nor connects before it is asked."""
    proxies = read_proxies(dict(settings.environment))
    destinations = {
        provider.name: _destination(provider, proxies, settings, reactor) for provider in settings.providers
    }
    return Gateway(
        settings,
        destinations,
        sessions=sessions,
        vault=vault,
        meters=meters,
        clock=cast(IReactorTime, reactor),
    )


def _destination(provider: Provider, proxies: Proxies, settings: GatewaySettings, reactor: IDialReactor) -> Destination:
    pool = Pool(dialler(reactor, provider, proxies, settings.ca_certificates), cast(IReactorTime, reactor))
    return Destination.of(provider, pool, _forwarding(provider, proxies))


def _forwarding(provider: Provider, proxies: Proxies) -> Forwarding:
    try:
        return forwarding(provider, proxies)
    except Unreachable:
        return Forwarding()  # whoever connects is told the same, with its cause
