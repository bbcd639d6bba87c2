"""Profiles: named choices of actions, which restrict what an agent's session may use (ADR 86)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aileron.features.feature import Feature
from aileron.model.features import Command

if TYPE_CHECKING:
    from aileron.features.core import Core
    from aileron.features.feature import RunningFeature


class Profiles(Feature):
    """The feature that restricts which actions the sessions of an agent may use."""

    name = "profiles"
    summary = "Restricts which actions an agent may use, by profiles in config.yaml and a project's .aileron.toml."

    def commands(self) -> Mapping[str, Command]:
        return {"profile": Command("aileron.features.profiles.commands:profile", "Inspect", 55)}

    def settings(self) -> Mapping[str, Any]:
        from .settings import KEYS

        return KEYS

    def routes(self) -> Sequence[Any]:
        from .routes import TABLE

        return (TABLE,)

    def slots(self) -> Mapping[str, Callable[..., Any]]:
        from .page import draw_for_session

        return {"session": draw_for_session}

    async def start(self, core: Core) -> RunningFeature | None:
        from .running import start_profiles

        return start_profiles(core)


FEATURE = Profiles()
