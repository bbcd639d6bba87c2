"""In-band mode as a feature that runs in the daemon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from aileron.base.http1 import RelayHandler
from aileron.features.core import Core
from aileron.features.feature import RunningFeature
from aileron.features.gateway.running import RunningGateway
from aileron.model.features import RelayedPath

from ._conversation import STREAM_WAIT_SECONDS
from ._handler import InBandHandler, InBandParts, published
from .settings import MOST_TURNS, SETTING

if TYPE_CHECKING:
    from aileron.model.interfaces.services import IAgentRoutes


@frozen(eq=False)
class RunningInBand(RunningFeature):
    """The running in-band mode. It gets requests before the gateway, and calls actions by the agent site's routes."""

    _core: Core
    _gateway: RunningGateway

    def take_requests(self, routes: IAgentRoutes) -> RelayHandler:
        from aileron.mcp import plain_tools

        store, process, runner = self._core.store, self._core.process, self._core.runner

        def generation() -> object:
            offering = runner.submission.offering()
            return offering.generation, bool(offering.offers)

        parts = InBandParts(
            store.sessions,
            plain_tools(routes.in_band(), process.reactor, generation, int(STREAM_WAIT_SECONDS)),
            store.in_band,
            store.audit,
            process.reactor,
            process.ids,
            self._gateway.find_setting(SETTING, MOST_TURNS),
            process.in_thread(at_once=1),
        )
        return InBandHandler(self._gateway.relay, parts)

    def relayed(self) -> Sequence[RelayedPath]:
        return published()


def start_in_band(core: Core) -> RunningInBand | None:
    """Start in-band mode, or return None if the gateway was not started."""
    gateway = core.find(RunningGateway)
    return None if gateway is None else RunningInBand(core, gateway)
