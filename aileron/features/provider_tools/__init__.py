"""Tools that providers run themselves, such as web search: finds them in requests, and notes or refuses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from aileron.features.core import Core
from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName


class ProviderTools(Feature):
    """The feature that notes or refuses requests for tools that a provider runs itself, such as web search."""

    name = "provider_tools"
    summary = "Notes or refuses tools that LLM providers run themselves, such as web search."
    needs: ClassVar = ("gateway",)

    def settings(self) -> Mapping[str, Any]:
        from .settings import KEYS

        return KEYS

    def event_types(self) -> Mapping[str, EventName]:
        return {
            "tool.noted": EventName("Tool run by the provider", "sessions"),
            "tool.refused": EventName("Tool of the provider refused", "sessions"),
        }

    def slots(self) -> Mapping[str, Callable[..., Any]]:
        from .page import draw_for_gateway, draw_for_session, draw_for_settings

        return {"gateway": draw_for_gateway, "session": draw_for_session, "settings": draw_for_settings}

    def doctor_checks(self) -> Iterable[Callable[..., Any]]:
        from .doctor import find_unwatched

        return (find_unwatched,)

    async def start(self, core: Core) -> RunningFeature | None:
        from .running import start_provider_tools

        return start_provider_tools(core)


FEATURE = ProviderTools()
