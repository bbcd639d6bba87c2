"""Waking: passes an agent whose turn has ended the outcome of an action that was decided later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName

if TYPE_CHECKING:
    from aileron.features.core import Core


class Wake(Feature):
    """The feature that wakes agents with the outcomes of runs that were decided late."""

    name = "wake"
    summary = "Tells an idle agent the outcome of an action that was decided late."

    def settings(self) -> Mapping[str, Any]:
        from .settings import WAKE

        return {"wake": WAKE}

    def event_types(self) -> Mapping[str, EventName]:
        return {"wake.sent": EventName("Agent woken by an outcome", "sessions")}

    def routes(self) -> Sequence[Any]:
        from .routes import TABLE

        return (TABLE,)

    def members(self) -> Mapping[str, Mapping[str, Any]]:
        from .routes import STATUS

        return {"status": {"wake": STATUS}}

    def slots(self) -> Mapping[str, Callable[..., Any]]:
        from .page import draw_for_session

        return {"session": draw_for_session}

    async def start(self, core: Core) -> RunningFeature:
        from .running import start_wake
        from .values import WakeSettings

        return await start_wake(core, core.settings.get("wake") or WakeSettings())


FEATURE = Wake()
