"""Spending: limits on what agents use of language models, in tokens, requests and money, and what they used today."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName
from aileron.model.features import Command, NoticeRule

if TYPE_CHECKING:
    from aileron.features.core import Core
    from aileron.home.paths import Home
    from aileron.model.interfaces.authority import ITrust
    from aileron.model.interfaces.connectors import IConfigFile


class Spending(Feature):
    """The feature that limits what agents spend on language models."""

    name = "spending"
    summary = "Limits what agents use of language models: tokens, requests and money."
    needs: ClassVar[Sequence[str]] = ("gateway",)
    file_names: ClassVar[Sequence[str]] = ("spending.toml",)

    def commands(self) -> Mapping[str, Command]:
        return {
            "gateway limit": Command("aileron.features.spending.commands:limit"),
            "gateway usage": Command("aileron.features.spending.commands:usage"),
        }

    def settings(self) -> Mapping[str, Any]:
        from .settings import KEYS

        return KEYS

    def event_types(self) -> Mapping[str, EventName]:
        return {
            "spending.warned": EventName("Spending limit nearly reached", "sessions", "waits"),
            "spending.reached": EventName("Spending limit reached", "sessions", "bad"),
            "spending.runaway": EventName("Agent stopped: it runs away", "sessions", "bad"),
            "spending.changed": EventName("Spending limit changed", "setup"),
        }

    def notices(self) -> Mapping[str, NoticeRule]:
        return {
            "spending.reached": NoticeRule(
                "spending_reached",
                "a spending limit is reached",
                "{n} spending limits are reached",
                rank=32,
                reason="why",
                urgent=True,
                immediate=True,
            ),
            "spending.runaway": NoticeRule(
                "spending_runaway",
                "an agent was stopped: it repeats itself",
                "{n} agents were stopped: they repeat themselves",
                rank=34,
                reason="why",
                urgent=True,
            ),
            "spending.warned": NoticeRule(
                "spending_warned",
                "a spending limit is nearly reached",
                "{n} spending limits are nearly reached",
                rank=75,
                reason="why",
            ),
        }

    def trusted_files(self, home: Home, trust: ITrust) -> Sequence[IConfigFile]:
        from ._file import NAME, SpendingFile

        return (SpendingFile(home.root / NAME, trust),)

    def routes(self) -> Sequence[Any]:
        from .routes import TABLE

        return (TABLE,)

    def slots(self) -> Mapping[str, Callable[..., Any]]:
        from .page import draw_for_gateway, draw_for_session, find_reached

        return {"gateway": draw_for_gateway, "session": draw_for_session, "home": find_reached}

    def watch_offers(self) -> Sequence[Callable[..., Any]]:
        from .offers import offer_raises

        return (offer_raises,)

    async def start(self, core: Core) -> RunningFeature | None:
        from .running import start_spending

        return await start_spending(core)


FEATURE = Spending()
