"""Desktop notifications, offered by setup if there is a desktop and no configuration yet."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

from aileron.cli.actions.trusting import TrustRequest, trust
from aileron.cli.context import CliContext
from aileron.cli.output import note
from aileron.home.private_files import atomic_write

if TYPE_CHECKING:
    from aileron.client import Operator

_TEXT = "notifications:\n  desktop: true\n"
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def can_notify(environ: Mapping[str, str]) -> bool:
    """Return whether there is a desktop, and a program that shows notifications on it."""
    has_desktop = any(environ.get(name) for name in _DISPLAYS)
    return has_desktop and shutil.which("notify-send", path=environ.get("PATH")) is not None


async def offer_notifications(cli: CliContext, operator: Operator) -> None:
    """If there is no C{config.yaml}, ask whether to show desktop notifications. On yes, write the file and trust it."""
    path = cli.home.config
    if path.exists() or not can_notify(cli.environ):
        return
    if cli.ask("Show a desktop notification when something needs you? [y/N] ").strip().lower() not in {"y", "yes"}:
        return
    atomic_write(path, _TEXT.encode(), replace=False)
    await trust(cli, operator, TrustRequest("config", paths=(path,), sure=True))
    note("Notifications start with the next start of the daemon: aileron daemon stop, then aileron vault unlock")
