"""The gateway as a daemon has started it, without anything behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen
from twisted.internet.task import Clock
from zope.interface import implementer

from aileron.base.life import Life
from aileron.features.gateway._gateway import Gateway
from aileron.features.gateway.exchange import UpstreamExchange
from aileron.features.gateway.interfaces import ITotals
from aileron.features.gateway.running import RunningGateway, SessionUsage
from aileron.features.gateway.values import GatewaySettings, GatewayTotals, Provider, ToolCount, Traffic
from aileron.model.usage import UsageSum
from aileron.testing import MemoryVault


@implementer(ITotals)
@frozen
class FixedTotals:
    """Totals that stay as they are."""

    providers: Mapping[str, Traffic] = field(factory=dict)

    def snapshot(self) -> GatewayTotals:
        return GatewayTotals(self.providers)


@frozen
class NoUsage:
    """Usage of sessions that called nothing."""

    async def of_sessions(self, session_ids: Sequence[str]) -> Mapping[str, UsageSum]:
        """Return nothing."""
        return {}


@frozen
class FixedWatch:
    """A watch that reads nothing, with rules and counts that stay as they are."""

    rules: Mapping[str, str] = field(factory=dict)
    tools: tuple[ToolCount, ...] = ()
    providers: frozenset[str] = frozenset()

    def watch(
        self,
        exchange: UpstreamExchange,
        provider: Provider,
        session_id: str | None,
        *,
        noting: bool,
        head: bytes,
        go: Callable[[], None],
        go_later: Callable[[], None],
    ) -> None:
        """Send the request."""
        go()

    def read_rest(self) -> None:
        """Read nothing."""

    def describe(self, provider: Provider) -> str:
        """Return the rules of a provider."""
        return self.rules.get(provider.name, "off")

    def counts(self) -> tuple[ToolCount, ...]:
        """Return the counts."""
        return self.tools


def relaying(
    settings: GatewaySettings | None = None,
    providers: Mapping[str, Traffic] | None = None,
    usage: SessionUsage | None = None,
) -> RunningGateway:
    """Return a gateway that has relayed this, and relays nothing more."""
    settings, nobody = settings or GatewaySettings(), _nothing()
    relay = Gateway(
        GatewaySettings(), {}, sessions=nobody, vault=MemoryVault(), meters=nobody, injection=nobody, clock=Clock()
    )
    return RunningGateway(settings, FixedTotals(providers or {}), relay, usage or NoUsage(), Life())


def _nothing() -> Any:
    return None
