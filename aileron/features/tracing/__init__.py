"""Traces of runs for OpenTelemetry: from the request of a tool, over the approval, to the services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aileron.features.feature import Feature, RunningFeature

if TYPE_CHECKING:
    from aileron.features.core import Core


class Tracing(Feature):
    """The feature that sends a trace of each run to a collector. It does nothing unless a collector is configured."""

    name = "tracing"
    summary = "Sends a trace of each run to an OpenTelemetry collector."

    def settings(self) -> Mapping[str, Any]:
        from .settings import TRACING

        return {"tracing": TRACING}

    async def start(self, core: Core) -> RunningFeature | None:
        settings = core.settings.get("tracing")
        if settings is None or settings.endpoint is None:
            return None
        from .running import start_tracing

        return await start_tracing(core, settings)


FEATURE = Tracing()
"""Traces, as a feature that runs in the daemon."""
