"""Backups: one encrypted file of everything that a home holds, made, checked and restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aileron.features.feature import Feature
from aileron.model.features import Command, UpgradeAdvice

if TYPE_CHECKING:
    from aileron.home.paths import Home


class BackupFeature(Feature):
    """The feature that backs up the home into one encrypted file, and restores it."""

    name = "backup"
    summary = "Backs up the home into one encrypted file."

    def commands(self) -> Mapping[str, Command]:
        return {"backup": Command("aileron.features.backup.commands:backup", "Maintain", 40)}

    def before_upgrade(self, home: Home) -> UpgradeAdvice:
        from .newest import advise

        return advise(home)


FEATURE = BackupFeature()
