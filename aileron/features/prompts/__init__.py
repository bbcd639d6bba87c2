"""Permission prompts: the agents' own questions to their user, listed in the inbox beside the approvals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName
from aileron.model.features import Command, NoticeRule

if TYPE_CHECKING:
    from aileron.features.core import Core


class Prompts(Feature):
    """The feature that lists the agents' own permission prompts in the inbox."""

    name = "prompts"
    summary = "Lists the agents' own permission prompts in the inbox."

    def commands(self) -> Mapping[str, Command]:
        return {"ask": Command("aileron.features.prompts.commands:ask", "Decide", 110)}

    def settings(self) -> Mapping[str, Any]:
        from .settings import PROMPTS

        return {"prompts": PROMPTS}

    def event_types(self) -> Mapping[str, EventName]:
        return {
            "ask.requested": EventName("Agent asks its user", "sessions", "waits"),
            "ask.allowed": EventName("Agent's question: allowed", "sessions"),
            "ask.denied": EventName("Agent's question: denied", "sessions"),
            "ask.answered_in_terminal": EventName("Agent's question: answered in the terminal", "sessions"),
            "ask.expired": EventName("Agent's question: nobody answered here", "sessions"),
            "ask.withdrawn": EventName("Agent's question: withdrawn", "sessions"),
            "ask.overflowed": EventName("Too many questions of an agent: left to its terminal", "sessions"),
        }

    def notices(self) -> Mapping[str, NoticeRule]:
        one, many = "an agent asks for permission", "agents ask for permission {n} times"
        return {"ask.requested": NoticeRule("ask_requested", one, many, rank=110)}

    def routes(self) -> Sequence[Any]:
        from .routes import TABLE

        return (TABLE,)

    def members(self) -> Mapping[str, Mapping[str, Any]]:
        from .routes import STATUS

        return {"status": {"prompts": STATUS}}

    def slots(self) -> Mapping[str, Callable[..., Any]]:
        from .page import draw_asks
        from .trial_page import draw_for_settings

        return {"approvals": draw_asks, "settings": draw_for_settings}

    def pages(self) -> Mapping[str, Callable[..., Any]]:
        from .trial_page import PATH, draw_prompts

        return {PATH: draw_prompts}

    async def start(self, core: Core) -> RunningFeature:
        from .running import start_prompts
        from .values import PromptSettings

        return start_prompts(core, core.settings.get("prompts") or PromptSettings())


FEATURE = Prompts()
