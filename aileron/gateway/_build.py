"""The gateway's own composition."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from twisted.internet.interfaces import IReactorTime

from aileron.interfaces import IBindingFlags, IBindings, ISessions, IVault
from aileron.values import GatewaySettings, Provider

from ._destination import Destination
from ._dialler import Forwarding, IDialReactor, dialler, forwarding
from ._gateway import Gateway
from ._injection import Injection, LeakRecorder
from ._pool import UpstreamPool
from ._proxies import Proxies, read_proxies
from ._tally import Tally
from ._tool_watch import ToolWatch
from ._unreachable import UpstreamUnreachable


def build(
    settings: GatewaySettings,
    reactor: IDialReactor,
    *,
    sessions: ISessions,
    vault: IVault,
    bindings: IBindings,
    flags: IBindingFlags,
    tally: Tally,
    ids: Callable[[], str],
) -> Gateway:
    """Build the gateway to all providers of C{settings}. It neither listens nor connects before it is asked.

    :param ids: fresh ULIDs.
    """
    proxies, clock = read_proxies(dict(settings.environment)), cast(IReactorTime, reactor)
    return Gateway(
        settings,
        {each.name: _destination(each, proxies, settings, reactor) for each in settings.providers},
        sessions=sessions,
        vault=vault,
        meters=tally,
        injection=Injection(bindings, LeakRecorder(flags, clock, ids).tell),
        tools=ToolWatch(settings, tally.tools, clock),
        clock=clock,
    )


def _destination(provider: Provider, proxies: Proxies, settings: GatewaySettings, reactor: IDialReactor) -> Destination:
    pool = UpstreamPool(dialler(reactor, provider, proxies, settings.ca_certificates), cast(IReactorTime, reactor))
    return Destination.of(provider, pool, _forwarding(provider, proxies))


def _forwarding(provider: Provider, proxies: Proxies) -> Forwarding:
    try:
        return forwarding(provider, proxies)
    except UpstreamUnreachable:
        return Forwarding()  # a client that connects gets the same error, with its cause
