"""Lets an agent's own command-line tools, such as C{gh}, use services without a key. Writes need an approval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName
from aileron.model.features import Command

if TYPE_CHECKING:
    from aileron.features.core import Core


class OwnTools(Feature):
    """The feature that lets the command-line tools of agents use services without a key."""

    name = "own_tools"
    summary = "Lets an agent's own tools, such as gh and curl, use credentials that they never hold."
    needs: ClassVar[Sequence[str]] = ("egress",)

    def commands(self) -> Mapping[str, Command]:
        return {"own-tools": Command("aileron.features.own_tools.commands:own_tools", "Services", 45)}

    def settings(self) -> Mapping[str, Any]:
        from .settings import OWN_TOOLS

        return {"own_tools": OWN_TOOLS}

    def event_types(self) -> Mapping[str, EventName]:
        return {
            "own_tools.opened": EventName("Services opened for an agent's tools", "sessions"),
            "own_tools.read": EventName("Tool of an agent read", "sessions"),
            "own_tools.refused": EventName("Request of an agent's tool refused", "sessions", "bad"),
            "own_tools.read_ended": EventName("Long answer to an agent's tool ended", "sessions"),
            "own_tools.answered": EventName("Answer given to an agent's tool", "sessions"),
        }

    def members(self) -> Mapping[str, Mapping[str, Any]]:
        from .running import STATUS

        return {"status": {"own_tools": STATUS}}

    def doctor_checks(self) -> Iterable[Callable[..., Any]]:
        from .doctor import find_problems

        return (find_problems,)

    def routes(self) -> Sequence[Any]:
        from .routes import TABLE

        return (TABLE,)

    async def start(self, core: Core) -> RunningFeature | None:
        from .running import start_own_tools
        from .settings import OwnToolsSettings

        return await start_own_tools(core, core.settings.get("own_tools") or OwnToolsSettings())


FEATURE = OwnTools()
