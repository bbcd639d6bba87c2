"""The service at login: systemd or launchd starts the daemon when the user logs in."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.features.feature import Feature
from aileron.model.features import Command


class ServiceFeature(Feature):
    """The feature that lets systemd or launchd start the daemon when the user logs in."""

    name = "service"
    summary = "Starts the daemon when you log in, by systemd or launchd."

    def commands(self) -> Mapping[str, Command]:
        return {
            f"daemon {name}": Command(f"aileron.features.service.commands:{name}") for name in ("install", "uninstall")
        }


FEATURE = ServiceFeature()
