"""Packages: installs, updates and removes connectors and actions that others publish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from aileron.features.feature import Feature
from aileron.model.features import Command

if TYPE_CHECKING:
    from aileron.home.paths import Home
    from aileron.model.interfaces.authority import ITrust
    from aileron.model.interfaces.connectors import IConfigFile

_PLACE = "aileron.features.packages.installing"


class PackagesFeature(Feature):
    """The feature with C{aileron package}, which installs connectors and actions that others publish."""

    name = "packages"
    summary = "Installs packages of connectors and actions."
    file_names: ClassVar[Sequence[str]] = ("packages.json",)

    def commands(self) -> Mapping[str, Command]:
        replacing = {
            f"package {name}": Command(f"{_PLACE}:{name}", old=(f"action {name}", f"connector {name}"))
            for name in ("install", "update", "uninstall")
        }
        return {
            "package": Command("aileron.features.packages.commands:package", "Services", 40),
            **replacing,
            "package sync": Command(f"{_PLACE}:sync", old=("sync",)),
        }

    def trusted_files(self, home: Home, trust: ITrust) -> Sequence[IConfigFile]:
        from ._lock import NAME, LockFile

        return (LockFile(home.root / NAME, trust),)


FEATURE = PackagesFeature()
