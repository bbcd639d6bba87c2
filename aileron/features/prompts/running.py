"""The agents' own permission prompts as the daemon runs them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aileron.base.json import JSON
from aileron.features.core import Core
from aileron.features.feature import RunningFeature

from ._asks import AskService
from .values import PromptSettings


@frozen(eq=False)
class RunningPrompts(RunningFeature):
    """The running feature: the permission prompts of all sessions' agents."""

    asks: AskService

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that the feature's routes and pages look up by class: only this one."""
        return (self,)

    def session_ended(self, session_id: str) -> None:
        self.asks.session_ended(session_id)

    def status(self) -> Mapping[str, JSON]:
        settings = self.asks.settings
        return {
            "prompts": {
                "inbox": settings.inbox,
                "checks": settings.has_checks,
                "wait_seconds": settings.wait_seconds,
                "waiting": self.asks.count_waiting(),
            }
        }


def start_prompts(core: Core, settings: PromptSettings) -> RunningPrompts:
    """Build the service that answers permission prompts. Those that wait are closed when the daemon ends."""
    process = core.process
    asks = AskService(settings, core.store.audit, process.reactor, process.ids, process.operator_url)
    process.life.at_end(asks.stop)
    return RunningPrompts(asks)
