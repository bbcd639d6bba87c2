"""Web Push: notifies browsers of the number of pending requests when no page of Aileron is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from aileron.features.core import Core
from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName
from aileron.model.features import Command

_STATIC = Path(__file__).with_name("static")


class Push(Feature):
    """The feature that notifies browsers of pending requests by Web Push."""

    name = "push"
    summary = "Notifies a browser when no page of Aileron is open."
    needs: ClassVar[Sequence[str]] = ("notices",)
    targets: ClassVar[Mapping[str, str]] = {"push://": "browser that is notified"}
    scripts: ClassVar[Sequence[Path]] = (_STATIC / "push.js",)
    workers: ClassVar[Mapping[str, Path]] = {"/push-worker.js": _STATIC / "push-worker.js"}

    def commands(self) -> Mapping[str, Command]:
        return {"notification browser": Command("aileron.features.push.commands:browser")}

    def event_types(self) -> Mapping[str, EventName]:
        return {
            "push.registered": EventName("Browser registered for notifications", "setup"),
            "push.removed": EventName("Browser removed from notifications", "setup"),
        }

    def routes(self) -> Sequence[Any]:
        from .routes import TABLE

        return (TABLE,)

    def slots(self) -> Mapping[str, Callable[..., Any]]:
        from .page import draw_browsers, draw_phone_button

        return {"settings": draw_browsers, "approvals_end": draw_phone_button}

    async def start(self, core: Core) -> RunningFeature:
        from .running import start_push

        return start_push(core)


FEATURE = Push()
