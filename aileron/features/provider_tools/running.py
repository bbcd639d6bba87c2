"""The feature that reads requests for tools that providers run, in the daemon."""

from __future__ import annotations

from attrs import frozen

from aileron.features.core import Core
from aileron.features.feature import RunningFeature
from aileron.features.gateway.running import RunningGateway

from .notes import ToolNotes
from .watch import ToolWatch


@frozen(eq=False)
class RunningProviderTools(RunningFeature):
    """The running feature, which reads the gateway's requests.

    :ivar watch: reads the requests.
    """

    watch: ToolWatch

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that routes and pages can find by their class: this feature."""
        return (self,)


def start_provider_tools(core: Core) -> RunningProviderTools | None:
    """Start reading the gateway's requests, or return None if the gateway is off."""
    gateway, process = core.find(RunningGateway), core.process
    if gateway is None:
        return None
    notes = ToolNotes(core.store.audit, process.reactor, process.ids)
    watch = ToolWatch(gateway.settings, notes, process.reactor)
    gateway.watch_requests(watch)
    return RunningProviderTools(watch)
