"""In-band mode: offers a session's actions as tools in its LLM traffic, and runs the model's calls of them.

The client, a program that talks to a language model, does not see these tools or their calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aileron.features.core import Core
from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName


class InBand(Feature):
    """The feature that offers Aileron's tools inside an agent's requests to a language model ("in-band mode")."""

    name = "inband"
    summary = "Offers actions in LLM traffic, for agents that speak no MCP."
    needs: ClassVar = ("gateway",)

    def settings(self) -> Mapping[str, Any]:
        from .settings import KEYS

        return KEYS

    def event_types(self) -> Mapping[str, EventName]:
        return {
            "in_band.turn": EventName("Actions called in LLM traffic", "sessions"),
            "in_band.warned": EventName("In-band mode warning", "sessions"),
        }

    async def start(self, core: Core) -> RunningFeature | None:
        from .running import start_in_band

        return start_in_band(core)


FEATURE = InBand()
