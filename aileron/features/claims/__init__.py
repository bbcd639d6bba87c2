"""Claim check: notices an agent that says it did something in a service although no run of its session did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from aileron.features.core import Core
from aileron.features.feature import Feature, RunningFeature


class ClaimCheck(Feature):
    """The feature that finds claims of agents to have done something although no run did it."""

    name = "claims"
    summary = "Points out effects that an agent claims and no run had."
    needs: ClassVar[Sequence[str]] = ("gateway",)

    def settings(self) -> Mapping[str, Any]:
        from .settings import KEYS

        return KEYS

    def members(self) -> Mapping[str, Mapping[str, Any]]:
        from .running import CLAIMS

        return {"Session": {"claims": CLAIMS}}

    def slots(self) -> Mapping[str, Callable[..., Any]]:
        from .page import draw_for_session

        return {"session": draw_for_session}

    async def start(self, core: Core) -> RunningFeature | None:
        from .running import start_claim_check

        return start_claim_check(core)


FEATURE = ClaimCheck()
