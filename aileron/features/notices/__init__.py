"""Notifications: informs the operator of pending work, in the browser, on the desktop, by webhook or by apprise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from aileron.features.core import Core
from aileron.features.feature import Feature, RunningFeature
from aileron.model.features import Command


class Notices(Feature):
    """The feature that notifies the operator of pending work, such as on the desktop or by a webhook."""

    name = "notices"
    summary = "Notifies you of what is pending, in the browser, on the desktop, by webhook or by apprise."
    targets: ClassVar[Mapping[str, str]] = {"notice://": "notification that wants a secret"}
    scripts: ClassVar[Sequence[Path]] = (Path(__file__).with_name("static") / "notify.js",)

    def commands(self) -> Mapping[str, Command]:
        return {"notification": Command("aileron.features.notices.commands:notification", "Services")}

    def settings(self) -> Mapping[str, Any]:
        from .settings import NOTICES

        return {"notifications": NOTICES}

    def routes(self) -> Sequence[Any]:
        from .routes import TABLE

        return (TABLE,)

    def members(self) -> Mapping[str, Mapping[str, Any]]:
        from .routes import STATUS

        return {"status": {"notifications": STATUS}}

    def slots(self) -> Mapping[str, Callable[..., Any]]:
        from .page import draw_channels, find_failing

        return {"settings": draw_channels, "home": find_failing}

    def doctor_checks(self) -> Iterable[Callable[..., Any]]:
        from .commands import find_failing

        return (find_failing,)

    def setup_offers(self) -> Sequence[Callable[..., Any]]:
        from .desktop import offer_notifications

        return (offer_notifications,)

    async def start(self, core: Core) -> RunningFeature:
        from .running import start_notices
        from .values import NoticeSettings

        return start_notices(core, core.settings.get("notifications") or NoticeSettings())


FEATURE = Notices()
